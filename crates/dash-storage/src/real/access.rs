//! Who may use a file: its owner, group, permission bits and access control list.
//!
//! SQLite gives its journals the database's permission bits, whatever the umask says, and its owner
//! if it runs as root (os_unix.c `findCreateFileMode`, `robust_open`, `robustFchown`). The second
//! copy of a database becomes the database, so here it must also be known whether somebody is
//! locked out by it.

use std::fs::{File, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};

use nix::errno::Errno;
use nix::unistd::{Gid, getegid, geteuid, getgroups};

use super::list::List;

/// The permission bits of the owner.
const OWNERS: u32 = 0o700;

/// Permission to write for the group.
const GROUP_WRITES: u32 = 0o020;

/// The right of all others to write.
const OTHERS_WRITE: u32 = 0o002;

/// Gives `to` what `from` has of these, as far as this process may. Whether everybody who may use
/// `from` may use `to` now. To be called again where a signal interrupts it.
///
/// At no instant does it give anybody what neither `from` gives nor it gave before: what it is to
/// lose goes first, and it is widened once it has the group and the list that the bits are meant
/// for.
pub(super) fn copy(to: &File, from: &File) -> io::Result<bool> {
    let (theirs, list) = (from.metadata()?, List::of(from)?);
    let (mut mine, mut own_list) = (to.metadata()?, List::of(to)?);
    let is_of_group = |mine: &Metadata| mine.gid() == theirs.gid();
    let change = |to: &File, bits| as_may_be(to.set_permissions(Permissions::from_mode(bits)));
    if !is_of_group(&mine) || own_list != list {
        // The bits of a group are the most that a list gives: without it they would give all that.
        let common = if list.is_some() || own_list.is_some() { OWNERS } else { 0o777 };
        let narrow = mine.mode() & theirs.mode() & common;
        if narrow != mine.mode() & 0o777 {
            change(to, narrow)?;
        }
    }
    if !is_of_group(&mine) {
        as_may_be(fchown(to, None, Some(theirs.gid())))?;
    }
    mine = to.metadata()?;
    let same_group = is_of_group(&mine);
    let fitting = fitting(list.as_ref(), &mine, &theirs);
    if own_list != fitting {
        as_may_be(List::put(to, fitting.as_ref()))?;
        (mine, own_list) = (to.metadata()?, List::of(to)?);
    }
    let wanted = match &fitting {
        // Whom it keeps out the bits can't.
        Some(_) if own_list != fitting => theirs.mode() & OWNERS,
        list => bits_with(list.as_ref(), &theirs, same_group),
    };
    if mine.mode() & 0o777 != wanted {
        change(to, wanted)?;
    }
    if mine.uid() != theirs.uid() {
        as_may_be(fchown(to, Some(theirs.uid()), None))?;
    }
    has_users_of(to, from)
}

/// Whether whoever may use `theirs` may use `mine`, and beside its owner nobody else: as [`copy`]
/// leaves one, where it could do all that is needed for that.
pub(super) fn has_users_of(mine: &File, theirs: &File) -> io::Result<bool> {
    let lists = [List::of(mine)?, List::of(theirs)?];
    let [mine, theirs] = [mine.metadata()?, theirs.metadata()?];
    let same_group = mine.gid() == theirs.gid();
    let fits = match &lists {
        [None, None] => mine.mode() & 0o777 == bits(&theirs, same_group),
        [Some(own), Some(list)] => own == list && list.within(same_group) == *list,
        _ => false,
    };
    Ok(fits && lets_in(&mine, &theirs))
}

/// Whether a file has what [`copy`] gives it where nothing stands against that but the groups of
/// this process.
pub(super) fn is_copied(to: &File, from: &File) -> io::Result<bool> {
    let (theirs, list) = (from.metadata()?, List::of(from)?);
    let (mine, own_list) = (to.metadata()?, List::of(to)?);
    let same_group = mine.gid() == theirs.gid();
    let fitting = fitting(list.as_ref(), &mine, &theirs);
    let wanted = bits_with(fitting.as_ref(), &theirs, same_group);
    Ok((same_group || !may_give_to(theirs.gid())?)
        && mine.uid() == theirs.uid()
        && own_list == fitting
        && mine.mode() & 0o777 == wanted)
}

/// Whether this process may give its files to a group.
fn may_give_to(group: u32) -> io::Result<bool> {
    let group = Gid::from_raw(group);
    Ok(geteuid().is_root() || getegid() == group || getgroups()?.contains(&group))
}

/// The list of a copy, which has this owner and group.
fn fitting(list: Option<&List>, mine: &Metadata, theirs: &Metadata) -> Option<List> {
    let stays = stays_with(mine, theirs);
    list.map(|list| list.within(mine.gid() == theirs.gid()).letting_in(stays))
}

/// Its permission bits.
fn bits_with(list: Option<&List>, theirs: &Metadata, same_group: bool) -> u32 {
    list.map_or_else(|| bits(theirs, same_group), List::bits)
}

/// Lets whoever may read or write `file` read a folder, which is its maker's alone so far, and
/// gives it the same owner and group; as far as this process may. Nobody but its owner may put
/// anything into it: it could not be removed then.
pub(super) fn share(folder: &File, file: &File) -> io::Result<()> {
    let (theirs, list) = (file.metadata()?, List::of(file)?);
    if folder.metadata()?.gid() != theirs.gid() {
        as_may_be(fchown(folder, None, Some(theirs.gid())))?;
    }
    let same_group = folder.metadata()?.gid() == theirs.gid();
    let fitting = fitting(list.as_ref(), &folder.metadata()?, &theirs);
    let fitting = fitting.map(|list| list.of_folder());
    if List::of(folder)? != fitting {
        as_may_be(List::put(folder, fitting.as_ref()))?;
    }
    let bits = match List::of(folder)? {
        // One that the folder around it gives to new ones, and that stays.
        own if own != fitting => OWNERS,
        Some(list) => list.bits(),
        None => folder_bits(bits(&theirs, same_group)),
    };
    as_may_be(folder.set_permissions(Permissions::from_mode(bits)))?;
    if folder.metadata()?.uid() != theirs.uid() {
        as_may_be(fchown(folder, Some(theirs.uid()), None))?;
    }
    Ok(())
}

