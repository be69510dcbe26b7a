//! Transactions over several databases (ATTACH): whether the super-journal a prepared block names
//! is still there, and its removal once nothing depends on it (F10).

use crate::file::tail::Tail;
use crate::format::State;
use crate::mutation::{Mutation, broken};
use crate::names::Names;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_storage::{Directory, File, Metadata, OpenMode, Storage};
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Databases of a transaction: no more than 125 can be attached.
const MOST: usize = 126;

/// Bytes of a super-journal that are read: their paths have 4096 bytes.
const LONGEST: u64 = 1 << 20;

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
///
/// The name comes out of a file that somebody may have made to have another one removed. So what is
/// removed has a name as SQLite makes it, lies in the database's own folder, has no other name, and
/// lists this database.
pub fn remove_if_unused<S: Storage>(
    storage: &S,
    directory: &S::Directory,
    name: &[u8],
    undone: &Path,
) -> Result<()> {
    if !is_sqlites(name) {
        return Ok(());
    }
    let name = OsStr::from_bytes(name);
    let shown = name.to_string_lossy();
    let file = match directory.open(name, OpenMode::Read) {
        Ok(file) => file,
        Err(error) if [ErrorKind::NotFound, ErrorKind::InvalidInput].contains(&error.kind()) => {
            return Ok(());
        }
        Err(error) => return Err(error).during(Operation::Open, shown),
    };
    let found = file.metadata().during(Operation::Stat, &shown)?;
    let children = children(&file, &found, &shown)?;
    let lists_it = children.len() <= MOST && children.iter().any(|child| child == undone);
    if found.links != 1 || !lists_it {
        return Ok(());
    }
    for child in children {
        let needed = !broken(Mutation::SuperJournalRemovedEarly);
        if needed && child != undone && depends(storage, &child, name.as_bytes())? {
            return Ok(());
        }
    }
    match directory.unlink(name) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other.during(Operation::Delete, shown),
    }
}

/// Whether SQLite names its super-journals like this (vdbeaux.c `vdbeCommit`): `app.db-mj`, six
/// hexadecimal digits, `9` and two more, in no other folder.
fn is_sqlites(name: &[u8]) -> bool {
    let Some((front, digits)) = name.split_last_chunk::<9>() else {
        return false;
    };
    let hex = |byte: &u8| byte.is_ascii_digit() || (b'A'..=b'F').contains(byte);
    let made = front.strip_suffix(b"-mj").is_some_and(|db| !db.is_empty());
    made && digits.iter().all(hex) && digits[6] == b'9' && !name.contains(&b'/')
}

/// The databases a super-journal lists: it holds the names of their journals, each with a zero
/// behind it (vdbeaux.c `vdbeCommit`).
pub(crate) fn children<F: File>(file: &F, found: &Metadata, shown: &str) -> Result<Vec<PathBuf>> {
    let mut bytes = dash_engine::memory::zeros(found.len.min(LONGEST))?;
    dash_engine::io::read_padded(file, &mut bytes, 0).during(Operation::Read, shown)?;
    Ok(bytes
        .split(|&byte| byte == 0)
        .filter_map(|journal| journal.strip_suffix(b"-journal"))
        .map(|db| PathBuf::from(OsStr::from_bytes(db)))
        .collect())
}

/// Whether either file of a database holds a prepared block that names this super-journal.
pub(crate) fn depends<S: Storage>(storage: &S, db: &Path, super_name: &[u8]) -> Result<bool> {
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

#[cfg(test)]
mod tests {
    use super::is_sqlites;

    #[test]
    fn sqlites_super_journals_are_told_from_other_files() {
        assert!(is_sqlites(b"app.db-mj0A1B2C9D3"));
        assert!(is_sqlites(b"a-mj000000900"));
        for other in [
            "../app.db-mj0A1B2C9D3",
            "/app.db-mj0A1B2C9D3",
            "x/a-mj0A1B2C9D3",
            "-mj0A1B2C9D3",
            "app.db-mj0A1B2C8D3",
            "app.db-mj0a1b2c9d3",
            "app.db-mj0A1B2C9D",
            "app.db-mj0A1B2C9D34",
            "authorized_keys",
            "",
        ] {
            assert!(!is_sqlites(other.as_bytes()), "{other}");
        }
    }
}
