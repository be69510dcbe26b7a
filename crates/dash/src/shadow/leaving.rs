//! Leaving mode shadow: what stays is a plain SQLite file, without a shadow.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use dash_ffi::{Code, Error, File, HostVfs, LockLevel, OpenFlags, Result};
use dash_shadow::{Connection, Error as EngineError, OpenOptions, Operation};
use dash_storage::real::Real;
use dash_storage::{Directory, OpenMode, Storage};

use crate::by_stock::{PATIENCE, PAUSE};
use crate::clearing;
use crate::controls::has_moved;
use crate::errors::{looking_for, to_sqlite};
use crate::leftovers::{HEADER, Leftover, Neighbours};
use crate::mode::{Mode, Parameters, Place, in_use};
use crate::own_file::OwnFile;

/// Whether there is a shadow that may hold the newest commit: whoever had the database open has not
/// closed it.
pub(super) fn is_unfinished(path: &Path) -> Result<bool> {
    Ok(has_shadow(path)? && !dash_shadow::is_at_rest(&Real, path).map_err(to_sqlite)?)
}

fn has_shadow(path: &Path) -> Result<bool> {
    let (folder, names) = dash_shadow::Names::split(path).map_err(to_sqlite)?;
    let found = Real.open_directory(folder).and_then(|folder| folder.metadata(&names.shadow));
    Ok(found.map_err(|error| looking_for(names.shadow.display(), &error))?.is_some())
}

/// See [`crate::mode::Mode::give_way`]: gives the newest copy its name, as after any opening, and
/// removes the other one. A plain file is in nobody's way beside a shadow at rest.
pub(super) fn give_way(host: &HostVfs, place: &Place<'_>, to: &dyn Mode) -> Result<()> {
    let path = place.path;
    if !has_shadow(path)? || (to.is_plain() && !needs_recovery(path)?) {
        return Ok(());
    }
    let permissions = place.creates.then(|| place.parameters.permissions());
    recover(host, path, permissions)
}

/// Opens and closes a database of this mode whose programs were killed, and leaves it as a plain
/// file without a name fence. There may be no shadow: then the fence is all that they have left.
/// With `permissions` an empty one is made where it was removed at rest.
///
/// # Errors
///
/// `SQLITE_BUSY` while somebody has it open; those of the engine.
pub(super) fn recover(host: &HostVfs, path: &Path, permissions: Option<u32>) -> Result<()> {
    let defaults = OpenOptions::default();
    let create = permissions.is_some();
    let permissions = permissions.unwrap_or(defaults.permissions);
    let options = OpenOptions { create, permissions, ..defaults };
    let (begun, mut cleared) = (Instant::now(), false);
    let engine = loop {
        match Connection::open(&Real, path, &options) {
            Err(EngineError::Busy) if begun.elapsed() < PATIENCE => {
                host.sleep(PAUSE);
            }
            Err(EngineError::Busy) => return Err(in_use(path)),
            // It is no whole file where a program in WAL mode was killed in a checkpoint.
            Err(EngineError::Corrupt(_)) if !cleared && Neighbours::of(path).has_wal()? => {
                clearing::clear(host, path, OpenFlags::READWRITE, Leftover::Wal, true)?;
                cleared = true;
            }
            other => break other.map_err(to_sqlite)?,
        }
    };
    note_put_aside(host, path, &engine);
    let mut tell = |message: &str| host.note(Code::WARNING, message);
    engine.close_telling(&mut tell).map_err(to_sqlite)?;
    become_plain(path)
}

/// Says what became of the shadow of a database that was removed.
pub(super) fn note_put_aside(host: &HostVfs, path: &Path, engine: &Connection<Real>) {
    if !engine.has_put_aside() {
        return;
    }
    let shown = path.display();
    let message = format!(
        "{shown} was removed or moved away after a clean close, and a new one begins: its second copy is {shown}-shadow-old now. \
         Remove that; or, to have its content back, give it the name other.db-shadow and run `sqlite-dash recover other.db`"
    );
    host.note(Code::WARNING, &message);
}

/// Whether the newest commit of a database that nobody has open in this mode is in the shadow, or
/// can't be had without the engine. Who has it open recovers it first: that takes a moment, but
/// what is behind their name fence stays so.
fn needs_recovery(path: &Path) -> Result<bool> {
    let found = dash_shadow::inspect(&Real, path).map_err(to_sqlite)?;
    match (found.needs_recovery(), found.open, found.beside.fence) {
        (true, true, false) => Err(in_use(path)),
        (needed, open, _) => Ok(needed && !open),
    }
}

/// Refuses to read the older copy as a plain file: to give the newest one its name takes the right
/// to write.
///
/// # Errors
///
/// `SQLITE_CANTOPEN`.
pub(crate) fn refuse_older(path: &Path) -> Result<()> {
    if !has_shadow(path)? || !needs_recovery(path)? {
        return Ok(());
    }
    let shown = path.display();
    let message = format!(
        "{shown} is not the newest copy, or was being written when its programs were stopped: {shown}-shadow holds \
         the other one; open it once through dash for writing, or read it without the parameter journal_mode"
    );
    Err(Error::new(Code::CANTOPEN, message))
}

/// Removes the shadow, under a lock that no connection of dash, old or new, lets pass: RESERVED.
pub(super) fn become_plain(path: &Path) -> Result<()> {
    let parameters = Parameters::default();
    let file = OwnFile::open(path, OpenMode::ReadWrite, &parameters, Arc::default());
    let mut file = file.map_err(to_sqlite)?;
    for level in [LockLevel::Shared, LockLevel::Reserved] {
        file.lock(level).map_err(|error: Error| match error.code.primary() {
            Code::BUSY => in_use(path),
            _ => error,
        })?;
    }
    let mut start = [0; HEADER];
    file.read(&mut start, 0)?;
    if dash_shadow::is_protected(&start) {
        return Err(in_use(path));
    }
    // An idle connection may hold RESERVED of files that have been replaced since, and a process
    // that recovers it holds none yet.
    let removed = dash_shadow::while_closed(&Real, path, || {
        // Nor if another connection was killed just now: what it left may be in the shadow.
        let at_rest = dash_shadow::is_at_rest(&Real, path).map_err(to_sqlite)?;
        if has_moved(&mut file)? || !at_rest {
            return Err(in_use(path));
        }
        remove_shadow(path)
    });
    match removed {
        Err(EngineError::Busy) => return Err(in_use(path)),
        other => other.map_err(to_sqlite)??,
    }
    file.unlock(LockLevel::None)
}

/// Removes the shadow, after the names are durable: a power loss must not find the older copy under
/// the database's name and nothing beside it.
fn remove_shadow(path: &Path) -> Result<()> {
    let failed = |operation: Operation| {
        move |source| {
            let name = format!("{}-shadow", path.display());
            to_sqlite(EngineError::Io { operation, name, source })
        }
    };
    let (folder, names) = dash_shadow::Names::split(path).map_err(to_sqlite)?;
    let folder = Real.open_directory(folder).map_err(failed(Operation::Open))?;
    folder.flush().map_err(failed(Operation::FlushDirectory))?;
    match folder.unlink(&names.shadow) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(failed(Operation::Delete)),
    }
}
