//! A database's file that is mounted by itself, as containers do with a single file. Its `-wal` and
//! its log lie in another folder than those of whoever opens the same file outside, and go with the
//! container: what is durable there alone is lost then.

use crate::names::Names;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_storage::{Directory, Storage};
use std::path::Path;

/// Refuses the database at `path` if it is mounted by itself; its opening does so, too. For whoever
/// is about to change it before.
///
/// # Errors
///
/// [`Error::CantOpen`] with what to do; those of looking.
pub fn refuse_mounted<S: Storage>(storage: &S, path: &Path) -> Result<()> {
    let (folder, names) = Names::split(path)?;
    let directory = storage.open_directory(folder).during(Operation::Open, folder.display())?;
    check::<S>(&directory, &names)
}

/// The same, in its folder.
pub(crate) fn check<S: Storage>(directory: &S::Directory, names: &Names) -> Result<()> {
    let db = names.shown();
    if !directory.is_mount_point(&names.db).during(Operation::Stat, db)? {
        return Ok(());
    }
    Err(Error::CantOpen(format!(
        "{db} is mounted by itself, so {} and {} would not lie beside it where it is kept, and commits that only they hold \
         would be lost: mount the folder that it is in instead (docker: -v ./data:/data, not -v ./data/{db}:/data/{db}), or \
         open the database with journal_mode=delete",
        names.shown_wal(),
        names.shown_log()
    )))
}
