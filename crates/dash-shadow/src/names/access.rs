//! Who gets in: whose the files beside a database are, and who may use them.
//!
//! A file that is opened stays open, whatever is done about its rights later. So a new one is its
//! owner's alone until it has the database's group, list and bits; and one that was found is looked
//! at before its first byte is written. The copies take turns at being `app.db`: what its user did
//! to that name at rest, a chmod or chown, is meant for both.

use crate::names::Names;
use crate::shared::locks;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::open::{open_if_there, open_own};
use dash_storage::{Directory, File, FileKind, LockKind, Metadata, OpenMode, Storage};
use std::time::Duration;

/// The permission bits that a new file may have while it is not known whose group it belongs to.
pub(crate) const OWNERS_ALONE: u32 = 0o700;

/// The bits of everybody else.
const OTHERS: u32 = 0o077;

/// The bits that let somebody else write.
const OTHERS_WRITE: u32 = 0o022;

/// How long an opener waits for another one that opens, closes or recovers.
const OPEN_PATIENCE: Duration = Duration::from_secs(10);

/// How often it looks.
const OPEN_PAUSE: Duration = Duration::from_micros(500);

/// For how long a file may be its maker's alone before it is taken for left behind.
const MAKING_PATIENCE: Duration = Duration::from_secs(1);

/// For how long nobody but a reader holds OPEN before that is said: longer than between two looks.
const READER_PATIENCE: Duration = Duration::from_millis(20);

