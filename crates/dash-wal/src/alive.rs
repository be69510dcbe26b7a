//! Whether somebody has a database open, without joining them.

use crate::names::Names;
use crate::shared::coordination::{Left, left_in};
use crate::shared::locks::ALIVE;
use dash_engine::error::{Context, Operation, Result};
use dash_engine::open::open_if_there;
use dash_storage::{File, LockKind, OpenMode, Storage};
use std::path::Path;

/// Whether a connection of this engine, in any process, has the database at `path` open.
///
/// # Errors
///
/// Those of the files.
pub fn is_open<S: Storage>(storage: &S, path: &Path) -> Result<bool> {
    living(storage, path).map(|left| left.is_some())
}

/// Whether one has, with `-wal` in the memory of its process.
///
/// # Errors
///
/// Those of the files.
pub fn is_in_memory<S: Storage>(storage: &S, path: &Path) -> Result<bool> {
    living(storage, path).map(|left| left.is_some_and(|left| left.in_memory_of.is_some()))
}

/// What those say in the coordination file who have it open.
fn living<S: Storage>(storage: &S, path: &Path) -> Result<Option<Left>> {
    // Where there is no such folder, or no room for the name, nobody has.
    let Ok((folder, names)) = Names::split(path) else { return Ok(None) };
    let Ok(folder) = storage.open_directory(folder) else { return Ok(None) };
    let name = names.shown_coordination();
    let Some(file) = open_if_there::<S>(&folder, &names.coordination, OpenMode::Read)? else {
        return Ok(None);
    };
    let held = file.lock_conflict(ALIVE, LockKind::Exclusive).during(Operation::Lock, name)?;
    Ok(match held {
        Some(_) => Some(left_in(&file, name)?).filter(|left| left.is_ours),
        None => None,
    })
}
