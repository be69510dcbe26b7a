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
use std::time::Duration;

use dash_ffi::{Code, Error, FileName, HostVfs, OpenFlags, Opened, Result, Window};
use dash_storage::real;

use crate::leftovers::Neighbours;
use crate::main_file::MainFile;
use crate::mode::{Database, Mode};
use crate::modes::MODES;
use crate::parameters::Parameters;
use crate::plain;
use crate::registry::{self, Membership};

/// How long opening waits for a stock writer, or for another connection that opens or closes; SQLite
/// has no busy handler there.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// How often it looks.
pub const PAUSE: Duration = Duration::from_millis(2);
/// Length of the header that SQLite itself reads first.
pub const HEADER: usize = 100;

/// What SQLite asked for.
pub struct Request<'a> {
    pub(crate) host: &'a HostVfs,
    pub(crate) name: FileName<'a>,
    pub(crate) path: &'a Path,
    pub(crate) flags: OpenFlags,
    pub(crate) parameters: Parameters,
    pub(crate) window: Arc<Window>,
    /// What lies beside it.
    pub(crate) beside: Neighbours,
}

/// A database that a mode is to open.
pub struct Opening<'a> {
    /// By whom.
    pub(crate) request: Request<'a>,
    /// Only for reading.
    pub(crate) reading: bool,
    /// Its place in the process's list.
    pub(crate) membership: Membership,
}

/// What a mode needs to know of a connection that comes to it from another one.
pub struct Switching<'a> {
    pub(crate) host: &'a HostVfs,
    pub(crate) path: &'a Path,
    pub(crate) parameters: &'a Parameters,
    pub(crate) window: &'a Arc<Window>,
    pub(crate) membership: &'a Membership,
}

/// Opens a file of kind main database.
pub fn main_database(host: &HostVfs, name: FileName<'_>, flags: OpenFlags) -> Result<Opened> {
    let path = match name.path() {
        Some(path) if !flags.contains(OpenFlags::MEMORY) => path,
        _ => return through_host(host, name, flags),
    };
    let parameters = Parameters::of(&name)?;
    let reading = !flags.contains(OpenFlags::READWRITE) || parameters.immutable;
    let beside = Neighbours::of(path);
    let request = Request { host, name, path, flags, parameters, window: Arc::default(), beside };
    let default = request.default_mode()?;
    if reading && request.stock_has_to_read()? {
        return request.plain(None);
    }
    if request.parameters.nolock && !reading {
        return Err(Error::new(
            Code::CANTOPEN,
            "nolock=1: without locks the copy that a commit goes to is not safe; for reading a file that nobody writes use immutable=1",
        ));
    }
    let wanted = request.parameters.mode;
    for mode in MODES {
        mode.prepare(path, wanted.is_some_and(|wanted| wanted != *mode));
    }
    let joined = registry::join(path, wanted, default);
    let (membership, mode) = joined.map_err(|mode| conflict(path, mode))?;
    mode.open(Opening { request, reading, membership })
}

fn conflict(path: &Path, mode: &dyn Mode) -> Error {
    let (shown, is) = (path.display(), mode.described());
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

impl Request<'_> {
    /// The mode for who asks for none: that which the file keeps, or else the first.
    fn default_mode(&self) -> Result<&'static dyn Mode> {
        for mode in MODES {
            if mode.recognises(self.path, &self.beside)? {
                return Ok(*mode);
            }
        }
        Ok(MODES[0])
    }

    /// Whether only stock SQLite can make sense of a file that may not be written.
    pub(crate) fn stock_has_to_read(&self) -> Result<bool> {
        match self.parameters.mode {
            Some(mode) => Ok(mode == plain::MODE),
            None => self.beside.stock_has_to_read(),
        }
    }

    /// What SQLite gets: a database, open in a mode.
    pub(crate) fn opened(
        &self,
        mode: &'static dyn Mode,
        database: Box<dyn Database>,
        flags: OpenFlags,
        membership: Option<Membership>,
    ) -> Opened {
        let file = MainFile {
            mode,
            database,
            path: self.path.to_path_buf(),
            host: *self.host,
            parameters: self.parameters.clone(),
            window: self.window.clone(),
            chunk: None,
            forks: real::forks(),
            membership,
        };
        Opened { file: Box::new(file), flags }
    }

    /// SQLite refuses writes by itself from then on, and asks nobody: what `dash_last_error()` is to say then is
    /// said now.
    pub(crate) fn note_read_only(&self, why: &str) {
        let path = self.path.display();
        self.host.note(Code::NOTICE, &format!("{path} was opened for reading only: {why}"));
    }

    /// Says that a chmod or chown of the database did not reach its shadow, and can't from here.
    pub(crate) fn note_exposed(&self) {
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
}
