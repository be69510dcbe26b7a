//! Who gets in: whose the files beside a database are, and who may use them.
//!
//! A file that is opened stays open, whatever is done about its rights later. So a new one is its
//! owner's alone until it has the database's group, list and bits; and one that was found is looked
//! at before its first byte is written. The copies take turns at being `app.db`: what its user did
//! to that name at rest, a chmod or chown, is meant for both.

use crate::names::Names;
use crate::recovery::classify::are_a_pair;
use crate::recovery::examine::Found;
pub(crate) use dash_engine::beside::OWNERS_ALONE;
use dash_engine::beside::{OTHERS, is_of_a_writer, is_of_a_writer_of};
use dash_engine::error::{Context, Operation, Result};
use dash_engine::open::is_surely_named_so;
use dash_storage::{Directory, File, Metadata, Storage};
use std::ffi::OsStr;
use std::io;

/// Somebody to whom a shadow belongs, and who may not write `app.db` (SHADOW-28); or who may, and
/// has a file of other rights there that is not `app.db`'s by what it says.
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

/// Whose a shadow is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// Of those who have `app.db`, as far as its rights tell; or there is none.
    Theirs,
    /// The second copy, with rights that `app.db` no longer has.
    Former,
    /// A stranger's.
    Strange(Stranger),
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

/// Whose what was found under the shadow's name is. A file of theirs may have been given that name
/// by somebody who keeps it open, or can't read it yet; and what it says may be said by a copy, or
/// by a file of another time. So one with other rights is used only where nothing else has a commit
/// that it has, and then only if `app.db`'s owner has it, both were written where they are, and
/// the rights of `app.db` let nobody in to it.
pub(crate) fn whose<F: File>(
    shadow: Option<&Found<F>>,
    db: Option<&Found<F>>,
    shadow_name: &str,
) -> Result<Whose> {
    let (Some(shadow), Some(db)) = (shadow, db) else { return Ok(Whose::Theirs) };
    let looked = || -> io::Result<Whose> {
        let found = shadow.file.metadata()?;
        if !is_of_a_writer(&found, &db.file)? {
            return Ok(Whose::Strange(Stranger::new(&found, false)));
        }
        // One that is another file, too, is none of these two: opening it says so.
        if found.links > 1 || shadow.file.has_users_of(&db.file)? {
            return Ok(Whose::Theirs);
        }
        let wanted = db.file.metadata()?;
        // Whoever may use it then could before: the two names may have been exchanged.
        let narrows = found.group == wanted.group
            && wanted.permissions & !found.permissions == 0
            && shadow.file.has_list_of(&db.file)?;
        let is_own = narrows && found.owner == wanted.owner && are_a_pair(db, shadow);
        Ok(if is_own { Whose::Former } else { Whose::Strange(Stranger::new(&found, true)) })
    };
    looked().during(Operation::Stat, shadow_name)
}

/// Gives the second copy of a connection the rights that `app.db` has by now; whether everybody who
/// may use that may use it. One of another user stays as it is.
pub(crate) fn give_access<F: File>(shadow: &F, db: &F) -> io::Result<bool> {
    let found = shadow.metadata()?;
    if found.owner != db.metadata()?.owner {
        return Ok(is_of_a_writer(&found, db)? && shadow.has_users_of(db)?);
    }
    shadow.copy_access(db)
}

/// Gives them to a shadow that was found, whose commit is needed. Whether that could be.
pub(crate) fn give_found<S: Storage>(
    directory: &S::Directory,
    names: &Names,
    [shadow, db]: [&S::File; 2],
) -> bool {
    let named = (names.shadow.as_os_str(), &**names.shown_shadow());
    is_surely_named_so(directory, named, shadow).unwrap_or(false)
        && give_access(shadow, db).unwrap_or(false)
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
