//! A coordination file that lies there when nobody has the database open. Whose it is tells
//! nothing: any file of the database's owner may have been given that name by somebody who keeps it
//! open. So it is used as it is only if it is this database's by what it says, with the database's
//! rights; or empty, and this user's alone, as if it had just been made. A new one takes over what
//! another one says of the last session, if that is dash's at all.

use super::which::{ALIVE, CoordinationFile, DASH, HEAD, Head, LAYOUT, OPEN};
use crate::beside::OTHERS;
use crate::error::{Context, Error, Operation, Result};
use crate::io::read_padded;
use dash_storage::{Directory, File, FileId, LockKind, Metadata, OpenMode, Storage};
use std::io::ErrorKind;

const BYTES: usize = HEAD * size_of::<u64>();

/// What a file is.
enum Is {
    /// The database's own, or a new one.
    Own,
    /// The database's own with other rights.
    Bound([u8; BYTES]),
    /// Another one of dash's, such as a copy.
    Dashs([u8; BYTES]),
    /// None.
    Nothing,
}

/// Takes the file that was found, whose OPEN lock is held, or makes another one in its place, whose
/// lock is held then. Tells whether it has no bytes. `None`: somebody else was faster.
pub(crate) fn take<S: Storage>(
    storage: &S,
    directory: &S::Directory,
    which: CoordinationFile<'_>,
    (file, named): (S::File, &Metadata),
    db: Option<&Metadata>,
) -> Result<Option<(S::File, bool)>> {
    let is = look::<S>(directory, which, (&file, named), (db, storage.user()))?;
    if matches!(is, Is::Own) {
        return Ok(Some((file, named.len == 0)));
    }
    let name = which.shown;
    let used = file.lock_conflict(ALIVE, LockKind::Exclusive).during(Operation::Lock, name)?;
    match (used, is) {
        (Some(_), Is::Nothing) => Err(no_dashs(which)),
        (Some(_), _) => Ok(Some((file, false))),
        (None, is) => replace::<S>(directory, which, file, is),
    }
}

fn look<S: Storage>(
    directory: &S::Directory,
    which: CoordinationFile<'_>,
    (file, named): (&S::File, &Metadata),
    (db, user): (Option<&Metadata>, u32),
) -> Result<Is> {
    if named.len == 0 {
        // Another user who makes one finds his gone, and looks again.
        let is_new = named.permissions & OTHERS == 0 && named.owner == user;
        return Ok(if is_new { Is::Own } else { Is::Nothing });
    }
    let mut bytes = [0; BYTES];
    read_padded(file, &mut bytes, 0).during(Operation::Read, which.shown)?;
    let mut head = [0; HEAD];
    for (word, bytes) in head.iter_mut().zip(bytes.as_chunks().0) {
        *word = u64::from_ne_bytes(*bytes);
    }
    if head[0] & !LAYOUT != DASH {
        return Ok(Is::Nothing);
    }
    let bound = (which.databases)(&head);
    let is = |db: &Metadata| match bound.contains(&Some(db.id)) {
        true if named.has_access_of(db) => Is::Own,
        true => Is::Bound(bytes),
        false => Is::Dashs(bytes),
    };
    // What had the name before this process waited may have another one by now.
    match db.map(is) {
        Some(Is::Own) => Ok(Is::Own),
        _ => {
            let now = directory.metadata(which.named).during(Operation::Stat, which.db)?;
            Ok(now.as_ref().map_or(Is::Dashs(bytes), is))
        }
    }
}

/// Puts another one there, which says what the head of the former one said: nothing else counts
/// once nobody has the database open, and behind it are pages.
fn replace<S: Storage>(
    directory: &S::Directory,
    which: CoordinationFile<'_>,
    found: S::File,
    is: Is,
) -> Result<Option<(S::File, bool)>> {
    let name = which.shown;
    match (directory.unlink(which.name), &is) {
        (Err(error), _) if error.kind() == ErrorKind::NotFound => return Ok(None),
        (Err(_), Is::Bound(_)) => return Ok(Some((found, false))),
        (removed, _) => removed.map_err(|_| no_dashs(which))?,
    }
    let mode = OpenMode::CreateNew { permissions: 0o600 };
    let made = match directory.open(which.name, mode) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(None),
        made => made.during(Operation::Open, name)?,
    };
    if !made.try_lock(OPEN, LockKind::Exclusive).during(Operation::Lock, name)? {
        return Ok(None);
    }
    let named = directory.metadata(which.name).during(Operation::Stat, name)?;
    if named.is_none_or(|named| named.id != made.id()) {
        return Ok(None);
    }
    let (Is::Bound(said) | Is::Dashs(said)) = is else { return Ok(Some((made, true))) };
    if let Err(error) = made.write_at(&said, 0) {
        drop(directory.unlink(which.name));
        return Err(error).during(Operation::Write, name);
    }
    Ok(Some((made, false)))
}

/// The file that two words name by device and inode number, if they name one.
#[must_use]
pub fn named(head: &Head, device: usize, inode: usize) -> Option<FileId> {
    match (head.get(device), head.get(inode)) {
        (Some(&device), Some(&inode)) if inode != 0 => Some(FileId { device, inode }),
        _ => None,
    }
}

fn no_dashs(which: CoordinationFile<'_>) -> Error {
    Error::CantOpen(format!(
        "{} is not what dash shares of {}, and is not written: if no process has the database open, remove it",
        which.shown, which.db
    ))
}
