//! Who may use the files that SQLite has beside a database in WAL mode, `-wal` and `-shm`: others
//! may have left them, such as a user who only reads. One with other rights than the database's is
//! made anew if it holds nothing and nobody has the database open; else it stays as it is.

use crate::names::Names;
use dash_engine::database::DatabaseFile;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::locks::LockLevel;
use dash_engine::open::with_remedy;
use dash_storage::{Directory, File, FileKind, OpenMode, Storage};
use std::path::Path;
use std::sync::Arc;

/// Removes such a `-wal`: the next one is the database's.
pub(crate) fn clear_wal<S: Storage>(
    directory: &S::Directory,
    names: &Names,
    database: &mut DatabaseFile<S::File>,
) -> Result<()> {
    let file = Arc::clone(database.file());
    let is_left = || {
        let found = directory.metadata(&names.wal)?;
        let is_empty = found.is_some_and(|it| it.kind == FileKind::Regular && it.len == 0);
        let open = || directory.open(&names.wal, OpenMode::Read);
        Ok(is_empty && !open().is_ok_and(|wal| wal.has_access_of(&file).unwrap_or(false)))
    };
    let is_left = || is_left().during(Operation::Stat, names.shown_wal());
    if !is_left()? {
        return Ok(());
    }
    // Nobody opens it meanwhile.
    match database.lock(LockLevel::Exclusive) {
        Err(Error::Busy) => return Ok(()),
        locked => locked?,
    }
    let is_left = is_left();
    if *is_left.as_ref().unwrap_or(&false) {
        // A user who may not goes on with what is there.
        drop(directory.unlink(&names.wal));
    }
    database.unlock(LockLevel::Shared)?;
    is_left.map(|_| ())
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
