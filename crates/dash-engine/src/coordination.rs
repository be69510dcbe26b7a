//! The coordination file `app.db-dash`, whatever engine fills it: who may make it, who waits for
//! whom, and the bytes that are locked in it in every mode, so that the modes refuse each other.

mod taken;
mod which;

use crate::beside::{MAKING_PATIENCE, OWNERS_ALONE, ROOT};
use crate::beside::{is_being_made, is_of_a_writer, is_of_a_writer_of, left_behind};
use crate::error::{Context, Error, Operation, Result};
use crate::locks::holder;
use crate::open::{ATTEMPTS, if_there, open_own, replaced};
use dash_storage::{Directory, File, FileKind, LockKind, Metadata, OpenMode, Storage};
use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::time::Duration;
use taken::take;
pub use taken::{Was, check_kept, named};
use which::OPEN_PAUSE;
pub use which::{ALIVE, CoordinationFile, DASH, HEAD, Head, LAYOUT, OPEN, WAL_LAYOUTS, WRITER};

/// How long an opener waits for another one that opens, closes or recovers.
pub const OPEN_PATIENCE: Duration = Duration::from_secs(10);

/// How long it waits where the file is a stranger's.
const STRANGERS_PATIENCE: Duration = Duration::from_millis(200);

/// For how long nobody but a reader holds OPEN before that is said: longer than between two looks.
const READER_PATIENCE: Duration = Duration::from_millis(20);

/// Opens the coordination file and waits for its OPEN lock, as long as `patience` says. `db`: what
/// `app.db` is.
///
/// One that belongs to nobody who may write the database is not used, whatever its length: whoever
/// has it open cuts the memory of this process, or writes there. It makes room for a new one where
/// nobody uses it. Who makes one right now is a writer, too, though one by a group of his may not
/// look so before it has that group: he finds his own gone, and looks again.
pub fn open_coordination<S: Storage>(
    storage: &S,
    directory: &S::Directory,
    which: CoordinationFile<'_>,
    db: Option<&Metadata>,
    patience: Duration,
) -> Result<(S::File, Was)> {
    let name = which.shown;
    // Without an `app.db` its maker's alone, too: until there is one.
    let permissions = db.map_or(0o600, |db| db.permissions) & OWNERS_ALONE;
    let (mut waited, mut vanished, mut removed, mut lost) = (Duration::ZERO, false, 0, 0);
    loop {
        let (file, is_made) = match open_or_make::<S>(directory, which.name, permissions) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && removed < ATTEMPTS => {
                removed += 1;
                continue;
            }
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                match (whose(directory, which)?, db) {
                    (Some(found), Some(db)) if is_being_made(&found, db) => {
                        if waited >= MAKING_PATIENCE {
                            return Err(left_behind(name, found.owner));
                        }
                    }
                    // It may have been given up just now; or this process may make none.
                    (None, _) if !vanished => vanished = true,
                    // Nobody can tell whether somebody uses it.
                    (Some(found), _) if !belongs(storage, directory, which, &found)? => {
                        return Err(strangers(directory, which, &found));
                    }
                    _ => return Err(error).during(Operation::Open, name),
                }
                storage.sleep(OPEN_PAUSE);
                waited += OPEN_PAUSE;
                continue;
            }
            opened => opened.during(Operation::Open, name)?,
        };
        if !file.try_lock(OPEN, LockKind::Exclusive).during(Operation::Lock, name)? {
            let found = file.metadata().during(Operation::Stat, name)?;
            let is_strangers = !belongs(storage, directory, which, &found)?;
            // A stranger is waited for as long as somebody may need who removes what he left.
            let patience = if is_strangers { waited + STRANGERS_PATIENCE } else { patience };
            match wait_for_open(storage, &file, name, (&mut waited, patience)) {
                Err(Error::Busy) if is_strangers => {
                    return Err(strangers(directory, which, &found));
                }
                waited => waited?,
            }
        }
        // The last one to close may have removed it while this one waited.
        let named = whose(directory, which)?.filter(|named| named.id == file.id());
        let Some(named) = named else {
            count(&mut lost, LOST, name)?;
            continue;
        };
        check_found(&named, name)?;
        // An empty one may be anybody's: only of one that this call has made it is known whose.
        let is_new = is_made && named.len == 0;
        if is_new || belongs(storage, directory, which, &named)? {
            return take(storage, directory, which, (file, is_new), db);
        }
        let used = file.lock_conflict(ALIVE, LockKind::Exclusive).during(Operation::Lock, name)?;
        if used.is_some() || directory.unlink(which.name).is_err() {
            return Err(strangers(directory, which, &named));
        }
        count(&mut removed, ATTEMPTS, name)?;
    }
}