/// The owner of the first, where a copy goes on to belong to another user: only root gives files
/// away.
fn stays_with(mine: &Metadata, theirs: &Metadata) -> Option<u32> {
    (mine.uid() != theirs.uid() && !geteuid().is_root()).then_some(theirs.uid())
}

/// The same bits for a folder.
fn folder_bits(bits: u32) -> u32 {
    let may_use = (bits >> 2 | bits >> 1) & 0o111;
    0o700 | may_use << 2 | may_use
}

/// Whether both have the same list. It may change where the bits stay, which are the most that it
/// gives.
pub(super) fn have_one_list(one: &File, other: &File) -> io::Result<bool> {
    Ok(List::of(one)? == List::of(other)?)
}

/// Whether a user or a group may write a file, not as one of all others.
pub(super) fn lets_write(file: &File, user: u32, group: u32) -> io::Result<bool> {
    let found = file.metadata()?;
    let is_its_group = found.gid() == group;
    if found.uid() == user {
        return Ok(true);
    }
    Ok(match List::of(file)? {
        Some(list) => list.lets_write(user, is_its_group, group),
        None => is_its_group && found.mode() & GROUP_WRITES != 0,
    })
}

/// Whether everybody may write a file, and nobody is kept out by being of its group or in its list.
pub(super) fn lets_all_write(file: &File) -> io::Result<bool> {
    let all = GROUP_WRITES | OTHERS_WRITE;
    let may = file.metadata()?.mode() & all == all;
    Ok(may && List::of(file)?.is_none_or(|list| list.keeps_no_writer_out()))
}

/// Only root gives files away, and only to groups of one's own. In a user namespace some ids have
/// no name; and some file systems have no lists.
fn as_may_be(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error)
            if error.kind() == ErrorKind::PermissionDenied
                || [Errno::EINVAL, Errno::EOPNOTSUPP]
                    .iter()
                    .any(|errno| error.raw_os_error() == Some(*errno as i32)) =>
        {
            Ok(())
        }
        done => done,
    }
}

/// The permission bits for a copy, where there is no list. One of another group must not let that
/// in; nor may the group of the first have more rights as some of the others than it had as a
/// group.
fn bits(of: &Metadata, same_group: bool) -> u32 {
    let all = of.mode() & 0o777;
    let least = all & all >> 3 & 0o007;
    if same_group { all } else { all & OWNERS | least << 3 | least }
}

/// Whether who may read or write `theirs` may do so with `now`, which has its [`bits`]. The former
/// owner counts as one of the group.
fn lets_in(now: &Metadata, theirs: &Metadata) -> bool {
    let may = |who: u32| theirs.mode() >> who & 0o6;
    let (owner, group, others) = (may(6), may(3), may(0));
    let same_group = now.gid() == theirs.gid();
    let within = |less: u32, more: u32| less & !more == 0;
    let owner_is_in =
        now.uid() == theirs.uid() || within(owner, others) || same_group && within(owner, group);
    owner_is_in && (same_group || group == others)
}

#[cfg(test)]
mod tests {
    use super::*;

    use dash_testing::{Need, skip};

    /// The owner and user 2001 read and write, nobody else.
    fn list() -> List {
        let entries: [(u16, u16, u32); 5] = [
            (1, 6, u32::MAX),
            (2, 6, 2001),
            (4, 0, u32::MAX),
            (16, 6, u32::MAX),
            (32, 0, u32::MAX),
        ];
        let entry = |(tag, bits, id): (u16, u16, u32)| {
            [&tag.to_le_bytes()[..], &bits.to_le_bytes(), &id.to_le_bytes()].concat()
        };
        let bytes = [&2u32.to_le_bytes()[..], &entries.map(entry).concat()].concat();
        List::decode(&bytes).unwrap()
    }

    #[test]
    fn bits_and_lists_are_copied_and_taken_away() {
        let [from, to] = [(); 2].map(|()| tempfile::tempfile().unwrap());
        from.set_permissions(Permissions::from_mode(0o640)).unwrap();
        assert!(!is_copied(&to, &from).unwrap());
        assert!(copy(&to, &from).unwrap());
        assert_eq!(to.metadata().unwrap().mode() & 0o777, 0o640);
        assert!(is_copied(&to, &from).unwrap());
        if List::put(&from, Some(&list())).is_err() {
            return skip(Need::Lists, "this file system has no access control lists");
        }
        // The bits of the group are the list's mask now: copied alone they would let the group in.
        assert_eq!(from.metadata().unwrap().mode() & 0o777, 0o660);
        assert!(!is_copied(&to, &from).unwrap());
        assert!(copy(&to, &from).unwrap());
        assert_eq!(List::of(&to).unwrap(), Some(list()));
        assert!(is_copied(&to, &from).unwrap());
        let group = to.metadata().unwrap().gid();
        assert!(lets_write(&to, 2001, 1).unwrap(), "it is named");
        assert!(!lets_write(&to, 2002, group).unwrap(), "the bits are those of the list's mask");
        List::put(&from, None).unwrap();
        assert!(!is_copied(&to, &from).unwrap());
        assert!(copy(&to, &from).unwrap());
        assert_eq!(List::of(&to).unwrap(), None);
        assert!(lets_write(&to, 2002, group).unwrap());
    }
}
