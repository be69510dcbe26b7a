//! Super-journals that nothing depends on: SQLite makes one, with the list of the databases in it,
//! before the first of them is prepared under it. Killed in between, it leaves a file that no
//! recovery is led to.
//!
//! Removing one that a running transaction made would let that commit half-way, so nobody may be
//! writing any of the listed databases: whoever made it has held the write locks of all of them
//! since before it was made. Whatever can't be looked at keeps it.

use crate::names::Names;
use crate::names::super_journal::{children, depends};
use crate::shared::locks;
use dash_engine::error::{Context, Operation, Result};
use dash_storage::{Directory, File, FileKind, LockKind, OpenMode, Storage};
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::Path;

/// Removes the super-journal `name` beside the database at `db`, which the caller does not write,
/// if it is an orphan. Whether it was.
pub fn remove_orphan<S: Storage>(storage: &S, db: &Path, name: &OsStr) -> Result<bool> {
    let (folder, _) = Names::split(db)?;
    let shown = folder.join(name).display().to_string();
    let directory = storage.open_directory(folder).during(Operation::Open, &shown)?;
    let found = directory.metadata(name).during(Operation::Stat, &shown)?;
    if found.is_none_or(|found| found.kind != FileKind::Regular) {
        return Ok(false);
    }
    let file = match directory.open(name, OpenMode::Read) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        file => file.during(Operation::Open, &shown)?,
    };
    let found = file.metadata().during(Operation::Stat, &shown)?;
    let children = children(&file, &found, &shown)?;
    // Empty or of one: its list is still being written, for all one can see.
    if children.len() < 2 {
        return Ok(false);
    }
    for child in &children {
        let written = child != db && is_being_written(storage, child)?;
        if written || depends(storage, child, name.as_encoded_bytes())? {
            return Ok(false);
        }
    }
    match directory.unlink(name) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        other => other.map(|()| true).during(Operation::Delete, shown),
    }
}

/// Whether somebody is in a write transaction on a database, or has left a rollback journal; also
/// if that can't be told.
fn is_being_written<S: Storage>(storage: &S, db: &Path) -> Result<bool> {
    let (folder, names) = Names::split(db)?;
    let Ok(directory) = storage.open_directory(folder) else {
        return Ok(true);
    };
    let journal = directory.metadata(&names.fence);
    if journal.is_ok_and(|found| found.is_some_and(|found| found.kind == FileKind::Regular)) {
        return Ok(true);
    }
    let places = [
        // Stock writers; every dash connection shares it.
        (&names.db, locks::RESERVED, LockKind::Shared),
        (&names.shadow, locks::RESERVED, LockKind::Shared),
        (&names.coordination, locks::WRITER, LockKind::Shared),
    ];
    for (name, range, kind) in places {
        let free = match directory.open(name, OpenMode::Read) {
            Ok(file) => matches!(file.lock_conflict(range, kind), Ok(None)),
            Err(error) => error.kind() == ErrorKind::NotFound,
        };
        if !free {
            return Ok(true);
        }
    }
    Ok(false)
}
