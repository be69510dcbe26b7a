//! Opening a database in mode wal: by the engine, after stock SQLite has put it into WAL mode where
//! it is not yet; through the host where it is only read and nothing of dash is under way.

use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use dash_ffi::{Code, Error, HostVfs, OpenFlags, Opened, Result};
use dash_storage::real::Real;
use dash_storage::{Directory, Storage};
use dash_wal::{Connection, Error as EngineError, Execute, Names, Operation, Process};

use super::file::WalFile;
use super::link::{Link, Links};
use super::name::MODE;
use super::{parameters, statement};
use crate::by_stock::{self, PATIENCE, PAUSE, Work};
use crate::errors::{forbids_writing, looking_for, to_sqlite};
use crate::leftovers::{HEADER, Neighbours, says_wal};
use crate::main_file::opened;
use crate::mode::registry::Membership;
use crate::mode::{COMMIT, Database, Modes, Parameters, Place, Request, Switching};
use crate::rerun::Executor;
use crate::statements;
use crate::summed;

/// Taken together: rolls a hot journal back, removes one that stock SQLite kept, which would be in
/// the way of the name fence, and enters WAL mode. That writes two bytes of the header and its
/// counters, which are in one sector, so nothing need be rolled back.
const ENTER: &str = "PRAGMA busy_timeout=2000; PRAGMA locking_mode=NORMAL; \
     SELECT count(*) FROM sqlite_master; PRAGMA journal_mode=MEMORY; \
     PRAGMA journal_mode=PERSIST; PRAGMA journal_mode=DELETE; \
     PRAGMA journal_mode=MEMORY; PRAGMA journal_mode=WAL";
/// The same, for an empty file, which SQLite fills by its journal's rules.
const BEGIN: &str = "PRAGMA busy_timeout=2000; PRAGMA locking_mode=NORMAL; PRAGMA journal_mode=WAL";

/// Why the engine could not open a database for writing.
pub(super) enum Failed {
    /// Writing is not allowed here.
    Forbidden(Error),
    /// Somebody has it open so that nobody may join.
    Held(Error),
    /// Anything else.
    Other(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        match error.code.primary() {
            Code::READONLY => Self::Forbidden(error),
            _ => Self::Other(error),
        }
    }
}

impl From<EngineError> for Failed {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Held(_) => Self::Held(to_sqlite(error)),
            _ if forbids_writing(&error) => Self::Forbidden(to_sqlite(error)),
            _ => Self::Other(to_sqlite(error)),
        }
    }
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Forbidden(error) | Failed::Held(error) | Failed::Other(error) => error,
        }
    }
}

