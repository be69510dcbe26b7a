//! Files that are mounted by themselves, as containers do with a single file: the name belongs to
//! the mount, and can't be exchanged. The mount follows the file, not the name: when names are
//! exchanged outside, it goes on showing what is an older copy then.

use crate::names::Names;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_storage::{Directory, Storage};

/// Refuses to write a database one of whose names can't be exchanged or removed.
pub fn check<S: Storage>(directory: &S::Directory, names: &Names) -> Result<()> {
    for name in [&names.db, &names.shadow, &names.coordination] {
        let shown = name.to_string_lossy();
        if directory.is_mount_point(name).during(Operation::Stat, &shown)? {
            return Err(Error::CantOpen(format!(
                "{shown} is mounted by itself, so its name can't be exchanged as a commit has to: mount the folder that it is in instead \
                 (docker: -v ./data:/data, not -v ./data/{shown}:/data/{shown}), or open the database with journal_mode=delete"
            )));
        }
    }
    Ok(())
}

/// What a reader is told whose file has become the older copy.
pub fn older(names: &Names) -> Error {
    Error::CantOpen(format!(
        "{} is mounted by itself, and an older copy since its name was exchanged outside the mount: mount the folder that it is in instead",
        names.shown()
    ))
}
