//! Whether somebody has a database open, without joining them.

use crate::names::Names;
use crate::shared::coordination::left_in;
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
    // Where there is no such folder, or no room for the name, nobody has.
    let Ok((folder, names)) = Names::split(path) else { return Ok(false) };
    let Ok(folder) = storage.open_directory(folder) else { return Ok(false) };
    let name = names.shown_coordination();
    let Some(file) = open_if_there::<S>(&folder, &names.coordination, OpenMode::Read)? else {
        return Ok(false);
    };
    let held = file.lock_conflict(ALIVE, LockKind::Exclusive).during(Operation::Lock, name)?;
    Ok(held.is_some() && left_in(&file, name)?.is_ours)
}