impl Request<'_> {
    pub(super) fn wal_for_writing(&self, membership: Membership) -> Result<Opened> {
        let (modes, is_asked) = (self.modes, self.parameters.mode.is_some());
        let begins = Begins { modes, is_asked, is_opening: true };
        match self.wal_engine(&membership, membership.is_alone().then_some(begins)) {
            Ok(engine) => Ok(self.wal_opened(engine, membership, false)),
            Err(Failed::Forbidden(error)) => {
                drop(membership);
                self.wal_by_stock(error)
            }
            Err(Failed::Held(error) | Failed::Other(error)) => Err(error),
        }
    }

    /// Without the rights that the engine needs, stock's rules say what can be read.
    pub(super) fn wal_for_reading(&self, membership: Membership) -> Result<Opened> {
        match self.wal_engine(&membership, None) {
            Ok(engine) => Ok(self.wal_opened(engine, membership, true)),
            // Stock SQLite would be refused, too, and could not say by whom.
            Err(Failed::Held(error)) => Err(error),
            Err(Failed::Forbidden(_) | Failed::Other(_)) => {
                drop(membership);
                self.refuse_in_memory()?;
                self.plain(None)
            }
        }
    }

    /// Stock SQLite would be refused where another process has `-wal` in memory, and could not say
    /// by whom. Nobody is refused for not knowing that.
    fn refuse_in_memory(&self) -> Result<()> {
        match dash_wal::refuse_in_memory(&Real, self.path) {
            Err(error @ EngineError::Held(_)) => Err(to_sqlite(error)),
            _ => Ok(()),
        }
    }

    /// As the stock VFS does where the engine lacks a right: what can't be written may still be
    /// read, and what can is written by stock's rules. That is said, and refused to whoever asked
    /// for what only the engine gives.
    fn wal_by_stock(&self, error: Error) -> Result<Opened> {
        let needs = "dash needs the right to write the database's folder, and its log: give that the database's owner, group \
             and permissions";
        self.refuse_in_memory()?;
        if self.stock_lacks_a_right() {
            return Err(error);
        }
        let Ok(opened) = self.plain_instead(&error.to_string()) else { return Err(error) };
        if !opened.flags.contains(OpenFlags::READWRITE) {
            return Ok(opened);
        }
        if self.beside.has_fence()? && matches!(dash_wal::is_open(&Real, self.path), Ok(false)) {
            // Left by a kill: it lets nobody in, and is not why.
            opened.file.close()?;
            return Err(error);
        }
        if let Some(asked) = parameters::only_by_engine(&self.parameters) {
            opened.file.close()?;
            let message = format!("{asked} can't be had here: {error}. {needs}");
            return Err(Error::new(Code::CANTOPEN, message));
        }
        self.note_by_stock(&error, needs);
        Ok(opened)
    }

    fn wal_engine(
        &self,
        membership: &Membership,
        begins: Option<Begins<'_>>,
    ) -> core::result::Result<Connection<Real>, Failed> {
        let process = membership.shared().of();
        engine(self.host, self.path, &self.parameters, self.flags, begins, &process)
    }

    /// `read_only`: SQLite may not write.
    fn wal_opened(
        &self,
        engine: Connection<Real>,
        membership: Membership,
        read_only: bool,
    ) -> Opened {
        let links = membership.shared().of::<Links>();
        let path = self.path.to_path_buf();
        let records = self.parameters.is_on(statements::PARAMETER);
        let link = Link::new(engine, &links, self.caller, path, read_only, records);
        link.state().choose(&self.parameters);
        let mut file = WalFile::new(
            Arc::clone(&link),
            *self.host,
            self.parameters.psow(),
            self.window.clone(),
        );
        let mode = self.parameters.mode.filter(|mode| mode.base() == MODE).unwrap_or(MODE);
        file.takes_form(mode);
        let asked = self.parameters.own(COMMIT).map(statement::protocol);
        if mode == statement::MODE && asked == Some(Ok(true)) && !read_only {
            link.state().paper.runner = Some(Executor::of(self.host).runner());
        }
        let flags = match read_only {
            true => {
                self.flags.without(OpenFlags::READWRITE | OpenFlags::CREATE) | OpenFlags::READONLY
            }
            false => self.flags,
        };
        opened(self, (mode, Box::new(file)), flags, Some(membership))
    }
}

/// Nobody else in this process has the database open, so that it may have to be put into WAL mode.
#[derive(Clone, Copy)]
pub(super) struct Begins<'a> {
    /// After what one of these modes has left.
    modes: &'a Modes,
    /// The mode was asked for; otherwise the database was found in it, and may have left it since.
    is_asked: bool,
    /// Where another process has come between, the caller chooses the mode anew.
    is_opening: bool,
}

