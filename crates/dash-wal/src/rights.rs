//! Who may use the files that SQLite has beside a database in WAL mode, `-wal` and `-shm`: others
//! may have left them, such as a user who only reads. Who may give them to those who use the
//! database does so at each opening, as stock SQLite does where it runs as root (os_unix.c
//! `robustFchown`).

use crate::names::Names;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::open::with_remedy;
use dash_storage::{File, Storage};
use std::path::Path;

const ROOT: u32 = 0;

/// Gives an open file the database's owner, group, bits and list, as far as that is for this user
/// to do.
pub(crate) fn hand_over<S: Storage>(
    storage: &S,
    file: &S::File,
    database: &S::File,
    shown: &str,
) -> Result<()> {
    let stat = |file: &S::File| file.metadata().during(Operation::Stat, shown);
    let is_to_give = match storage.user() {
        ROOT => !file.has_access_of(database).during(Operation::Stat, shown)?,
        user => {
            let (own, wanted) = (stat(file)?, stat(database)?);
            let rights = (own.group, own.permissions) != (wanted.group, wanted.permissions);
            own.owner == user && rights
        }
    };
    if is_to_give {
        drop(file.copy_access(database));
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
