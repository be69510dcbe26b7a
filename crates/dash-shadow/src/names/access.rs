//! Who gets in: whose the files beside a database are, and who may use them.
//!
//! A file that is opened stays open, whatever is done about its rights later. So a new one is its
//! owner's alone until it has the database's group, list and bits; and one that was found is looked
//! at before its first byte is written. The copies take turns at being `app.db`: what its user did
//! to that name at rest, a chmod or chown, is meant for both.

use crate::names::Names;
use crate::recovery::classify::belong_together;
use crate::recovery::examine::Found;
pub(crate) use dash_engine::beside::OWNERS_ALONE;
use dash_engine::beside::{OTHERS, is_of_a_writer, is_of_a_writer_of};
use dash_engine::error::{Context, Operation, Result};
use dash_engine::open::{is_surely_named_so, open_if_there};
use dash_storage::{Directory, File, FileKind, Metadata, OpenMode, Storage};
use std::ffi::OsStr;
use std::io;

/// Somebody to whom a shadow belongs, and who may not write `app.db` (SHADOW-28); or a file that by
/// what it says is not of `app.db`, and that others may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stranger {
    /// User id of the shadow's owner.
    pub owner: u32,
    /// Its group id.
    pub group: u32,
    /// Whether one of these two may write `app.db`.
    pub writes: bool,
}

impl Stranger {
    fn new(found: &Metadata, writes: bool) -> Self {
        Self { owner: found.owner, group: found.group, writes }
    }
}

/// The one to whom a shadow belongs, if that is a stranger.
fn stranger<F: File>(shadow: &F, db: &F) -> io::Result<Option<Stranger>> {
    let found = shadow.metadata()?;
    let is_a_strangers = !is_of_a_writer(&found, db)?;
    Ok(is_a_strangers.then_some(Stranger::new(&found, false)))
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
    let writes = is_of_a_writer_of(found, directory, db)?;
    Ok((!writes || lets_in_more(found, db.1)).then_some(Stranger::new(found, writes)))
}

/// The stranger of what was found under both names. A file of theirs may have been given that name
/// by somebody who keeps it open: what is not of `app.db` by what it says lets in who may use that,
/// and nobody else.
pub(crate) fn stranger_of<F: File>(
    shadow: Option<&Found<F>>,
    db: Option<&Found<F>>,
    shadow_name: &str,
) -> Result<Option<Stranger>> {
    let (Some(shadow), Some(db)) = (shadow, db) else { return Ok(None) };
    let of_owner = stranger(&shadow.file, &db.file).during(Operation::Stat, shadow_name)?;
    if of_owner.is_some() || belong_together(db, shadow) {
        return Ok(of_owner);
    }
    let is_open = lets_others_in(&shadow.file, &db.file).during(Operation::Stat, shadow_name)?;
    let found = shadow.file.metadata().during(Operation::Stat, shadow_name)?;
    Ok(is_open.then_some(Stranger::new(&found, true)))
}

/// Gives a shadow the rights that `app.db` has, unless it is a stranger's: who has that open keeps
/// it, whatever is done about its rights. Whether everybody who may use `app.db` may use it now.
pub(crate) fn give_access<F: File>(shadow: &F, db: &F) -> io::Result<bool> {
    Ok(stranger(shadow, db)?.is_none() && shadow.copy_access(db)?)
}

/// Gives them to a shadow that was found, and only if by what it says it is the second copy of
/// `app.db`. Whether it lets nobody in who has no right to that.
pub(crate) fn take_access<S: Storage>(
    directory: &S::Directory,
    names: &Names,
    [shadow, db]: [&Found<S::File>; 2],
) -> bool {
    let (shadow, db, is_its) = (&shadow.file, &db.file, belong_together(db, shadow));
    if shadow.has_access_of(db).unwrap_or(true) {
        return true;
    }
    let named = (names.shadow.as_os_str(), &**names.shown_shadow());
    // A stranger's that was given away would be taken for the database's at the next opening.
    let is_given = is_its
        && is_surely_named_so(directory, named, shadow).unwrap_or(false)
        && give_access(shadow, db).unwrap_or(false);
    is_given || !lets_others_in(shadow, db).unwrap_or(false)
}

/// Whether a file lets in somebody whom another one does not let in, as far as bits and owners
/// tell. One that is another file, too, is none of these two: opening it says so.
pub(crate) fn lets_others_in<F: File>(file: &F, than: &F) -> io::Result<bool> {
    let found = file.metadata()?;
    Ok(found.links <= 1 && lets_in_more(&found, &than.metadata()?))
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

/// For a database that the engine does not open, to write it or to read it: whether its shadow, if
/// it has one, lets in nobody who has no right to `app.db`. Who only reads leaves it as it is. What
/// can't be looked at is nothing to tell.
pub fn keep_access_at_rest<S: Storage>(storage: &S, path: &std::path::Path, writes: bool) -> bool {
    let kept = || -> Result<bool> {
        let (folder, names) = Names::split(path)?;
        let directory = storage.open_directory(folder).during(Operation::Open, names.shown())?;
        names_keep_access::<S>(&directory, &names, writes)
    };
    kept().unwrap_or(true)
}

/// The same in an open directory, by the two names.
pub(crate) fn names_keep_access<S: Storage>(
    directory: &S::Directory,
    names: &Names,
    writes: bool,
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
    let (Some(db), Some(shadow)) = (open(&names.db)?, open(&names.shadow)?) else {
        return Ok(true);
    };
    if !writes {
        return lets_others_in(&shadow, &db).during(Operation::Stat, names.shown()).map(|it| !it);
    }
    if shadow.has_access_of(&db).during(Operation::Stat, names.shown())? {
        return Ok(true);
    }
    let seen = |file: S::File, name| {
        let len = file.metadata().during(Operation::Stat, name)?.len;
        Found::examine_quickly(file, len, 0, name)
    };
    let (shadow, db) = (seen(shadow, names.shown_shadow())?, seen(db, names.shown())?);
    Ok(take_access::<S>(directory, names, [&shadow, &db]))
}