/// Opens the engine.
pub(super) fn engine(
    host: &HostVfs,
    path: &Path,
    parameters: &Parameters,
    flags: OpenFlags,
    begins: Option<Begins<'_>>,
    process: &Arc<Process<Real>>,
) -> core::result::Result<Connection<Real>, Failed> {
    let beside = Neighbours::of(path);
    beside.leave_the_fence_its_name()?;
    let others = begins.into_iter().flat_map(|begins| begins.modes.others(MODE));
    let options = dash_wal::OpenOptions {
        kept_out_by: others.flat_map(|mode| mode.files_beside(path)).collect(),
        executor: Some(Arc::new(Executor::of(host))),
        ..parameters::options(parameters, flags.contains(OpenFlags::CREATE))
    };
    let begun = Instant::now();
    if begins.is_some() {
        dash_wal::refuse_mounted(&Real, path)?;
        if let Some(log) = &options.log {
            dash_wal::refuse_log_place(&Real, path, log)?;
        }
        beside.remove_folder_for_shared_memory();
    }
    loop {
        // Another process may have taken it out of the mode again.
        let place = Place { path, parameters, beside: &beside, creates: false };
        let enters = begins.map(|begins| put_into_wal_mode(host, &place, flags, begins));
        let stays = enters.transpose()? == Some(false);
        match (!stays).then(|| Connection::open(&Real, path, &options, process)) {
            Some(Ok(mut engine)) => {
                if begins.is_none() || is_in_wal_mode(&mut engine, &beside)? {
                    return Ok(engine);
                }
                engine.close()?;
            }
            None | Some(Err(EngineError::Busy)) => {}
            Some(Err(error)) => return Err(error.into()),
        }
        let is_kept_out =
            || options.kept_out_by.iter().any(|name| path.with_file_name(name).exists());
        if begins.is_some_and(|begins| begins.is_opening) && is_kept_out() {
            return Err(Failed::Other(in_use(path)));
        }
        if begun.elapsed() >= PATIENCE {
            let message = format!("{}: it stays as it is", could_not(path));
            let stayed = || Error::new(Code::CANTOPEN, message);
            return Err(Failed::Other(if stays { stayed() } else { in_use(path) }));
        }
        host.sleep(PAUSE);
    }
}

fn in_use(path: &Path) -> Error {
    let message = "is in use by another process or connection, which writes or opens it. Opening waits 2 s for that, whatever \
                   busy_timeout is: open it again once it has ended";
    Error::new(Code::BUSY, format!("{} {message}", path.display()))
}

/// Whether it is, as stock SQLite will see it: a log that is there is read, whatever the header
/// says, but beside an empty file it is removed.
fn is_in_wal_mode(
    engine: &mut Connection<Real>,
    beside: &Neighbours,
) -> core::result::Result<bool, Failed> {
    let mut header = [0; HEADER];
    let len = engine.database().read(&mut header, 0)?;
    Ok(says_wal(&header[..len]) || (len > 0 && beside.has_wal()?))
}

