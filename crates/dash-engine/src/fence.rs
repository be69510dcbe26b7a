//! The name fence: a folder where SQLite looks for a hot journal. As long as it stands stock SQLite
//! can't read or write the database ("disk I/O error"), and touches nothing.

use crate::error::{Context, Operation, Result};
use dash_storage::{Directory, FileKind, Storage};
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::Path;

/// Puts up a fence that need not survive a power loss. One that stands already does, too, and so
/// does a journal that is not hot.
///
/// # Errors
///
/// Those of the file system.
pub fn raise_passing<D: Directory>(directory: &D, fence: &OsStr) -> Result<()> {
    match directory.create_directory(fence) {
        // Somebody else has just done it.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        other => other.during(Operation::Open, fence.to_string_lossy()),
    }
}

/// What there was under a fence's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// No name.
    Nothing,
    /// A fence.
    Fence,
    /// A rollback journal.
    Journal,
}

/// Looks.
///
/// # Errors
///
/// Those of the file system.
pub fn find<D: Directory>(directory: &D, fence: &OsStr) -> Result<Found> {
    let found = directory.metadata(fence).during(Operation::Stat, fence.to_string_lossy())?;
    Ok(match found {
        None => Found::Nothing,
        Some(found) if found.kind == FileKind::Directory => Found::Fence,
        Some(_) => Found::Journal,
    })
}

/// Makes a folder that is to be a fence under the name `lowered`, if it is not there.
///
/// # Errors
///
/// Those of the file system.
pub fn make<D: Directory>(directory: &D, lowered: &OsStr) -> Result<()> {
    raise_passing(directory, lowered)
}

/// Makes the folder itself durable. Where the file system has no journal a name may outlive a power
/// loss without what it names, or with what had that inode number before, such as a stale journal.
/// So the folder is durable before it has the fence's name.
///
/// # Errors
///
/// Those of the file system.
pub fn flush<S: Storage>(storage: &S, directory_path: &Path, name: &OsStr) -> Result<()> {
    let path = directory_path.join(name);
    let fence = storage.open_directory(&path);
    let flushed = fence.and_then(|fence| fence.flush());
    flushed.during(Operation::FlushDirectory, path.display())
}

/// Gives the folder that was made its name. A flush of the directory that it is in makes that
/// durable.
///
/// # Errors
///
/// Those of the file system.
pub fn raise<D: Directory>(directory: &D, lowered: &OsStr, fence: &OsStr) -> Result<()> {
    match directory.rename(lowered, fence) {
        Ok(()) => Ok(()),
        Err(_) => raise_passing(directory, fence),
    }
}
