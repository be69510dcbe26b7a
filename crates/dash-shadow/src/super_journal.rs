//! Transactions over several databases (ATTACH): whether the super-journal a prepared block names
//! is still there, and its removal once nothing depends on it (protocols.md F10).

use crate::mutation::{Mutation, broken};
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use dash_storage::{Directory, File, OpenMode, Storage};

use crate::error::{Context, Error, Operation, Result};
use crate::format::State;
use crate::names::Names;
use crate::tail::Tail;

/// Whether the super-journal named in a block exists. "Gone" is answered only after the directory
/// is durable: a power loss must not bring the file back after it was acted upon (F10 c).
pub fn exists_durably<S: Storage>(storage: &S, directory: &Path, name: &[u8]) -> Result<bool> {
    let path = directory.join(OsStr::from_bytes(name));
    let (parent, names) = Names::split(&path)?;
    let shown = path.display().to_string();
    let parent = match storage.open_directory(parent) {
        Ok(parent) => parent,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(Error::CantOpen(format!(
                "a transaction over several databases was cut off, and the folder of its super-journal {shown} is gone: \
                 put the databases back where they were together"
            )));
        }
        Err(error) => return Err(error).during(Operation::Open, shown),
    };
    if parent.metadata(&names.db).during(Operation::Stat, &shown)?.is_some() {
        return Ok(!broken(Mutation::SuperJournalIgnored));
    }
    if !broken(Mutation::GoneSuperJournalNotFlushed) {
        parent.flush().during(Operation::FlushDirectory, shown)?;
    }
    Ok(false)
}

/// Removes a super-journal whose transaction was undone in `undone`, if no other database it lists
/// still depends on it. Leaves it where it is if one can't be looked at.
pub fn remove_if_unused<S: Storage>(
    storage: &S,
    directory: &Path,
    name: &[u8],
    undone: &Path,
) -> Result<()> {
    let path = directory.join(OsStr::from_bytes(name));
    let (parent, names) = Names::split(&path)?;
    let shown = path.display().to_string();
    let parent = storage.open_directory(parent).during(Operation::Open, &shown)?;
    for child in children::<S>(&parent, &names.db, &shown)? {
        let needed = !broken(Mutation::SuperJournalRemovedEarly);
        if needed && child != undone && depends(storage, &child, names.db.as_bytes())? {
            return Ok(());
        }
    }
    match parent.unlink(&names.db) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other.during(Operation::Delete, shown),
    }
}

/// The databases a super-journal lists: it holds the names of their journals, each with a zero
/// behind it (vdbeaux.c `vdbeCommit`).
fn children<S: Storage>(parent: &S::Directory, name: &OsStr, shown: &str) -> Result<Vec<PathBuf>> {
    let file = match parent.open(name, OpenMode::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).during(Operation::Open, shown),
    };
    let len = file.metadata().during(Operation::Stat, shown)?.len;
    let mut bytes = crate::memory::zeros(len.min(1 << 20))?;
    crate::tail::read_padded(&file, &mut bytes, 0).during(Operation::Read, shown)?;
    Ok(bytes
        .split(|&byte| byte == 0)
        .filter_map(|journal| journal.strip_suffix(b"-journal"))
        .map(|db| PathBuf::from(OsStr::from_bytes(db)))
        .collect())
}

/// Whether either file of a database holds a prepared block that names this super-journal.
fn depends<S: Storage>(storage: &S, db: &Path, super_name: &[u8]) -> Result<bool> {
    let (directory, names) = Names::split(db)?;
    let shown = db.display().to_string();
    let Ok(directory) = storage.open_directory(directory) else {
        return Ok(true);
    };
    for name in [&names.db, &names.shadow] {
        let file = match directory.open(name, OpenMode::Read) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(_) => return Ok(true),
        };
        let tail = Tail::read(&file, &shown)?;
        let named = tail.bound(file.id()).is_some_and(|block| {
            block.state == State::Prepared
                && block.super_journal.rsplit(|&byte| byte == b'/').next() == Some(super_name)
        });
        if named {
            return Ok(true);
        }
    }
    Ok(false)
}