/// Has stock SQLite put a database into WAL mode, if it is not. A journal that was removed for
/// that, or before, is gone for good before there is a `-wal`: beside one it would be rolled back,
/// and what is in `-wal` put on top. Answers whether it is in WAL mode then.
fn put_into_wal_mode(
    host: &HostVfs,
    place: &Place<'_>,
    flags: OpenFlags,
    begins: Begins<'_>,
) -> Result<bool> {
    let Place { path, parameters, beside, .. } = *place;
    let modes = begins.modes;
    let has_bytes = || std::fs::metadata(path).is_ok_and(|found| found.len() > 0);
    let is_wal = || -> Result<bool> {
        let says_so = beside.says_wal(path) || (has_bytes() && beside.has_wal()?);
        Ok(says_so && !beside.has_hot_journal()?)
    };
    // Stock SQLite can do nothing beside the one, and would write an older state beside the other.
    let is_anothers =
        || Ok::<_, Error>(beside.has_fence()? || modes.other_that_holds(MODE, place)?.is_some());
    let in_use = || match beside.refuse_fence(path) {
        Err(fenced) => Error { code: Code::BUSY, ..fenced },
        Ok(()) => in_use(path),
    };
    let is_needed = || match is_wal()? {
        true => Ok(false),
        false if is_anothers()? => Err(in_use()),
        false => Ok(true),
    };
    let there = std::fs::metadata(path).ok();
    let create = flags.contains(OpenFlags::CREATE);
    if is_wal()? || (there.is_none() && !create) {
        return Ok(true);
    }
    if !begins.is_asked && modes.left_in(place)?.base() != MODE {
        return Err(in_use());
    }
    if there.is_none() {
        let mut options = std::fs::OpenOptions::new();
        let options = options.write(true).create_new(true).mode(parameters.permissions());
        if let Err(error) = options.open(path)
            && error.kind() != std::io::ErrorKind::AlreadyExists
        {
            let (operation, name) = (Operation::Open, path.display().to_string());
            return Err(to_sqlite(EngineError::Io { operation, name, source: error }));
        }
    }
    // A name fence that is there now, or a commit elsewhere, was left by somebody who was killed in
    // another mode; in front of an empty file perhaps long ago, and the rest was removed.
    if is_anothers()? && !has_log(path)? {
        modes.others(MODE).try_for_each(|mode| mode.recover(host, path))?;
    }
    let is_empty = there.is_none_or(|there| there.len() == 0) && !beside.has_journal()?;
    if !is_empty {
        summed::refuse_wal_mode(path, beside)?;
    }
    let could_not = could_not(path);
    let sql = if is_empty { BEGIN } else { ENTER };
    let (is_needed, in_use): (&dyn Fn() -> _, &dyn Fn() -> _) = (&is_needed, &in_use);
    by_stock::run(host, path, flags, &Work { sql, is_needed, in_use, could_not: &could_not })?;
    if !is_empty {
        beside.flush_folder()?;
    }
    is_wal()
}

fn could_not(path: &Path) -> String {
    format!("stock SQLite could not put {} into WAL mode", path.display())
}

/// Under a connection that had the file open in another mode. An empty file is put into WAL mode by
/// SQLite itself, with the page size that it was told.
pub(super) fn entered(switching: &Switching<'_>) -> Result<WalFile> {
    let is_empty = std::fs::metadata(switching.path).is_ok_and(|found| found.len() == 0);
    let begins = Begins { modes: switching.modes, is_asked: true, is_opening: false };
    Ok(under(switching, engine_under(switching, (!is_empty).then_some(begins))?, false))
}

/// The same, once others have put it into WAL mode; `None`: it has left that again.
pub(super) fn joined(switching: &Switching<'_>, is_read_only: bool) -> Result<Option<WalFile>> {
    let mut engine = engine_under(switching, None)?;
    match is_in_wal_mode(&mut engine, &Neighbours::of(switching.path))? {
        true => Ok(Some(under(switching, engine, is_read_only))),
        false => engine.close().map(|()| None).map_err(to_sqlite),
    }
}

fn engine_under(
    switching: &Switching<'_>,
    begins: Option<Begins<'_>>,
) -> core::result::Result<Connection<Real>, Failed> {
    let Switching { host, path, parameters, membership, .. } = switching;
    engine(host, path, parameters, OpenFlags::READWRITE, begins, &membership.shared().of())
}

fn under(switching: &Switching<'_>, engine: Connection<Real>, is_read_only: bool) -> WalFile {
    let Switching { host, path, parameters, window, membership, caller, connection, .. } =
        switching;
    let links = membership.shared().of::<Links>();
    let records = parameters.is_on(statements::PARAMETER);
    let link = Link::new(engine, &links, *caller, path.to_path_buf(), is_read_only, records);
    link.state().kept = connection.cloned();
    link.state().choose(parameters);
    WalFile::new(link, **host, parameters.psow(), (*window).clone())
}

pub(super) fn has_log(path: &Path) -> Result<bool> {
    let (folder, names) = Names::split(path).map_err(to_sqlite)?;
    let found = Real.open_directory(folder).and_then(|folder| folder.metadata(&names.log));
    Ok(found.map_err(|error| looking_for(names.shown_log(), &error))?.is_some())
}
