//! Who may use the files that SQLite has beside a database in WAL mode, `-wal` and `-shm`: others
//! may have left them, such as a user who only reads. What they hold does not tell whose they are,
//! so one of another user than the database's owner stays as it is.

use crate::names::Names;
use crate::recovery::look::raw_header;
use dash_engine::beside::follow;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::locks::SHARED;
use dash_engine::open::with_remedy;
use dash_storage::{Directory, File, FileKind, LockKind, Storage};
use std::path::Path;

/// Gives `-wal` the rights of the database, if it is one.
pub(crate) fn follow_wal<S: Storage>(
    storage: &S,
    directory: &S::Directory,
    names: &Names,
    [wal, database]: [&S::File; 2],
) -> Result<()> {
    let shown = names.shown_wal();
    let is_wal = || {
        let is_empty = wal.metadata().is_ok_and(|found| found.len == 0);
        Ok(is_empty || raw_header(wal, shown)?.is_some())
    };
    follow(storage, directory, (&names.wal, &**shown), [wal, database], is_wal)
}

/// Removes an empty `-wal` of another user than the database's owner, where nobody has the database
/// open: the next one is the database's.
pub(crate) fn clear_wal<S: Storage>(
    directory: &S::Directory,
    names: &Names,
    database: &S::File,
) -> Result<()> {
    let shown = names.shown_wal();
    let Some(wal) = directory.metadata(&names.wal).during(Operation::Stat, shown)? else {
        return Ok(());
    };
    let owner = || Ok(database.metadata().during(Operation::Stat, shown)?.owner);
    if wal.kind != FileKind::Regular || wal.len > 0 || wal.owner == owner()? {
        return Ok(());
    }
    let used = database.lock_conflict(SHARED, LockKind::Exclusive);
    if used.during(Operation::Lock, names.shown())?.is_none() {
        // A user who may not goes on with what is there.
        drop(directory.unlink(&names.wal));
    }
    Ok(())
}

/// Says whose a file beside the database is, if that is why it can't be opened.
pub(crate) fn explained<S: Storage>(
    error: Error,
    storage: &S,
    folder: &Path,
    names: &Names,
) -> Error {
    let files = [&names.wal, &names.shm, &names.log, &names.coordination];
    with_remedy(error, storage, folder, (&names.db, &files.map(|name| &**name)))
}