/// Somebody may put files there one after the other, so that opening would not end.
fn count(times: &mut usize, most: usize, name: &str) -> Result<()> {
    *times += 1;
    if *times > most { Err(replaced(name)) } else { Ok(()) }
}

/// The file of that name, and whether it was made.
fn open_or_make<S: Storage>(
    directory: &S::Directory,
    name: &OsStr,
    permissions: u32,
) -> io::Result<(S::File, bool)> {
    match open_own::<S>(directory, name, OpenMode::ReadWrite) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Ok((directory.open(name, OpenMode::CreateNew { permissions })?, true))
        }
        found => Ok((found?, false)),
    }
}

/// Opens a coordination file to read what it says of the last session, or of this one: if there is
/// one that somebody has made who may write the database.
///
/// # Errors
///
/// Those of opening the two files, and of looking.
pub fn read_coordination<S: Storage>(
    directory: &S::Directory,
    which: CoordinationFile<'_>,
) -> Result<Option<S::File>> {
    let db = directory.metadata(which.named).during(Operation::Stat, which.db)?;
    let counts = |found: &Metadata| match &db {
        Some(db) => is_of_a_writer_of(found, directory, (which.named, db)),
        None => Ok(true),
    };
    let (found, file) = match directory.open(which.name, OpenMode::Read) {
        // A stranger's keeps nobody out.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            (whose(directory, which)?, Err(error))
        }
        opened => match if_there(opened, which.name)? {
            None => return Ok(None),
            Some(file) => (Some(file.metadata().during(Operation::Stat, which.shown)?), Ok(file)),
        },
    };
    match found {
        Some(found) if !counts(&found).during(Operation::Open, which.db)? => Ok(None),
        _ => file.map(Some).during(Operation::Open, which.shown),
    }
}

/// The coordination file, if a connection of any process has the database open for writing.
///
/// # Errors
///
/// As of [`read_coordination`].
pub fn read_living<S: Storage>(
    directory: &S::Directory,
    which: CoordinationFile<'_>,
) -> Result<Option<S::File>> {
    let Some(file) = read_coordination::<S>(directory, which)? else { return Ok(None) };
    let held = file.lock_conflict(ALIVE, LockKind::Exclusive).during(Operation::Lock, which.shown);
    Ok(held?.map(|_| file))
}

