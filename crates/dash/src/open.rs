//! Opening a main database: which mode, which rights, and what has to be done first.
//!
//! | | |
//! |---|---|
//! | in memory, without a name | the host |
//! | `journal_mode=delete` (or another of SQLite's own) | a plain file: [`crate::own_file`], or the host's where it is only read |
//! | other connections of this process have it open as a plain file | likewise |
//! | empty, or in rollback mode and nobody uses it, and no mode is asked for | a plain file, until the mode is chosen: [`crate::undecided`] |
//! | in WAL mode | mode wal, unless `dash_default` says otherwise |
//! | for reading: with a hot journal of stock SQLite, or in WAL mode and closed | through the host, as stock does |
//! | no SQLite database, and no shadow beside it | likewise: SQLite itself says so, at the first read |
//! | for reading, or nothing else is possible | the engine, read-only |
//! | all else | the engine |

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dash_engine::error::{Context, Error as EngineError, Operation};
use dash_engine::open::with_remedy;
use dash_ffi::{AccessCheck, Code, Error, FileName, HostVfs, OpenFlags, Opened, Result};
use dash_storage::real::Real;
use dash_storage::{OpenMode, Storage};

use crate::by_stock::{PATIENCE, PAUSE};
use crate::errors::{forbids_writing, to_sqlite, whose};
use crate::file_system;
use crate::leftovers::Neighbours;
use crate::main_file::MainFile;
use crate::mode::caller::Caller;
use crate::mode::{Mode, Opening, Parameters, Request, registry};
use crate::modes::MODES;
use crate::own_file::open_file;
use crate::undecided;

/// For how long another process may be at it to mend what a killed one left.
const MENDING: Duration = Duration::from_millis(50);

/// Opens a file of kind main database.
pub fn main_database(host: &HostVfs, name: FileName<'_>, flags: OpenFlags) -> Result<Opened> {
    let path = match name.path() {
        Some(path) if !flags.contains(OpenFlags::MEMORY) => path,
        _ => return through_host(host, name, flags),
    };
    let (begun, mut met, mut looked_again) = (Instant::now(), None, false);
    loop {
        let request = request(host, name, path, flags)?;
        let chosen = chosen(&request)?;
        let opened = open_in(request, chosen);
        // Others may open it or change its mode right now.
        let passes = match opened.as_ref().map_err(|error| error.code.primary()) {
            Err(Code::BUSY) => true,
            // Who may not write looks at both copies while another process may be mending them.
            Err(Code::CORRUPT) if !looked_again => {
                looked_again = true;
                host.sleep(MENDING);
                true
            }
            Err(Code::CANTOPEN | Code::CORRUPT) => {
                let request = self::request(host, name, path, flags)?;
                let found = MODES.left_in(&request.place())?;
                // Once more for each other mode that it is found in: that may have come between.
                let is_other = found != chosen.base() && met != Some(found);
                met = Some(found);
                is_other || self::chosen(&request)? != chosen
            }
            _ => false,
        };
        if !passes || begun.elapsed() >= PATIENCE {
            return opened.map_err(|error| of_unreadable(host, path, error));
        }
        host.sleep(PAUSE);
    }
}

/// The error, unless the process may not read the database, or may not make it where there is none:
/// then whose that is. Something beside it failed, or the host's SQLite, which does not say more.
fn of_unreadable(host: &HostVfs, path: &Path, error: Error) -> Error {
    let (Some(folder), Some(db)) = (path.parent(), path.file_name()) else { return error };
    if error.code.primary() != Code::CANTOPEN {
        return error;
    }
    match open_file(path, OpenMode::Read).during(Operation::Open, db.to_string_lossy()) {
        Err(denied) if forbids_writing(&denied) => {
            to_sqlite(with_remedy(denied, &Real, folder, (db, &[])))
        }
        Err(EngineError::Io { source, .. })
            if source.kind() == ErrorKind::NotFound
                && host.access(folder, AccessCheck::ReadWrite) == Ok(false) =>
        {
            let (db, whose, user) = (db.to_string_lossy(), whose(folder), Real.user());
            let message = format!(
                "{db} is to be made, its folder is {whose}, and this process is user {user}: run it as that user, or have them give this \
                 one the right to write it"
            );
            Error::new(error.code, message)
        }
        _ => error,
    }
}

fn request<'a>(
    host: &'a HostVfs,
    name: FileName<'a>,
    path: &'a Path,
    flags: OpenFlags,
) -> Result<Request<'a>> {
    let parameters = Parameters::of(&name, &MODES)?;
    let (beside, caller, window) = (Neighbours::of(path), Caller::new(path), Arc::default());
    Ok(Request { host, name, path, flags, parameters, window, beside, caller, modes: &MODES })
}

/// The mode that is asked for, or that others of this process have, or that the file is in.
fn chosen(request: &Request<'_>) -> Result<&'static dyn Mode> {
    match request.parameters.mode.or_else(|| registry::mode_of(request.path)) {
        Some(mode) => Ok(mode),
        None => MODES.left_in(&request.place()),
    }
}

fn open_in(request: Request<'_>, chosen: &'static dyn Mode) -> Result<Opened> {
    let (path, wanted) = (request.path, request.parameters.mode);
    let reading = !request.flags.contains(OpenFlags::READWRITE) || request.parameters.immutable;
    if reading && chosen.stock_has_to_read(&request)? {
        return request.plain(None);
    }
    if request.parameters.nolock && !reading {
        return Err(Error::new(
            Code::CANTOPEN,
            "nolock=1: without locks the copy that a commit goes to is not safe; for reading a file that nobody writes use immutable=1",
        ));
    }
    if !chosen.is_plain() && !request.parameters.immutable {
        file_system::check(path, &request.beside, &request.parameters, reading)?;
    }
    if !reading
        && chosen == MODES.0[0]
        && undecided::can_wait(&request)?
        && let Some(opened) = undecided::open(&request)?
    {
        return Ok(opened);
    }
    let joined = registry::join(path, wanted.map(<dyn Mode>::base), chosen.base());
    let (membership, mode) = joined.map_err(|mode| conflict(path, mode))?;
    let alone = !reading && membership.is_alone();
    for other in MODES.others(mode).filter(|_| alone) {
        other.give_way(request.host, &request.place(), mode)?;
    }
    let form = wanted.unwrap_or(mode);
    let mut opened = form.open(Opening { request, reading, membership })?;
    let may_write = opened.flags.contains(OpenFlags::READWRITE);
    if let Some(file) = opened.file.downcast_mut::<MainFile>() {
        file.note_ignored(form, !reading && !may_write);
    }
    let written = alone && may_write;
    for other in MODES.others(mode).filter(|_| written) {
        other.forget(path, !mode.is_plain());
    }
    Ok(opened)
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
