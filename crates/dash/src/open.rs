//! Opening a main database: which mode, which rights, and what has to be done first.
//!
//! | | |
//! |---|---|
//! | in memory, without a name | the host |
//! | `journal_mode=delete` (or another of SQLite's own) | a plain file, through the host |
//! | other connections of this process have it open as a plain file | likewise |
//! | for reading: with a hot journal of stock SQLite, or in WAL mode | through the host, as stock does |
//! | no SQLite database, and no shadow beside it | likewise: SQLite itself says so, at the first read |
//! | for reading, or nothing else is possible | the engine, read-only |
//! | all else | the engine |

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dash_ffi::{Code, Error, File, FileName, HostVfs, OpenFlags, Opened, Result, Window};
use dash_shadow::{Connection, Error as EngineError};
use dash_storage::real::{self, Real};
use dash_storage::{Directory, Storage};

use crate::errors::{forbids_writing, to_sqlite};
use crate::leftovers::{self, Leftover, Neighbours};
use crate::linger;
use crate::main_file::{Kind, MainFile};
use crate::orphans;
use crate::parameters::Parameters;
use crate::read_only_file::ReadOnlyFile;
use crate::registry::{self, Membership, Mode};
use crate::secure_delete;
use crate::shadow_file::ShadowFile;

/// How long opening waits for a stock writer, or for another connection that opens or closes; SQLite
/// has no busy handler there.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// How often it looks.
pub const PAUSE: Duration = Duration::from_millis(2);
/// Permissions of a new database, before the umask; SQLite's own.
const PERMISSIONS: u32 = 0o644;
/// Length of the header that SQLite itself reads first.
pub const HEADER: usize = 100;

/// Opens a file of kind main database.
pub fn main_database(host: &HostVfs, name: FileName<'_>, flags: OpenFlags) -> Result<Opened> {
    let path = match name.path() {
        Some(path) if !flags.contains(OpenFlags::MEMORY) => path,
        _ => return through_host(host, name, flags),
    };
    let parameters = Parameters::of(&name)?;
    let reading = !flags.contains(OpenFlags::READWRITE) || parameters.immutable;
    let request = Request { host, name, path, flags, parameters, window: Arc::default() };
    let neighbours = Neighbours::of(path);
    if reading && request.stock_has_to_read(&neighbours)? {
        return request.plain(None);
    }
    if request.parameters.nolock && !reading {
        return Err(Error::new(
            Code::CANTOPEN,
            "nolock=1: without locks the copy that a commit goes to is not safe; for reading a file that nobody writes use immutable=1",
        ));
    }
    let wanted =
        request.parameters.shadow.map(|shadow| if shadow { Mode::Shadow } else { Mode::Plain });
    match request.parameters.shadow {
        Some(false) => linger::end(path),
        _ => linger::check(path),
    }
    let (membership, mode) = registry::join(path, wanted).map_err(|mode| conflict(path, mode))?;
    match (mode, reading) {
        (Mode::Plain, reading) => {
            // Stock's WAL mode is not offered beside dash's modes: a plain file is taken out of it, too.
            let wal = neighbours.find()? == Some(Leftover::Wal) || leftovers::in_wal_mode(path);
            if !reading && wal {
                leftovers::clear(host, path, flags, Leftover::Wal)?;
            }
            request.plain(Some(membership))
        }
        (Mode::Shadow, true) => request.read_only(membership, None),
        (Mode::Shadow, false) => request.for_writing(membership, &neighbours),
    }
}

fn conflict(path: &Path, mode: Mode) -> Error {
    let (shown, is) = (
        path.display(),
        match mode {
            Mode::Shadow => "in mode shadow",
            Mode::Plain => "as a plain file",
        },
    );
    Error::new(
        Code::CANTOPEN,
        format!(
            "{shown} is open in this process {is}: leave out the parameter journal_mode, or close the other connections first"
        ),
    )
}

/// A file of any kind, as the host opens it.
pub fn through_host(host: &HostVfs, name: FileName<'_>, flags: OpenFlags) -> Result<Opened> {
    let (file, flags) = host.open(name, flags)?;
    Ok(Opened { file: Box::new(file), flags })
}

/// What SQLite asked for.
struct Request<'a> {
    host: &'a HostVfs,
    name: FileName<'a>,
    path: &'a Path,
    flags: OpenFlags,
    parameters: Parameters,
    window: Arc<Window>,
}

