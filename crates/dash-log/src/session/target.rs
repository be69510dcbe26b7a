//! What a place means that a person has named for the log, and why it can be none.

use super::Names;
use super::place::name_in_folder;
use crate::sign::{self, Found};
use dash_engine::error::{Context, Error, Operation, Result};
use dash_storage::{Directory, FileKind, Storage};
use std::path::{Path, PathBuf};

/// Where the log is to go.
pub(super) enum Target {
    /// Beside the database.
    Beside,
    /// To this path, as the log with this id.
    At(PathBuf, u64),
}

/// Refuses a place for the log of the database in `folder` that can be none; its opening does so,
/// too. For whoever is about to change the database before. Where a sign lies beside it only
/// opening tells.
///
/// # Errors
///
/// [`Error::CantOpen`] with what to do; those of looking.
pub fn refuse_place<S: Storage>(
    storage: &S,
    folder: &Path,
    names: &Names,
    log: &Path,
) -> Result<()> {
    let directory = storage.open_directory(folder).during(Operation::Open, folder.display())?;
    match sign::look::<S>(&directory, &names.log)? {
        Found::Sign(_) | Found::Damaged => Ok(()),
        Found::Nothing | Found::Log => target(storage, folder, names, log).map(drop),
    }
}

/// What a path means, of the log of the database in `folder`.
pub(super) fn target<S: Storage>(
    storage: &S,
    folder: &Path,
    names: &Names,
    path: &Path,
) -> Result<Target> {
    let shown = path.display();
    let refuse = |why: &str| Err(Error::CantOpen(format!("dash_log={shown}: {why}")));
    if !path.is_absolute() {
        return refuse("it must be an absolute path");
    }
    if path == folder || path == folder.join(&names.log) {
        return Ok(Target::Beside);
    }
    let name = path.file_name().unwrap_or_default();
    if path.parent() == Some(folder)
        && name.as_encoded_bytes().starts_with(names.db.as_encoded_bytes())
    {
        let db = names.shown();
        return refuse(&format!("that is a name of {db} or of a file beside it"));
    }
    let id = storage.random();
    let as_folder = match storage.open_directory(path) {
        Ok(_) => return Ok(Target::At(path.join(name_in_folder(names, id)), id)),
        Err(error) => error,
    };
    let parent = storage.open_directory(path.parent().unwrap_or(Path::new("/")));
    let parent = parent.during(Operation::Open, format!("the folder of {shown}"))?;
    match parent.metadata(name).during(Operation::Stat, path.display())? {
        None => Ok(Target::At(path.to_owned(), id)),
        Some(found) if found.kind == FileKind::Regular => refuse(
            "a file is there, which may be another database's log: name another path, or a folder, or remove it if nobody needs \
             it",
        ),
        Some(found) if found.kind == FileKind::Directory => {
            Err(as_folder).during(Operation::Open, path.display())
        }
        Some(_) => refuse(
            "what is there is neither a file nor a folder: name a folder, or a path where nothing is",
        ),
    }
}
