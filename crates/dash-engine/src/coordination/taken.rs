//! A coordination file that lies there when nobody has the database open. Whose it is tells
//! nothing: any file of the database's owner may have been given that name by somebody who keeps it
//! open. So it is used as it is only if it is this database's by what it says, with the database's
//! rights; or empty, and this user's alone, as if it had just been made. A new one takes over what
//! another one says of the last session, if that is dash's at all.
//!
//! That somebody has it open, a lock says, which any reader of the file may hold, and give up at
//! any time. So another database's is not used then, either; and who finds himself alone behind
//! that looks again, at what he has opened.

use super::which::{ALIVE, CoordinationFile, DASH, HEAD, Head, LAYOUT, OPEN, OPEN_PAUSE};
use crate::beside::OTHERS;
use crate::error::{Context, Error, Operation, Result};
use crate::io::read_padded;
use dash_storage::{Directory, File, FileId, LockKind, Metadata, OpenMode, Storage};
use std::io::ErrorKind;

const BYTES: usize = HEAD * size_of::<u64>();

/// How often the file of a database that is open is looked at, whose files may be changing places.
const LOOKS: usize = 4;

/// What a coordination file that is to be used was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Was {
    /// It has no bytes.
    Empty,
    /// Just made; it says what a former one said.
    Made,
    /// As it is.
    There,
}

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
/// lock is held then. `None`: somebody else was faster.
pub(crate) fn take<S: Storage>(
    storage: &S,
    directory: &S::Directory,
    which: CoordinationFile<'_>,
    (file, named): (S::File, &Metadata),
    db: Option<&Metadata>,
) -> Result<Option<(S::File, Was)>> {
    // Another user who makes one finds his gone, and looks again.
    if named.len == 0 && named.permissions & OTHERS == 0 && named.owner == storage.user() {
        return Ok(Some((file, Was::Empty)));
    }
    let mut looks = 0;
    loop {
        looks += 1;
        let is = look::<S>(directory, which, (&file, named), db)?;
        let used = file.lock_conflict(ALIVE, LockKind::Exclusive);
        let is = match (used.during(Operation::Lock, which.shown)?.is_some(), is) {
            (true, Is::Own | Is::Bound(_)) => return Ok(Some((file, Was::There))),
            (true, Is::Dashs(_)) if looks < LOOKS => {
                storage.sleep(OPEN_PAUSE);
                continue;
            }
            (true, Is::Dashs(said)) => return Err(anothers(which, &words(&said))),
            (true, Is::Nothing) => return Err(no_dashs(which)),
            (false, Is::Own) => {
                let opened = directory.open(which.named, OpenMode::Read);
                look_at(which, &file, opened.ok().as_ref())?
            }
            (false, is) => is,
        };
        return Ok(match is {
            Is::Own => Some((file, Was::There)),
            is => match replace::<S>(directory, which, &is)? {
                Replaced::By(made, was) => Some((made, was)),
                Replaced::Not => Some((file, Was::There)),
                Replaced::BySomebody => None,
            },
        });
    }
}

/// Looks again at a coordination file that was there, for a connection that is alone: by the first
/// look it may not have been. Whether it is to be used; else there is another one, and opening
/// begins anew.
///
/// # Errors
///
/// [`Error::CantOpen`] where it can't make room; those of looking.
pub fn is_own<S: Storage>(
    directory: &S::Directory,
    which: CoordinationFile<'_>,
    file: &S::File,
    database: Option<&S::File>,
) -> Result<bool> {
    Ok(match look_at(which, file, database)? {
        Is::Own => true,
        is => matches!(replace::<S>(directory, which, &is)?, Replaced::Not),
    })
}

/// What a file is, by the database that is open.
fn look_at<F: File>(which: CoordinationFile<'_>, file: &F, database: Option<&F>) -> Result<Is> {
    let said = head(file, which)?;
    let is = |db: &F| match (which.databases)(&words(&said)).contains(&Some(db.id())) {
        true if file.has_access_of(db)? => Ok(Is::Own),
        true => Ok(Is::Bound(said)),
        false => Ok(Is::Dashs(said)),
    };
    database.map_or(Ok(Is::Dashs(said)), is).during(Operation::Stat, which.db)
}

fn look<S: Storage>(
    directory: &S::Directory,
    which: CoordinationFile<'_>,
    (file, named): (&S::File, &Metadata),
    db: Option<&Metadata>,
) -> Result<Is> {
    let bytes = head(file, which)?;
    let head = words(&bytes);
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

fn head<F: File>(file: &F, which: CoordinationFile<'_>) -> Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    read_padded(file, &mut bytes, 0).during(Operation::Read, which.shown)?;
    Ok(bytes)
}

fn words(bytes: &[u8; BYTES]) -> Head {
    let mut head = [0; HEAD];
    for (word, bytes) in head.iter_mut().zip(bytes.as_chunks().0) {
        *word = u64::from_ne_bytes(*bytes);
    }
    head
}

/// What became of a file that was to be replaced.
enum Replaced<F> {
    /// There is a new one, whose OPEN lock is held.
    By(F, Was),
    /// Somebody else was faster.
    BySomebody,
    /// This process may not remove it, and it is the database's own.
    Not,
}

/// Puts another one there, which says what the head of the former one said: nothing else counts
/// once nobody has the database open, and behind it are pages.
fn replace<S: Storage>(
    directory: &S::Directory,
    which: CoordinationFile<'_>,
    is: &Is,
) -> Result<Replaced<S::File>> {
    let name = which.shown;
    match (directory.unlink(which.name), is) {
        (Err(error), _) if error.kind() == ErrorKind::NotFound => return Ok(Replaced::BySomebody),
        (Err(_), Is::Bound(_)) => return Ok(Replaced::Not),
        (removed, _) => removed.map_err(|_| no_dashs(which))?,
    }
    let mode = OpenMode::CreateNew { permissions: 0o600 };
    let made = match directory.open(which.name, mode) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(Replaced::BySomebody),
        made => made.during(Operation::Open, name)?,
    };
    if !made.try_lock(OPEN, LockKind::Exclusive).during(Operation::Lock, name)? {
        return Ok(Replaced::BySomebody);
    }
    let named = directory.metadata(which.name).during(Operation::Stat, name)?;
    if named.is_none_or(|named| named.id != made.id()) {
        return Ok(Replaced::BySomebody);
    }
    let (Is::Bound(said) | Is::Dashs(said)) = is else {
        return Ok(Replaced::By(made, Was::Empty));
    };
    if let Err(error) = made.write_at(said, 0) {
        drop(directory.unlink(which.name));
        return Err(error).during(Operation::Write, name);
    }
    Ok(Replaced::By(made, Was::Made))
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

/// Says that another database, or what had this one's name, is open.
fn anothers(which: CoordinationFile<'_>, head: &Head) -> Error {
    (which.refusal)(head[0], which.db).unwrap_or_else(|| {
        Error::Held(format!(
            "{} was replaced while other connections have the former one open: close them first",
            which.db
        ))
    })
}