impl Request<'_> {
    /// Whether only stock SQLite can make sense of a file that may not be written.
    fn stock_has_to_read(&self, neighbours: &Neighbours) -> Result<bool> {
        match self.parameters.shadow {
            Some(true) => Ok(false),
            Some(false) => Ok(true),
            None => neighbours.stock_has_to_read(),
        }
    }

    fn main_file(&self, kind: Kind, membership: Option<Membership>) -> MainFile {
        MainFile {
            kind,
            path: self.path.to_path_buf(),
            host: *self.host,
            parameters: self.parameters.clone(),
            shared_memory: false,
            window: self.window.clone(),
            beside: None,
            chunk: None,
            forks: real::forks(),
            membership,
        }
    }

    fn plain(&self, membership: Option<Membership>) -> Result<Opened> {
        let (file, flags) = self.host.open(self.name, self.flags)?;
        if !self.parameters.immutable && !dash_shadow::keep_access_at_rest(&Real, self.path) {
            self.note_exposed();
        }
        if self.flags.contains(OpenFlags::READWRITE) && !flags.contains(OpenFlags::READWRITE) {
            self.note_read_only("no right to write the file");
        }
        // WAL mode needs it, and is only met when reading.
        let shared_memory = membership.is_none() && file.has_shared_memory();
        let beside = (!flags.contains(OpenFlags::READWRITE)).then(|| Neighbours::of(self.path));
        let file =
            MainFile { shared_memory, beside, ..self.main_file(Kind::Plain(file), membership) };
        Ok(Opened { file: Box::new(file), flags })
    }

    /// SQLite refuses writes by itself from then on, and asks nobody: what `dash_last_error()` is to say then is
    /// said now.
    fn note_read_only(&self, why: &str) {
        let path = self.path.display();
        self.host.note(Code::NOTICE, &format!("{path} was opened for reading only: {why}"));
    }

    /// Says that a chmod or chown of the database did not reach its shadow, and can't from here.
    fn note_exposed(&self) {
        let path = self.path.display();
        self.host.note(
            Code::WARNING,
            &format!(
                "{path}-shadow may be read or written by users who have no right to {path}, and this process may not \
                 change that: give it the same owner, group and permissions (chown, chmod), or remove it while the \
                 database is closed"
            ),
        );
    }

    /// `why`: what kept it from being opened for writing, if that was wanted.
    fn read_only(&self, membership: Membership, why: Option<String>) -> Result<Opened> {
        let immutable = self.parameters.immutable || self.parameters.nolock;
        let begun = Instant::now();
        let file = loop {
            match ReadOnlyFile::open(self.path, immutable, self.window.clone()) {
                Err(EngineError::Busy) if begun.elapsed() < PATIENCE => {
                    self.host.sleep(PAUSE);
                }
                other => break other.map_err(to_sqlite),
            }
        };
        let mut file = match file {
            Err(error) if self.is_for_stock_to_refuse(&error) => {
                return self.no_database(membership, error);
            }
            other => other?,
        };
        let mut header = [0; HEADER];
        file.read(&mut header, 0)?;
        if leftovers::says_wal(&header) {
            let named = file.refuse_unnamed_wal();
            file.close()?;
            named?;
            drop(membership);
            return self.plain(None);
        }
        if file.is_exposed() {
            self.note_exposed();
        }
        if let Some(why) = &why {
            self.note_read_only(why);
        }
        file.why = why;
        let file = self.main_file(Kind::ReadOnly(Box::new(file)), Some(membership));
        let flags = self.flags.without(OpenFlags::READWRITE | OpenFlags::CREATE);
        Ok(Opened { file: Box::new(file), flags: flags | OpenFlags::READONLY })
    }

    fn for_writing(&self, membership: Membership, neighbours: &Neighbours) -> Result<Opened> {
        match engine(self.host, self.path, &self.parameters, self.flags, neighbours) {
            Ok(engine) => {
                if engine.is_exposed() {
                    self.note_exposed();
                }
                let database = membership.database().clone();
                let psow = self.parameters.psow();
                let window = self.window.clone();
                let file = ShadowFile::new(engine, self.path, database, psow, window);
                let file = self.main_file(Kind::Shadow(Box::new(file)), Some(membership));
                Ok(Opened { file: Box::new(file), flags: self.flags })
            }
            // As the stock VFS does: what can't be written may still be read.
            Err(Failed::Forbidden(error)) => {
                if self.stock_has_to_read(neighbours)? {
                    drop(membership);
                    return self.plain(None);
                }
                self.read_only(membership, Some(error.to_string())).map_err(|_| error)
            }
            Err(Failed::Other(error)) if self.is_for_stock_to_refuse(&error) => {
                self.no_database(membership, error)
            }
            Err(Failed::Other(error)) => Err(error),
        }
    }

    /// Whether a file is no database, nor ever was one of dash's, as far as one can see.
    fn is_for_stock_to_refuse(&self, error: &Error) -> bool {
        error.code == Code::NOTADB
            && self.parameters.shadow != Some(true)
            && leftovers::can_be_left_to_stock(self.path)
    }

    /// SQLite opens anything and looks at it when it first reads; ATTACH tells the one failure from the
    /// other. So it gets the file as it is, and refuses it then.
    fn no_database(&self, membership: Membership, error: Error) -> Result<Opened> {
        if !membership.switch(Mode::Plain) {
            return Err(error);
        }
        self.host.note(error.code, error.message.as_deref().unwrap_or_default());
        self.plain(Some(membership))
    }
}

