//! What only a closed database allows.

use crate::connection::open::coordination_of;
use crate::format::header::{Header, Marks};
use crate::names::Names;
use crate::names::access::lets_others_in;
use crate::recovery::first_opener::First;
use crate::recovery::left::left_in_coordination;
use crate::shared::coordination::Coordination;
use dash_engine::coordination::{self, OPEN_PATIENCE, Was, read_living};
use dash_engine::error::{Context, Operation, Result};
use dash_engine::open::open_if_there;
use dash_storage::{Directory, File, FileKind, Metadata, OpenMode, Storage};
use std::path::Path;
use std::time::Duration;

/// Does something while no connection has the database at `path` open for writing, in any process,
/// and none can be opened, recovered or closed.
///
/// The locks on the two files don't tell whether one has: a connection that is idle since another
/// one made a new shadow holds those of the former pair, and one that recovers holds none yet.
///
/// # Errors
///
/// `Busy` if there is one, or if somebody opens or closes it for very long; whatever opening the
/// coordination file answers.
pub fn while_closed<S: Storage, T>(storage: &S, path: &Path, act: impl FnOnce() -> T) -> Result<T> {
    while_alone(storage, path, true, act)
}

/// Removes the coordination file of a database that no connection has open for writing, if it has
/// no shadow: what a session that was cut off left there says nothing then.
///
/// # Errors
///
/// As of [`while_closed`].
pub fn remove_coordination<S: Storage>(storage: &S, path: &Path) -> Result<()> {
    let (folder, names) = Names::split(path)?;
    let directory = storage.open_directory(folder).during(Operation::Open, folder.display())?;
    for (name, wanted) in [(&names.coordination, true), (&names.shadow, false)] {
        let found = directory.metadata(name).during(Operation::Stat, name.to_string_lossy())?;
        if found.is_some() != wanted {
            return Ok(());
        }
    }
    while_alone(storage, path, false, || ())
}

/// See [`while_closed`]. `keeps`: a coordination file that was there before stays.
fn while_alone<S: Storage, T>(
    storage: &S,
    path: &Path,
    keeps: bool,
    act: impl FnOnce() -> T,
) -> Result<T> {
    let (folder, names) = Names::split(path)?;
    let directory = storage.open_directory(folder).during(Operation::Open, folder.display())?;
    let stat = |name: &std::ffi::OsStr| {
        directory.metadata(name).during(Operation::Stat, name.to_string_lossy())
    };
    let db = stat(&names.db)?;
    let stays = keeps && stat(&names.coordination)?.is_some();
    let open = || coordination_of(storage, &directory, &names, db, OPEN_PATIENCE);
    coordination::while_closed::<S, T>((&directory, names.coordination_file(), stays), open, act)
}

/// For a database that the engine does not open: whether its shadow, if it has one, lets in nobody
/// who has no right to `app.db`. Who writes removes it where nothing in it counts. What can't be
/// looked at is nothing to tell.
pub fn keeps_access<S: Storage>(storage: &S, path: &Path, writes: bool) -> bool {
    let looked = || -> Result<bool> {
        let (folder, names) = Names::split(path)?;
        let directory = storage.open_directory(folder).during(Operation::Open, folder.display())?;
        let stat = |name| directory.metadata(name).during(Operation::Stat, names.shown());
        let [db, shadow] = [stat(&names.db)?, stat(&names.shadow)?];
        let is_file = |found: &Option<Metadata>| {
            found.as_ref().is_some_and(|found| found.kind == FileKind::Regular)
        };
        if !is_file(&db) || !is_file(&shadow) {
            return Ok(true);
        }
        let open = |name| open_if_there::<S>(&directory, name, OpenMode::Read);
        let (Some(file), Some(shadow)) = (open(&names.db)?, open(&names.shadow)?) else {
            return Ok(true);
        };
        let shown = names.shown_shadow();
        let is_fit = shadow.has_users_of(&file).during(Operation::Stat, shown)?;
        let removed = || remove_former(storage, (&directory, folder), &names, db);
        if is_fit || writes && removed().unwrap_or(false) {
            return Ok(true);
        }
        lets_others_in(&shadow, &file).during(Operation::Stat, shown).map(|it| !it)
    };
    looked().unwrap_or(true)
}

/// Removes a shadow with rights that `app.db` no longer has, if nothing in it counts.
fn remove_former<S: Storage>(
    storage: &S,
    (directory, directory_path): (&S::Directory, &Path),
    names: &Names,
    db: Option<Metadata>,
) -> Result<bool> {
    let there = directory.metadata(&names.coordination);
    let stays = there.during(Operation::Stat, names.shown_coordination())?.is_some();
    let (file, was) = coordination_of(storage, directory, names, db, Duration::ZERO)?;
    if was == Was::Used {
        return Ok(false);
    }
    let coordination = &Coordination::map(file, was == Was::New)?;
    let removed = First { storage, directory, directory_path, names, coordination }.remove_former();
    if !stays {
        // Under OPEN: the next opener looks whether its file still has the name.
        drop(directory.unlink(&names.coordination));
    }
    removed
}

/// Whether a connection has the database at `path` open for writing, in any process. No, if that
/// can't be told.
pub fn is_open<S: Storage>(storage: &S, path: &Path) -> bool {
    let look = || {
        let (folder, names) = Names::split(path).ok()?;
        let directory = storage.open_directory(folder).ok()?;
        read_living::<S>(&directory, names.coordination_file()).ok()?
    };
    look().is_some()
}

/// Whether a database that nobody has open was closed cleanly, as far as what lies beside it tells.
/// Only then may its shadow be removed: it may hold the newest commit.
///
/// # Errors
///
/// Whatever looking at the names answers.
pub fn is_at_rest<S: Storage>(storage: &S, path: &Path) -> Result<bool> {
    let (folder, names) = Names::split(path)?;
    let directory = storage.open_directory(folder).during(Operation::Open, folder.display())?;
    let fence = directory.metadata(&names.fence).during(Operation::Stat, names.shown())?;
    let fenced = fence.is_some_and(|fence| fence.kind == FileKind::Directory);
    Ok(!fenced && !left_in_coordination::<S>(&directory, &names)?.in_flight)
}

/// Whether a database that begins so was closed while stock processes had its other copy open
/// (SHADOW-16). Then no journal of SQLite's may be written beside it. `start`: the first 100 bytes.
#[must_use]
pub fn is_protected(start: &[u8]) -> bool {
    Header::of(start).is_some_and(|header| header.is_protected())
}
