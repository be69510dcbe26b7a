//! A coordination file that lies there when nobody has the database open. Neither whose it is nor
//! what it says tells who has it open: any file of the database's owner may have been given that
//! name, or was in a session once and had other rights. So a new one takes its place, which says
//! what the former one said of the last session, if that is dash's at all. It has its head, the
//! rights that the former one had rightly, and a lock, before it has its name: who is killed in
//! between loses nothing, and no opener finds it half made.
//!
//! That somebody uses one, a lock says, which any reader of the file may hold, and give up at any
//! time. So another database's is not used then, either; and who finds himself alone behind that
//! begins anew.

use super::which::{ALIVE, CoordinationFile, DASH, HEAD, Head, LAYOUT, OPEN, OPEN_PAUSE};
use crate::error::{Context, Error, Operation, Result};
use crate::io::read_padded;
use crate::note;
use dash_storage::{Directory, File, FileId, LockKind, Metadata, OpenMode, Storage};
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};

const BYTES: usize = HEAD * size_of::<u64>();

/// Longer than any in bytes.
const LONGEST: u64 = 1 << 20;

/// How often the file of a database that is open is looked at, whose files may be changing places.
const LOOKS: usize = 4;

/// What a coordination file that is to be used was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Was {
    /// This process has made it, and it says nothing.
    New,
    /// This process has made it, and it says what a former one said.
    Renewed,
    /// As it was found, as this process may not replace it, or the disk is full; or one that this
    /// process has made with the rights of that, which was the database's own.
    Kept,
    /// As others use it.
    Used,
}

/// What a file is.
enum Is {
    /// The database's own.
    Own,
    /// Another one of dash's, such as a copy.
    Dashs,
    /// None.
    Nothing,
}

/// Takes the file, whose OPEN lock is held, if this process has made it or somebody uses it; else
/// makes another one in its place, whose lock is held then.
pub(crate) fn take<S: Storage>(
    storage: &S,
    directory: &S::Directory,
    which: CoordinationFile<'_>,
    (file, is_new): (S::File, bool),
    db: Option<&Metadata>,
) -> Result<(S::File, Was)> {
    if is_new {
        // It takes nobody's place: what a power loss has left of one that was to is removed.
        drop(directory.unlink(&next(which)));
        return Ok((file, Was::New));
    }
    let mut looks = 0;
    loop {
        looks += 1;
        let said = head(&file, which)?;
        let used = file.lock_conflict(ALIVE, LockKind::Exclusive);
        if used.during(Operation::Lock, which.shown)?.is_none() {
            return match fit::<S>(directory, which, &file, &said) {
                // It may be open to somebody who had a right to it once.
                Some(db) => Ok(match renew::<S>(directory, which, &file, (&said, Some(&db))) {
                    Ok(made) => (made, Was::Kept),
                    Err(_) => (file, Was::Kept),
                }),
                None => replace::<S>(directory, which, file, &said),
            };
        }
        match look::<S>(directory, which, &said, db)? {
            Is::Own => return Ok((file, Was::Used)),
            Is::Dashs if looks < LOOKS => storage.sleep(OPEN_PAUSE),
            Is::Dashs => return Err(anothers(which, &words(&said))),
            Is::Nothing => return Err(no_dashs(which)),
        }
    }
}

/// Refuses a coordination file that could not be replaced, and is not that of the database that was
/// opened since, or lets in others than that.
///
/// # Errors
///
/// [`Error::CantOpen`] then; those of reading it.
pub fn check_kept<F: File>(which: CoordinationFile<'_>, file: &F, database: &F) -> Result<()> {
    let said = words(&head(file, which)?);
    if !(which.databases)(&said).contains(&Some(database.id())) {
        return Err(no_dashs(which));
    }
    match file.has_users_of(database).during(Operation::Stat, which.shown)? {
        true => Ok(()),
        false => Err(Error::CantOpen(format!(
            "{} does not let in the users of {}, or others as well, and this process may not remove it: have its owner or root do so \
             while no process has the database open",
            which.shown, which.db
        ))),
    }
}

/// The database, if the file is its own and has its rights.
fn fit<S: Storage>(
    directory: &S::Directory,
    which: CoordinationFile<'_>,
    file: &S::File,
    said: &[u8; BYTES],
) -> Option<S::File> {
    if !is_dashs(said) {
        return None;
    }
    let db = directory.open(which.named, OpenMode::Read).ok()?;
    let is_named = (which.databases)(&words(said)).contains(&Some(db.id()));
    (is_named && file.has_access_of(&db).unwrap_or(false)).then_some(db)
}

/// What a file is by what it says, and by what the database's name stands for: what it stood for
/// before this process waited, or stands for now.
fn look<S: Storage>(
    directory: &S::Directory,
    which: CoordinationFile<'_>,
    said: &[u8; BYTES],
    db: Option<&Metadata>,
) -> Result<Is> {
    if !is_dashs(said) {
        return Ok(Is::Nothing);
    }
    let bound = (which.databases)(&words(said));
    let is_own = |db: &Metadata| bound.contains(&Some(db.id));
    if db.is_some_and(is_own) {
        return Ok(Is::Own);
    }
    let now = directory.metadata(which.named).during(Operation::Stat, which.db)?;
    Ok(if now.as_ref().is_some_and(is_own) { Is::Own } else { Is::Dashs })
}

