//! Who gets in: whose the files beside a database are, and who may use them.
//!
//! A file that is opened stays open, whatever is done about its rights later. So a new one is its
//! owner's alone until it has the database's group, list and bits; and one that was found is looked
//! at before its first byte is written. The copies take turns at being `app.db`: what its user did
//! to that name at rest, a chmod or chown, is meant for both.

use crate::names::Names;
use crate::recovery::examine::Found;
pub(crate) use dash_engine::beside::OWNERS_ALONE;
use dash_engine::beside::{is_of_a_writer, is_of_a_writer_of};
use dash_engine::error::{Context, Operation, Result};
use dash_engine::open::open_if_there;
use dash_storage::{Directory, File, FileKind, Metadata, OpenMode, Storage};
use std::ffi::OsStr;
use std::io;

/// The bits of everybody else.
const OTHERS: u32 = 0o077;

/// Somebody to whom a shadow belongs, and who may not write `app.db` (SHADOW-28).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stranger {
    /// User id of the shadow's owner.
    pub owner: u32,
    /// Its group id.
    pub group: u32,
}

/// The one to whom a shadow belongs, if that is a stranger.
fn stranger<F: File>(shadow: &F, db: &F) -> io::Result<Option<Stranger>> {
    let found = shadow.metadata()?;
    let is_a_strangers = !is_of_a_writer(&found, db)?;
    Ok(is_a_strangers.then_some(Stranger { owner: found.owner, group: found.group }))
}

/// The same of names, for a file that would be taken for `app.db`, an empty file.
pub(crate) fn stranger_named<D: Directory>(
    directory: &D,
    found: &Metadata,
    db: (&OsStr, &Metadata),
) -> io::Result<Option<Stranger>>
where
    D::File: File,
{
    let is_a_strangers = !is_of_a_writer_of(found, directory, db)?;
    Ok(is_a_strangers.then_some(Stranger { owner: found.owner, group: found.group }))
}

/// The same of what was found under the two names.
pub(crate) fn stranger_of<F: File>(
    shadow: Option<&Found<F>>,
    db: Option<&Found<F>>,
    shadow_name: &str,
) -> Result<Option<Stranger>> {
    match (shadow, db) {
        (Some(shadow), Some(db)) => {
            stranger(&shadow.file, &db.file).during(Operation::Stat, shadow_name)
        }
        _ => Ok(None),
    }
}

/// Gives a shadow the rights that `app.db` has, unless it is a stranger's: who has that open keeps
/// it, whatever is done about its rights. Whether everybody who may use `app.db` may use it now.
pub(crate) fn give_access<F: File>(shadow: &F, db: &F) -> io::Result<bool> {
    Ok(stranger(shadow, db)?.is_none() && shadow.copy_access(db)?)
}

/// The same for one that is looked at before it is used. Whether it lets nobody in who has no right
/// to that.
pub(crate) fn take_access<F: File>(shadow: &F, db: &F) -> bool {
    if shadow.metadata().is_ok_and(|shadow| shadow.links > 1) {
        return true; // another file, too: opening it says so
    }
    // A stranger's that was given away would be taken for the database's at the next opening.
    give_access(shadow, db).unwrap_or(false) || {
        let now = |file: &F| file.metadata().ok();
        match (now(shadow), now(db)) {
            (Some(shadow), Some(db)) => !lets_in_more(&shadow, &db),
            _ => true,
        }
    }
}

/// The same, for a process that only reads: nothing is done where owner, group, bits and list are
/// the same.
pub(crate) fn take_access_if_other<F: File>(shadow: &F, db: &F) -> bool {
    shadow.has_access_of(db).unwrap_or(true) || take_access(shadow, db)
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
    if !regular {
        return Ok(true);
    }
    let open = |name| open_if_there::<S>(directory, name, OpenMode::Read);
    match (open(&names.db)?, open(&names.shadow)?) {
        (Some(db), Some(shadow)) => Ok(take_access_if_other(&shadow, &db)),
        _ => Ok(true),
    }
}
