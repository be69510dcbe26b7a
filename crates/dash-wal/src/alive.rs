//! Whether somebody has a database open, without joining them.

use crate::names::Names;
use crate::shared::coordination::{Left, left_in};
use dash_engine::coordination::{self, OPEN_PATIENCE, open_coordination, read_living};
use dash_engine::error::{Context, Error, Operation, Result};
use dash_storage::{Directory, Storage};
use std::path::Path;

/// Whether a connection of this engine, in any process, has the database at `path` open.
///
/// # Errors
///
/// Those of the files.
pub fn is_open<S: Storage>(storage: &S, path: &Path) -> Result<bool> {
    living(storage, path).map(|left| left.is_some())
}

/// Does something while no connection has the database at `path` open for writing, in any process,
/// and none can be opened, recovered or closed.
///
/// # Errors
///
/// [`Error::Busy`] if one has, or if somebody opens or closes it for very long; those of the files.
pub fn while_closed<S: Storage, T>(storage: &S, path: &Path, act: impl FnOnce() -> T) -> Result<T> {
    let (folder, names) = Names::split(path)?;
    let directory = storage.open_directory(folder).during(Operation::Open, folder.display())?;
    let stat = |name, shown: &str| directory.metadata(name).during(Operation::Stat, shown);
    let db = stat(&names.db, names.shown())?;
    let which = names.coordination_file();
    let stays = stat(&names.coordination, which.shown)?.is_some();
    let open = || open_coordination(storage, &directory, which, db.as_ref(), OPEN_PATIENCE);
    coordination::while_closed::<S, T>((&directory, which, stays), open, act)
}

/// Whether one has, with `-wal` in the memory of its process.
///
/// # Errors
///
/// Those of the files.
pub fn is_in_memory<S: Storage>(storage: &S, path: &Path) -> Result<bool> {
    living(storage, path).map(|left| left.is_some_and(|left| left.in_memory_of.is_some()))
}

/// Refuses a database that another process has open so: what a file system lets this one read of it
/// is behind on purpose.
///
/// # Errors
///
/// `Held`, which names the process; those of the files.
pub fn refuse_in_memory<S: Storage>(storage: &S, path: &Path) -> Result<()> {
    let process = living(storage, path)?.and_then(|left| left.in_memory_of);
    let Some(process) = process else { return Ok(()) };
    let shown = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    Err(in_memory_of(process, &shown))
}

/// What whoever wants to join is told.
pub(crate) fn in_memory_of(process: u64, db: &str) -> Error {
    Error::Held(format!(
        "process {process} has {db} open with dash_wal=memory, so that its last commits are in memory which no other process \
         sees: close it there first, or open it there without that; SELECT dash_backup(path) there makes a copy. Where there is \
         no such process, somebody else holds a lock on {db}-dash: lslocks tells who it is"
    ))
}

/// What those say in the coordination file who have it open.
fn living<S: Storage>(storage: &S, path: &Path) -> Result<Option<Left>> {
    // Where there is no such folder, or no room for the name, nobody has.
    let Ok((folder, names)) = Names::split(path) else { return Ok(None) };
    let Ok(folder) = storage.open_directory(folder) else { return Ok(None) };
    let name = names.shown_coordination();
    let Some(file) = read_living::<S>(&folder, names.coordination_file())? else {
        return Ok(None);
    };
    Ok(Some(left_in(&file, name)?).filter(|left| left.is_ours))
}