fn head<F: File>(file: &F, which: CoordinationFile<'_>) -> Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    read_padded(file, &mut bytes, 0).during(Operation::Read, which.shown)?;
    Ok(bytes)
}

/// Whether a head is one of dash's, in whatever layout.
fn is_dashs(said: &[u8; BYTES]) -> bool {
    words(said)[0] & !LAYOUT == DASH
}

fn words(bytes: &[u8; BYTES]) -> Head {
    let mut head = [0; HEAD];
    for (word, bytes) in head.iter_mut().zip(bytes.as_chunks().0) {
        *word = u64::from_ne_bytes(*bytes);
    }
    head
}

/// Puts another one there, which says what the head of the former one said: nothing else counts
/// once nobody has the database open, and behind it are pages.
fn replace<S: Storage>(
    directory: &S::Directory,
    which: CoordinationFile<'_>,
    file: S::File,
    said: &[u8; BYTES],
) -> Result<(S::File, Was)> {
    let (was, said) = match is_dashs(said) {
        true => (Was::Renewed, said),
        false => (Was::New, &[0; BYTES]),
    };
    let is_denied = |error: &io::Error| error.kind() == ErrorKind::PermissionDenied;
    match renew::<S>(directory, which, &file, (said, None)) {
        Ok(made) => Ok((made, was)),
        // A full disk is no reason to recover nothing.
        Err(error) if is_denied(&error) || is_full(&error) => {
            match (look::<S>(directory, which, said, None)?, is_denied(&error)) {
                (Is::Own, _) => Ok((file, Was::Kept)),
                (_, true) => Err(no_dashs(which)),
                _ => Err(error).during(Operation::Open, which.shown),
            }
        }
        // Another process of this user has looked at it.
        Err(error) if error.kind() == ErrorKind::ResourceBusy => Err(Error::Busy),
        Err(error) => Err(error).during(Operation::Open, which.shown),
    }
}

/// Makes another one that says this, and lets in the users of `db` before it has its name.
fn renew<S: Storage>(
    directory: &S::Directory,
    which: CoordinationFile<'_>,
    file: &S::File,
    (said, db): (&[u8; BYTES], Option<&S::File>),
) -> io::Result<S::File> {
    let mut new = next(which);
    let mut head = words(said);
    let made = match make::<S>(directory, &new) {
        // Somebody else's has that name, perhaps to keep the former one.
        Err(error) if is_kept(&error) => {
            new.push(std::process::id().to_string());
            make::<S>(directory, &new)?
        }
        made => made?,
    };
    let own = which.own.and_then(|own| head.get_mut(own));
    if let Some(own) = own.filter(|own| **own == file.id().inode) {
        *own = made.id().inode;
    }
    let bytes = head.map(u64::to_ne_bytes);
    let write = || match head[0] {
        0 => Ok(()),
        _ => made.write_at(bytes.as_flattened(), 0),
    };
    // As long as the former one, which may have taken the last space that there was.
    let extend = || match file.metadata()?.len {
        len @ 1..=LONGEST => made.shared_memory(usize::try_from(len / 8).unwrap_or(0)).map(drop),
        _ => Ok(()),
    };
    let lets_in = || match db {
        Some(db) => made.copy_access(db).and_then(|_| made.has_users_of(db)),
        None => Ok(true),
    };
    let named = match made.try_lock(OPEN, LockKind::Exclusive)? {
        true => write().and_then(|()| extend()).and_then(|()| lets_in()).and_then(|lets_in| {
            match lets_in {
                true => directory.rename(&new, which.name),
                false => Err(ErrorKind::PermissionDenied.into()),
            }
        }),
        false => Err(ErrorKind::ResourceBusy.into()),
    };
    named.inspect_err(|_| drop(directory.unlink(&new))).map(|()| made)
}

/// The name of the one that is to take the place of another.
fn next(which: CoordinationFile<'_>) -> OsString {
    [which.name, OsStr::new("-new")].into_iter().collect()
}

/// A file that may not be removed, a folder with something in it, or a mount point.
fn is_kept(error: &io::Error) -> bool {
    use ErrorKind::{DirectoryNotEmpty, PermissionDenied, ResourceBusy};
    matches!(error.kind(), PermissionDenied | DirectoryNotEmpty | ResourceBusy)
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// Makes a file that is its maker's alone. One that is there is left from a process that was killed
/// when it did this.
fn make<S: Storage>(directory: &S::Directory, new: &OsStr) -> io::Result<S::File> {
    let create = || directory.open(new, OpenMode::CreateNew { permissions: 0o600 });
    match create() {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            directory.unlink(new).or_else(|_| note::remove_folder(directory, new))?;
            create()
        }
        made => made,
    }
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
            "{} was replaced while other connections have the former one open: close them first. What they have committed is in that \
             one alone; `VACUUM INTO` there makes a copy",
            which.db
        ))
    })
}
