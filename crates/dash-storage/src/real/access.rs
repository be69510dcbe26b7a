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
use xattr::FileExt;

use super::uninterrupted;

/// Where Linux keeps a file's POSIX access control list.
const ACCESS_LIST: &str = "system.posix_acl_access";

/// Gives `to` what `from` has of these, as far as this process may. Whether everybody who may use
/// `from` may use `to` now. To be called again where a signal interrupts it.
pub(super) fn copy(to: &File, from: &File) -> io::Result<bool> {
    let theirs = from.metadata()?;
    let mut mine = to.metadata()?;
    if mine.gid() != theirs.gid() {
        as_may_be(fchown(to, None, Some(theirs.gid())))?;
        mine = to.metadata()?;
    }
    let listed = copy_list(to, from)?;
    let wanted = bits(&theirs, mine.gid() == theirs.gid());
    if mine.mode() & 0o777 != wanted || mine.uid() != theirs.uid() {
        as_may_be(to.set_permissions(Permissions::from_mode(wanted)))?;
        if mine.uid() != theirs.uid() {
            as_may_be(fchown(to, Some(theirs.uid()), None))?;
        }
        mine = to.metadata()?;
    }
    Ok(listed && mine.mode() & 0o777 == wanted && lets_in(&mine, &theirs))
}

/// Only root gives files away, and only to groups of one's own. In a user namespace some ids have
/// no name.
fn as_may_be(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error)
            if error.kind() == ErrorKind::PermissionDenied
                || error.raw_os_error() == Some(Errno::EINVAL as i32) =>
        {
            Ok(())
        }
        done => done,
    }
}

/// The permission bits for a copy. One of another group must not let that in; nor may the group of
/// the first have more rights as some of the others than it had as a group.
fn bits(of: &Metadata, same_group: bool) -> u32 {
    let all = of.mode() & 0o777;
    let least = all & all >> 3 & 0o007;
    if same_group { all } else { all & 0o700 | least << 3 | least }
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

/// Whether `to` has the access control list of `from` now, or neither has one.
fn copy_list(to: &File, from: &File) -> io::Result<bool> {
    // Where it can't be read there is none: many file systems have no such lists.
    let list = |of: &File| uninterrupted(|| of.get_xattr(ACCESS_LIST)).ok().flatten();
    let (mine, theirs) = (list(to), list(from));
    if mine == theirs {
        return Ok(true);
    }
    let copied = match &theirs {
        Some(theirs) => to.set_xattr(ACCESS_LIST, theirs),
        None => to.remove_xattr(ACCESS_LIST),
    };
    as_may_be(copied)?;
    Ok(list(to) == theirs)
}

#[cfg(test)]
mod tests {
    use super::*;

    use dash_testing::{Need, skip};

    /// An access control list (Linux `posix_acl_xattr.h`): the owner and user 2001 read and write,
    /// nobody else.
    fn list() -> Vec<u8> {
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
        [&2u32.to_le_bytes()[..], &entries.map(entry).concat()].concat()
    }

    #[test]
    fn bits_and_lists_are_copied_and_taken_away() {
        let [from, to] = [(); 2].map(|()| tempfile::tempfile().unwrap());
        from.set_permissions(Permissions::from_mode(0o640)).unwrap();
        assert!(copy(&to, &from).unwrap());
        assert_eq!(to.metadata().unwrap().mode() & 0o777, 0o640);
        if from.set_xattr(ACCESS_LIST, &list()).is_err() {
            return skip(Need::Lists, "this file system has no access control lists");
        }
        // The bits of the group are the list's mask now: copied alone they would let the group in.
        assert_eq!(from.metadata().unwrap().mode() & 0o777, 0o660);
        assert!(copy(&to, &from).unwrap());
        assert_eq!(to.get_xattr(ACCESS_LIST).unwrap(), Some(list()));
        from.remove_xattr(ACCESS_LIST).unwrap();
        assert!(copy(&to, &from).unwrap());
        assert_eq!(to.get_xattr(ACCESS_LIST).unwrap(), None);
    }
}
