//! Whether anybody has a database open: for who wants to do what only a closed database allows.

use std::path::Path;

use dash_storage::{File, LockKind, OpenMode, Storage};

use crate::error::{Context, Operation, Result};
use crate::locks;
use crate::names::Names;
use crate::recover::open_if_there;

/// Whether a connection that may write has the database at `path` open, in any process.
///
/// The locks on the two files don't tell: a connection that is idle since another one made a new
/// shadow holds those of the former pair.
///
/// # Errors
///
/// If the coordination file is there and can't be asked.
pub fn is_open<S: Storage>(storage: &S, path: &Path) -> Result<bool> {
    let (folder, names) = Names::split(path)?;
    let directory = storage.open_directory(folder).during(Operation::Open, folder.display())?;
    let Some(file) = open_if_there::<S>(&directory, &names.coordination, OpenMode::Read)? else {
        return Ok(false);
    };
    let holder = file.lock_conflict(locks::ALIVE, LockKind::Exclusive);
    Ok(holder.during(Operation::Lock, names.shown_coordination())?.is_some())
}