/// Why the engine could not open a database for writing.
pub enum Failed {
    /// Writing is not allowed here.
    Forbidden(Error),
    /// Anything else.
    Other(Error),
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Forbidden(error) | Failed::Other(error) => error,
        }
    }
}

/// Opens the engine for writing, after stock SQLite has dealt with its own leftovers.
pub fn engine(
    host: &HostVfs,
    path: &Path,
    parameters: &Parameters,
    flags: OpenFlags,
    neighbours: &Neighbours,
) -> core::result::Result<Connection<Real>, Failed> {
    let options = dash_shadow::OpenOptions {
        create: flags.contains(OpenFlags::CREATE),
        permissions: parameters.permissions(),
        protocol: parameters.protocol,
        ..dash_shadow::OpenOptions::default()
    };
    let clear = |leftover| {
        leftovers::clear(host, path, flags, leftover).map_err(|error| match error.code.primary() {
            Code::READONLY | Code::CANTOPEN => Failed::Forbidden(error),
            _ => Failed::Other(error),
        })
    };
    neighbours.leave_the_fence_its_name().map_err(Failed::Other)?;
    secure_delete::ask(host);
    let begun = Instant::now();
    let mut takes_over = false;
    loop {
        if let Some(leftover) = neighbours.find().map_err(Failed::Other)? {
            clear(leftover)?;
        }
        let opened = match neighbours.folder() {
            Some(folder) => Connection::open_in(&Real, Arc::clone(folder), path, &options),
            None => Connection::open(&Real, path, &options),
        };
        match opened {
            Ok(mut engine) => {
                takes_over |= engine.takes_over();
                // From here on stock SQLite leaves nothing: but it may have, until just now.
                let mut header = [0; HEADER];
                let read = engine.read(&mut header, 0).map_err(to_sqlite);
                read.map_err(Failed::Other)?;
                let wal = leftovers::says_wal(&header);
                if !wal && neighbours.find().map_err(Failed::Other)?.is_none() {
                    if takes_over {
                        orphans::remove(host, path);
                    }
                    return Ok(engine);
                }
                let closed = engine.close().map_err(to_sqlite);
                closed.map_err(Failed::Other)?;
                if wal {
                    clear(Leftover::Wal)?;
                }
            }
            Err(EngineError::Busy) => {}
            Err(error) if forbids_writing(&error) => {
                return Err(Failed::Forbidden(to_sqlite(error)));
            }
            Err(error) => return Err(Failed::Other(to_sqlite(error))),
        }
        if begun.elapsed() >= PATIENCE {
            return Err(Failed::Other(Error::new(
                Code::BUSY,
                format!("{} is locked: a stock SQLite process is writing it", path.display()),
            )));
        }
        host.sleep(PAUSE);
    }
}

impl Parameters {
    /// Whether to promise powersafe overwrite.
    pub(crate) fn psow(&self) -> bool {
        self.powersafe_overwrite.unwrap_or(true)
    }

    /// The permissions of a new database.
    fn permissions(&self) -> u32 {
        let of = || {
            let model = self.mode_of.as_deref()?;
            let folder = Real.open_directory(model.parent()?).ok()?;
            let found = folder.metadata(model.file_name()?).ok()??;
            Some(found.permissions)
        };
        of().unwrap_or(PERMISSIONS)
    }
}