/// Opens the coordination file and waits for its OPEN lock. Tells whether the file has no bytes.
/// `db`: what `app.db` is.
pub(crate) fn open_coordination<S: Storage>(
    storage: &S,
    directory: &S::Directory,
    names: &Names,
    db: Option<&Metadata>,
) -> Result<(S::File, bool)> {
    let name = names.shown_coordination();
    // Without an `app.db` its maker's alone, too: until there is one.
    let permissions = db.map_or(0o600, |db| db.permissions) & OWNERS_ALONE;
    let (mut waited, mut vanished) = (Duration::ZERO, false);
    loop {
        let mode = OpenMode::Create { permissions };
        let file = match open_own::<S>(directory, &names.coordination, mode) {
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                match (whose(directory, names)?, db) {
                    (Some(found), Some(db)) if narrower(&found, db) => {
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
        wait_for_open(storage, &file, name, &mut waited)?;
        // The last one to close may have removed it while this one waited.
        let named = whose(directory, names)?;
        if let Some(named) = named.filter(|named| named.id == file.id()) {
            check_found(&named, db, names)?;
            return Ok((file, named.len == 0));
        }
    }
}

/// Takes OPEN. A reader of the file can hold a lock there, too, for as long as it likes: no dash
/// does.
fn wait_for_open<S: Storage>(
    storage: &S,
    file: &S::File,
    name: &str,
    waited: &mut Duration,
) -> Result<()> {
    let mut by_a_reader = Duration::ZERO;
    while !file.try_lock(locks::OPEN, LockKind::Exclusive).during(Operation::Lock, name)? {
        let conflict = |kind| file.lock_conflict(locks::OPEN, kind).during(Operation::Lock, name);
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
        if *waited >= OPEN_PATIENCE {
            return Err(Error::Busy);
        }
        storage.sleep(OPEN_PAUSE);
        *waited += OPEN_PAUSE;
    }
    Ok(())
}

/// What is said of the coordination file.
fn whose(directory: &impl Directory, names: &Names) -> Result<Option<Metadata>> {
    directory.metadata(&names.coordination).during(Operation::Stat, names.shown_coordination())
}

/// Whether others who have the database don't have this file yet.
fn narrower(file: &Metadata, db: &Metadata) -> bool {
    file.permissions & OTHERS == 0 && db.permissions & OTHERS != 0
}

fn left_behind(name: &str, owner: u32) -> Error {
    Error::CantOpen(format!(
        "{name} belongs to user {owner} alone: a process of that user makes it or was killed when it did; \
         if none has the database open, remove it"
    ))
}

/// Whether a coordination file may be written: it has no other name, and its maker has a right to
/// the database.
fn check_found(found: &Metadata, db: Option<&Metadata>, names: &Names) -> Result<()> {
    let name = names.shown_coordination();
    if found.kind != FileKind::Regular || found.links > 1 {
        return Err(Error::CantOpen(format!(
            "{name} is another file, too ({} hard links): dash does not write it; remove it",
            found.links
        )));
    }
    let Some(db) = db.filter(|_| found.len > 0) else {
        return Ok(());
    };
    let may_write = [db.owner, 0].contains(&found.owner) || db.permissions & OTHERS_WRITE != 0;
    if !may_write {
        return Err(Error::CantOpen(format!(
            "{name} belongs to user {}, who has no right to write {}: if no process has the database open, remove it",
            found.owner,
            names.shown()
        )));
    }
    Ok(())
}

/// Gives a shadow the rights that `app.db` has. Whether it lets nobody in who has no right to that.
pub(crate) fn take_access<F: File>(shadow: &F, db: &F) -> bool {
    if shadow.metadata().is_ok_and(|shadow| shadow.links > 1) {
        return true; // another file, too: opening it says so
    }
    let taken = shadow.copy_access(db);
    taken.unwrap_or(false) || {
        let now = |file: &F| file.metadata().ok();
        match (now(shadow), now(db)) {
            (Some(shadow), Some(db)) => !lets_in_more(&shadow, &db),
            _ => true,
        }
    }
}

/// The same, for a process that only reads: nothing is done where owner, group and bits are the
/// same.
pub(crate) fn take_access_if_other<F: File>(shadow: &F, db: &F) -> bool {
    let same = match (shadow.metadata(), db.metadata()) {
        (Ok(shadow), Ok(db)) => shadow.has_access_of(&db),
        _ => true,
    };
    same || take_access(shadow, db)
}

/// Whether a file gives rights that another one does not give, as far as bits and owners tell.
fn lets_in_more(file: &Metadata, than: &Metadata) -> bool {
    let may = |file: &Metadata, who: u32| file.permissions >> who & 0o6;
    let within = |less: u32, more: u32| less & !more == 0;
    let known = [than.owner, 0].contains(&file.owner);
    let owner = known || within(may(file, 6), may(than, 3) | may(than, 0));
    let group = file.group == than.group || within(may(file, 3), may(file, 0));
    !(owner && group && within(file.permissions & OTHERS, than.permissions))
}

/// The same for a database that the engine does not open: whether its shadow, if it has one, lets
/// in nobody who has no right to `app.db`. What can't be looked at is nothing to tell.
pub fn keep_access_at_rest<S: Storage>(storage: &S, path: &std::path::Path) -> bool {
    let kept = || -> Result<bool> {
        let (folder, names) = Names::split(path)?;
        let directory = storage.open_directory(folder).during(Operation::Open, names.shown())?;
        names_keep_access::<S>(&directory, &names)
    };
    kept().unwrap_or(true)
}

/// The same in an open directory, by the two names.
pub(crate) fn names_keep_access<S: Storage>(
    directory: &S::Directory,
    names: &Names,
) -> Result<bool> {
    let stat = |name| directory.metadata(name).during(Operation::Stat, names.shown());
    let (Some(db), Some(shadow)) = (stat(&names.db)?, stat(&names.shadow)?) else {
        return Ok(true);
    };
    let regular = [&db, &shadow].iter().all(|file| file.kind == FileKind::Regular);
    if !regular || shadow.has_access_of(&db) {
        return Ok(true);
    }
    let open = |name| open_if_there::<S>(directory, name, OpenMode::Read);
    match (open(&names.db)?, open(&names.shadow)?) {
        (Some(db), Some(shadow)) => Ok(take_access(&shadow, &db)),
        _ => Ok(true),
    }
}