/// Does something while no connection has the database open for writing, in any process, and none
/// can be opened, recovered or closed. `open` takes OPEN of the coordination file; one that `stays`
/// was there before.
///
/// # Errors
///
/// [`Error::Busy`] if a connection has it open; those of `open`.
pub fn while_closed<S: Storage, T>(
    (directory, which, stays): (&S::Directory, CoordinationFile<'_>, bool),
    open: impl FnOnce() -> Result<(S::File, Was)>,
    act: impl FnOnce() -> T,
) -> Result<T> {
    let (file, _) = open()?;
    let holder = file.lock_conflict(ALIVE, LockKind::Exclusive);
    if holder.during(Operation::Lock, which.shown)?.is_some() {
        return Err(Error::Busy);
    }
    let done = act();
    if !stays {
        // Whoever waits for OPEN looks whether the file still has its name.
        drop(directory.unlink(which.name));
    }
    Ok(done)
}

/// How often a file may have lost its name when its lock is had: each time another connection was
/// the last one to close.
const LOST: usize = 200;

/// How often a closing connection looks whether the one that opens or closes is done.
const CLOSE_ATTEMPTS: usize = 5000;

/// For how long it waits each time.
const CLOSE_PAUSE: Duration = Duration::from_micros(100);

/// Takes OPEN for a connection that closes: the lock's holder may be closing too, and then somebody
/// must be the last. `false`: somebody takes very long to open, and the next opener, or closer,
/// cleans up.
///
/// # Errors
///
/// Those of the lock.
pub fn take_open_to_close<S: Storage>(storage: &S, file: &S::File, name: &str) -> Result<bool> {
    for _ in 0..CLOSE_ATTEMPTS {
        if file.try_lock(OPEN, LockKind::Exclusive).during(Operation::Lock, name)? {
            return Ok(true);
        }
        storage.sleep(CLOSE_PAUSE);
    }
    Ok(false)
}

/// Takes OPEN. A reader of the file can hold a lock there, too, for as long as it likes: no dash
/// does.
fn wait_for_open<S: Storage>(
    storage: &S,
    file: &S::File,
    name: &str,
    (waited, patience): (&mut Duration, Duration),
) -> Result<()> {
    let mut by_a_reader = Duration::ZERO;
    while !file.try_lock(OPEN, LockKind::Exclusive).during(Operation::Lock, name)? {
        let conflict = |kind| file.lock_conflict(OPEN, kind).during(Operation::Lock, name);
        by_a_reader = match conflict(LockKind::Shared)? {
            None => by_a_reader + OPEN_PAUSE,
            Some(_) => Duration::ZERO,
        };
        if by_a_reader >= READER_PATIENCE
            && let Some(process) = conflict(LockKind::Exclusive)?
        {
            let who = holder(process);
            return Err(Error::Held(format!(
                "{who} holds a read lock on {name}, which no dash does: nobody can open the database until it is given up; \
                 lslocks tells who it is"
            )));
        }
        if *waited >= patience {
            return Err(Error::Busy);
        }
        storage.sleep(OPEN_PAUSE);
        *waited += OPEN_PAUSE;
    }
    Ok(())
}

/// What is said of the coordination file.
fn whose(directory: &impl Directory, which: CoordinationFile<'_>) -> Result<Option<Metadata>> {
    directory.metadata(which.name).during(Operation::Stat, which.shown)
}

/// Refuses a coordination file that is another file, too.
fn check_found(found: &Metadata, name: &str) -> Result<()> {
    if found.kind != FileKind::Regular || found.links > 1 {
        return Err(Error::CantOpen(format!(
            "{name} is another file, too ({} hard links): dash does not write it; remove it",
            found.links
        )));
    }
    Ok(())
}

/// Whether a coordination file belongs to this process's user, or to somebody who may write the
/// database as it is now; where there is none, to root. What had its name before this process
/// waited may have been put there by the one who made the file.
fn belongs<S: Storage>(
    storage: &S,
    directory: &S::Directory,
    which: CoordinationFile<'_>,
    found: &Metadata,
) -> Result<bool> {
    if found.owner == storage.user() {
        return Ok(true);
    }
    match directory.metadata(which.named).during(Operation::Stat, which.db)? {
        None => Ok(found.owner == ROOT),
        Some(db) => {
            let writers = is_of_a_writer_of(found, directory, (which.named, &db));
            writers.during(Operation::Open, which.db)
        }
    }
}

/// The same, by the database that was opened since: another one may have come in its place.
///
/// # Errors
///
/// [`Error::CantOpen`] that says whose it is; those of looking.
pub fn check_owner<S: Storage>(
    storage: &S,
    file: &S::File,
    database: &S::File,
    which: CoordinationFile<'_>,
) -> Result<()> {
    let found = file.metadata().during(Operation::Stat, which.shown)?;
    let is_own = found.owner == storage.user();
    match is_own || is_of_a_writer(&found, database).during(Operation::Stat, which.db)? {
        true => Ok(()),
        false => Err(of_a_stranger(which, &found)),
    }
}

/// Says that a coordination file is a stranger's and can't be replaced. Who may not write the
/// database either has no need of it: he is told as much, and may go on to read.
fn strangers<D: Directory>(directory: &D, which: CoordinationFile<'_>, found: &Metadata) -> Error
where
    D::File: File,
{
    let name = which.shown;
    match directory.open(which.named, OpenMode::ReadWrite) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            Error::Io { operation: Operation::Open, name: name.to_owned(), source: error }
        }
        _ => of_a_stranger(which, found),
    }
}

fn of_a_stranger(which: CoordinationFile<'_>, found: &Metadata) -> Error {
    Error::CantOpen(format!(
        "{} belongs to user {}, who has no right to write {}: if no process has the database open, remove it",
        which.shown, found.owner, which.db
    ))
}
