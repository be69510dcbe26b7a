//! Files beside a database, and who may use them: whoever may use the database, and at no instant
//! anybody else. Who opens a file keeps it, whatever is done about its rights later: so a new one
//! is its maker's alone until it has the database's owner, group, list and bits. One that was found
//! keeps its own: any file may have been given that name. It is used as it is, or made anew.

use crate::error::{Context, Error, Operation, Result};
use crate::open::{is_surely_named_so, replaced};
use dash_storage::{Directory, File, Metadata, OpenMode, Storage};
use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::time::Duration;

/// The permission bits that a new file may have while it is not known whose group it belongs to.
pub const OWNERS_ALONE: u32 = 0o700;

/// The bits of everybody else.
pub const OTHERS: u32 = 0o077;

/// For how long a file may be its maker's alone before it is taken for left behind.
pub const MAKING_PATIENCE: Duration = Duration::from_secs(1);

/// Root may write any database.
pub const ROOT: u32 = 0;

/// How often it is looked at.
const MAKING_PAUSE: Duration = Duration::from_micros(500);

/// Makes a file that whoever may use `like` may use, as far as this process may see to that.
///
/// # Errors
///
/// Those of the file system, [`ErrorKind::AlreadyExists`] among them.
pub fn make<D: Directory>(directory: &D, name: &OsStr, like: &D::File) -> io::Result<D::File>
where
    D::File: File,
{
    let permissions = like.metadata()?.permissions & OWNERS_ALONE;
    let file = directory.open(name, OpenMode::CreateNew { permissions })?;
    // Whatever has failed, it lets nobody else in.
    drop(file.copy_access(like));
    Ok(file)
}

/// Opens a file of the database's to read and write it, or makes one; whether it was made.
///
/// # Errors
///
/// As of [`open_made`].
pub fn open_or_make<S: Storage>(
    storage: &S,
    directory: &S::Directory,
    (name, shown): (&OsStr, &str),
    database: &S::File,
) -> Result<(S::File, bool)> {
    loop {
        if let Some(file) = open_made(storage, directory, (name, shown), database)? {
            return Ok((file, false));
        }
        match make(directory, name, database) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => storage.sleep(MAKING_PAUSE),
            made => return Ok((made.during(Operation::Open, shown)?, true)),
        }
    }
}

/// Opens a file of the database's to read and write it, if it is there. One that somebody else is
/// making is waited for.
///
/// # Errors
///
/// [`Error::CantOpen`] for one that is another file, too, that its maker has left to himself, or
/// that somebody goes on replacing; those of the file system.
pub fn open_made<S: Storage>(
    storage: &S,
    directory: &S::Directory,
    (name, shown): (&OsStr, &str),
    database: &S::File,
) -> Result<Option<S::File>> {
    let mut waited = Duration::ZERO;
    loop {
        match directory.open(name, OpenMode::ReadWrite) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                let found = directory.metadata(name).during(Operation::Stat, shown)?;
                let wanted = database.metadata().during(Operation::Stat, shown)?;
                // One with bytes has had its rights once.
                match found.filter(|found| found.len == 0 && is_being_made(found, &wanted)) {
                    None => return Err(error).during(Operation::Open, shown),
                    Some(found) if waited >= MAKING_PATIENCE => {
                        return Err(left_behind(shown, found.owner));
                    }
                    Some(_) => {}
                }
            }
            opened => {
                let file = opened.during(Operation::Open, shown)?;
                if is_surely_named_so(directory, (name, shown), &file)? {
                    return Ok(Some(file));
                }
                if waited >= MAKING_PATIENCE {
                    return Err(replaced(shown));
                }
            }
        }
        storage.sleep(MAKING_PAUSE);
        waited += MAKING_PAUSE;
    }
}

/// Whether a file beside a database belongs to somebody who may write the database. If not,
/// somebody else has put it there, or the database was given away: what it says of the content does
/// not count.
///
/// # Errors
///
/// Those of looking.
pub fn is_of_a_writer<F: File>(found: &Metadata, database: &F) -> io::Result<bool> {
    Ok(is_known(found, &database.metadata()?) || lets_in(found, database)?)
}

/// The same of two names in a folder, by what was said of both. The database, which has the name
/// `named`, is opened only where that does not tell.
///
/// # Errors
///
/// Those of opening it, and of looking.
pub fn is_of_a_writer_of<D: Directory>(
    found: &Metadata,
    directory: &D,
    (named, database): (&OsStr, &Metadata),
) -> io::Result<bool>
where
    D::File: File,
{
    Ok(is_known(found, database) || lets_in(found, &directory.open(named, OpenMode::Read)?)?)
}

/// Whether it is the owner's of the database, or root's.
fn is_known(found: &Metadata, database: &Metadata) -> bool {
    [database.owner, ROOT].contains(&found.owner)
}

/// Whether the database lets the owner of a file, or its group, write. As one of all others only
/// where it keeps nobody out: of which groups he is, a file does not tell.
fn lets_in<F: File>(found: &Metadata, database: &F) -> io::Result<bool> {
    Ok(database.lets_write(found.owner, found.group)? || database.lets_all_write()?)
}

/// Whether others who have the database don't have this file yet.
pub(crate) fn is_being_made(file: &Metadata, db: &Metadata) -> bool {
    file.permissions & OTHERS == 0 && db.permissions & OTHERS != 0
}

pub(crate) fn left_behind(name: &str, owner: u32) -> Error {
    Error::CantOpen(format!(
        "{name} belongs to user {owner} alone: a process of that user makes it or was killed when it did; \
         if none has the database open, remove it"
    ))
}
