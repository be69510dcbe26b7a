//! Looks at names and files, without touching them.

use crate::names::Names;
use crate::shared::coordination::databases;
use dash_engine::coordination::HEAD;
use dash_engine::copied::Copied;
use dash_engine::error::{Context, Operation, Result};
use dash_engine::open::open_if_there;
use dash_storage::{Directory, File, FileId, OpenMode, SharedMemory, Storage};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::Ordering::SeqCst;

/// How often names are looked up again while somebody exchanges them.
const ATTEMPTS: usize = 100;

/// Whether a coordination file is of other files than what is named `app.db`.
pub(super) fn is_of_another<F: File>(file: &F, db: Option<FileId>, names: &Names) -> Result<bool> {
    let copied = Copied::of(file, HEAD).during(Operation::Read, names.shown_coordination())?;
    let head = std::array::from_fn(|word| copied.word(word).load(SeqCst));
    let both = databases(&head);
    Ok(both.iter().any(Option::is_some) && (db.is_none() || !both.contains(&db)))
}

pub(super) type Both<S> = (Option<<S as Storage>::File>, Option<<S as Storage>::File>);

/// What is named `app.db` and `app.db-shadow`.
pub(super) fn open_both<S: Storage>(directory: &S::Directory, names: &Names) -> Result<Both<S>> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let db = open_if_there::<S>(directory, &names.db, OpenMode::Read)?;
        let shadow = open_if_there::<S>(directory, &names.shadow, OpenMode::Read)?;
        let same = matches!((&db, &shadow), (Some(db), Some(shadow)) if db.id() == shadow.id());
        if !same || attempt == ATTEMPTS {
            return Ok((db, shadow));
        }
    }
}

/// Whether a super-journal is there. Unlike recovery this makes nothing durable: nothing follows.
pub(super) fn is_there<S: Storage>(storage: &S, folder: &Path, name: &[u8]) -> Result<bool> {
    let path = folder.join(OsStr::from_bytes(name));
    let (parent, names) = Names::split(&path)?;
    match storage.open_directory(parent) {
        Ok(parent) => {
            Ok(parent.metadata(&names.db).during(Operation::Stat, path.display())?.is_some())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).during(Operation::Open, parent.display()),
    }
}
