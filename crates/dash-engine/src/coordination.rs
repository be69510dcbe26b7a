//! The coordination file `app.db-dash`, whatever engine fills it: who may make it, who waits for
//! whom, and the bytes that are locked in it in every mode, so that the modes refuse each other.

use crate::beside::{MAKING_PATIENCE, OWNERS_ALONE, is_a_writer, is_being_made, left_behind};
use crate::error::{Context, Error, Operation, Result};
use crate::open::open_own;
use dash_storage::{Directory, File, FileKind, LockKind, Metadata, OpenMode, Storage};
use std::ffi::OsStr;
use std::ops::Range;
use std::time::Duration;

/// Held while opening, closing or recovering.
pub const OPEN: Range<u64> = 0..1;

/// Held by the write transaction.
pub const WRITER: Range<u64> = 1..2;

/// Held, shared, by every connection of dash for its life; exclusive: the first and the last one.
pub const ALIVE: Range<u64> = 2..3;

/// First word of a coordination file, with the layout's number in its lowest bits.
pub const DASH: u64 = 0x0001_6873_6164_0000;

/// Those bits.
pub const LAYOUT: u64 = 0xFFFF;

/// Layouts from this number on are those of mode wal.
pub const WAL_LAYOUTS: u64 = 0x4000;

/// The file's name, and what it and the database are called in messages.
#[derive(Debug, Clone, Copy)]
pub struct CoordinationFile<'a> {
    /// Its name in the database's folder.
    pub name: &'a OsStr,
    /// The same, for messages.
    pub shown: &'a str,
    /// The database's name there.
    pub named: &'a OsStr,
    /// The database, for messages.
    pub db: &'a str,
}

/// How long an opener waits for another one that opens, closes or recovers.
pub const OPEN_PATIENCE: Duration = Duration::from_secs(10);

/// How often it looks.
const OPEN_PAUSE: Duration = Duration::from_micros(500);

/// For how long nobody but a reader holds OPEN before that is said: longer than between two looks.
const READER_PATIENCE: Duration = Duration::from_millis(20);

/// Opens the coordination file and waits for its OPEN lock, as long as `patience` says. Tells
/// whether the file has no bytes. `db`: what `app.db` is.
pub fn open_coordination<S: Storage>(
    storage: &S,
    directory: &S::Directory,
    which: CoordinationFile<'_>,
    db: Option<&Metadata>,
    patience: Duration,
) -> Result<(S::File, bool)> {
    let name = which.shown;
    // Without an `app.db` its maker's alone, too: until there is one.
    let permissions = db.map_or(0o600, |db| db.permissions) & OWNERS_ALONE;
    let (mut waited, mut vanished) = (Duration::ZERO, false);
    loop {
        let mode = OpenMode::Create { permissions };
        let file = match open_own::<S>(directory, which.name, mode) {
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                match (whose(directory, which)?, db) {
                    (Some(found), Some(db)) if is_being_made(&found, db) => {
                        if waited >= MAKING_PATIENCE {
                            return Err(left_behind(name, found.owner));
                        }
                    }
                    // It may have been given up just now; or this process may make none.
                    (None, _) if !vanished => vanished = true,
                    _ => return Err(error).during(Operation::Open, name),
                }
                storage.sleep(OPEN_PAUSE);
                waited += OPEN_PAUSE;
                continue;
            }
            opened => opened.during(Operation::Open, name)?,
        };
        wait_for_open(storage, &file, name, (&mut waited, patience))?;
        // The last one to close may have removed it while this one waited.
        let named = whose(directory, which)?;
        if let Some(named) = named.filter(|named| named.id == file.id()) {
            check_found(directory, &named, db, which)?;
            return Ok((file, named.len == 0));
        }
    }
}

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
            let who = match process {
                0 => "another process".to_owned(),
                id => format!("process {id}"),
            };
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

/// Whether a coordination file may be written: it has no other name, and its maker has a right to
/// the database.
fn check_found<D: Directory>(
    directory: &D,
    found: &Metadata,
    db: Option<&Metadata>,
    which: CoordinationFile<'_>,
) -> Result<()>
where
    D::File: File,
{
    let name = which.shown;
    if found.kind != FileKind::Regular || found.links > 1 {
        return Err(Error::CantOpen(format!(
            "{name} is another file, too ({} hard links): dash does not write it; remove it",
            found.links
        )));
    }
    let Some(db) = db.filter(|_| found.len > 0) else {
        return Ok(());
    };
    let is_of_a_writer = is_a_writer(found, db, || {
        directory.open(which.named, OpenMode::Read)?.lets_write(found.owner, found.group)
    });
    if !is_of_a_writer.during(Operation::Open, which.db)? {
        return Err(Error::CantOpen(format!(
            "{name} belongs to user {}, who has no right to write {}: if no process has the database open, remove it",
            found.owner, which.db
        )));
    }
    Ok(())
}
