//! A POSIX access control list, as Linux keeps it beside a file's permission bits (acl(5),
//! `posix_acl_xattr.h`). Where there is one, the bits of the group are its mask: the most that any
//! of its entries gives but the owner's and that for all others.

use std::fs::File;
use std::io;

use rustix::fs::{XattrFlags, fgetxattr, fremovexattr, fsetxattr};
use rustix::io::Errno;

use super::retry::uninterrupted;

const NAME: &str = "system.posix_acl_access";

/// What it begins with.
const VERSION: [u8; 4] = 2u32.to_le_bytes();

/// What an entry is about.
const OWNER: u16 = 0x01;
const USER: u16 = 0x02;
const GROUP: u16 = 0x04;
const NAMED_GROUP: u16 = 0x08;
const MASK: u16 = 0x10;
const OTHERS: u16 = 0x20;

/// Permission to write.
const WRITE: u16 = 0o2;

/// An entry: what it is about, what that may do, and a user's or group's number.
type Entry = (u16, u16, [u8; 4]);

/// A usual list, and the longest that the kernel keeps.
const LENGTHS: [usize; 2] = [1 << 10, 64 << 10];

/// A file's list as it is kept.
fn read(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for length in LENGTHS {
        bytes.resize(length, 0);
        match fgetxattr(file, NAME, &mut *bytes) {
            Err(Errno::RANGE) => {}
            length => {
                bytes.truncate(length?);
                return Ok(bytes);
            }
        }
    }
    Err(Errno::RANGE.into())
}

/// A list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct List(Vec<Entry>);

impl List {
    /// A file's, if it has one. Where it can't be read there is none: many file systems have no
    /// such lists.
    pub(super) fn of(file: &File) -> io::Result<Option<Self>> {
        let bytes = uninterrupted(|| read(file)).ok();
        let unknown = || io::Error::other("its access control list is of an unknown kind");
        bytes.map(|bytes| Self::decode(&bytes).ok_or_else(unknown)).transpose()
    }

    /// Gives a file a list, and the permission bits that it stands for, at once; or takes it away,
    /// which leaves the bits.
    pub(super) fn put(file: &File, list: Option<&Self>) -> io::Result<()> {
        match list {
            Some(list) => fsetxattr(file, NAME, &list.encode(), XattrFlags::empty())?,
            None => fremovexattr(file, NAME)?,
        }
        Ok(())
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let entries = bytes.strip_prefix(&VERSION)?;
        let (entries, []) = entries.as_chunks::<8>() else { return None };
        let one = |&[a, b, c, d, id @ ..]: &[u8; 8]| {
            (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]), id)
        };
        Some(Self(entries.iter().map(one).collect()))
    }

    fn encode(&self) -> Vec<u8> {
        let one = |(about, may, id): &Entry| {
            let ([a, b], [c, d], [e, f, g, h]) = (about.to_le_bytes(), may.to_le_bytes(), *id);
            [a, b, c, d, e, f, g, h]
        };
        VERSION.into_iter().chain(self.0.iter().flat_map(one)).collect()
    }

    fn entries(&self, about: u16) -> impl Iterator<Item = u16> {
        self.0.iter().filter(move |entry| entry.0 == about).map(|entry| entry.1)
    }

    /// The most that an entry for a group gives.
    fn mask(&self) -> u16 {
        self.entries(MASK).fold(0o7, |all, may| all & may)
    }

    /// Whether a user may write the file that it names, or a group: the file's own, or one that it
    /// names.
    pub(super) fn lets_write(&self, user: u32, is_its_group: bool, group: u32) -> bool {
        let (user, group) = (user.to_le_bytes(), group.to_le_bytes());
        let named = self.0.iter().find(|&&(about, _, id)| about == USER && id == user);
        if let Some((_, may, _)) = named {
            // Whatever its groups may (acl(5)).
            return may & self.mask() & WRITE != 0;
        }
        let may = self.0.iter().any(|&(about, may, id)| {
            let is_meant = match about {
                GROUP => is_its_group,
                NAMED_GROUP => id == group,
                _ => false,
            };
            is_meant && may & WRITE != 0
        });
        may && self.mask() & WRITE != 0
    }

    /// Whether every entry, and the most that those for groups give, lets write.
    pub(super) fn keeps_no_writer_out(&self) -> bool {
        self.0.iter().all(|(_, may, _)| may & WRITE != 0)
    }

    /// The list for a copy that does not belong to this user, who owns the file: he may do by his
    /// name what he may as its owner, and nobody else more than before.
    pub(super) fn letting_in(self, owner: Option<u32>) -> Self {
        let Some(owner) = owner.map(u32::to_le_bytes) else { return self };
        let may = self.entries(OWNER).fold(0, |all, may| all | may);
        let mask = self.mask();
        let is_he = |entry: &&Entry| (entry.0, entry.2) != (USER, owner);
        let mut entries: Vec<_> = self.0.iter().filter(is_he).copied().collect();
        for (about, bits, _) in &mut entries {
            match *about {
                USER | GROUP | NAMED_GROUP => *bits &= mask,
                MASK => *bits |= may,
                _ => {}
            }
        }
        let behind = entries.iter().position(|entry| entry.0 == GROUP).unwrap_or(entries.len());
        entries.insert(behind, (USER, may, owner));
        Self(entries)
    }

    /// The list for a folder that whoever may use the file may read, and its owner alone change.
    pub(super) fn of_folder(&self) -> Self {
        let one = |&(about, may, id): &Entry| match about {
            OWNER => (about, 0o7, id),
            _ if may & 0o6 == 0 => (about, 0, id),
            _ => (about, 0o5, id),
        };
        Self(self.0.iter().map(one).collect())
    }

    /// The permission bits that it stands for.
    pub(super) fn bits(&self) -> u32 {
        let [owner, others] =
            [OWNER, OTHERS].map(|about| self.entries(about).fold(0, |all, may| all | may));
        let has_mask = self.entries(MASK).next().is_some();
        let group = match has_mask {
            true => self.mask(),
            false => self.entries(GROUP).fold(0, |all, may| all | may),
        };
        u32::from(owner) << 6 | u32::from(group) << 3 | u32::from(others)
    }

    /// The list for a copy, which may be of another group. That must not be let in, nor may the
    /// former group, or one that it names, have more rights as some of the others: both the group
    /// and all others get what every one of these has.
    pub(super) fn within(&self, same_group: bool) -> Self {
        if same_group {
            return self.clone();
        }
        let least = [GROUP, NAMED_GROUP, OTHERS]
            .into_iter()
            .flat_map(|about| self.entries(about))
            .fold(self.mask(), |all, may| all & may);
        let one = |&(about, may, id): &Entry| match about {
            GROUP | OTHERS => (about, least, id),
            _ => (about, may, id),
        };
        Self(self.0.iter().map(one).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOBODY: [u8; 4] = [0xFF; 4];

    #[test]
    fn a_copy_of_another_group_gives_it_what_all_have() {
        let list = |group, named, others| {
            List(vec![
                (OWNER, 6, NOBODY),
                (USER, 6, 2001u32.to_le_bytes()),
                (GROUP, group, NOBODY),
                (NAMED_GROUP, named, 5002u32.to_le_bytes()),
                (MASK, 6, NOBODY),
                (OTHERS, others, NOBODY),
            ])
        };
        assert_eq!(list(6, 6, 4).within(false), list(4, 6, 4));
        assert_eq!(list(6, 0, 4).within(false), list(0, 0, 0));
        assert_eq!(list(0, 6, 4).within(false), list(0, 6, 0));
        assert_eq!(list(6, 6, 4).within(true), list(6, 6, 4));
        assert_eq!(list(0, 6, 4).bits(), 0o664);
        let list_says = |group, named, who: (u32, bool, u32)| {
            list(group, named, 0).lets_write(who.0, who.1, who.2)
        };
        assert!(list_says(0, 0, (2001, false, 1)) && !list_says(0, 0, (2002, true, 5002)));
        assert!(list_says(6, 6, (2001, true, 5002)));
        let denied = List(vec![(USER, 4, 2001u32.to_le_bytes()), (GROUP, 6, NOBODY)]);
        assert!(!denied.lets_write(2001, true, 1) && denied.lets_write(2002, true, 1));
        assert!(list_says(6, 0, (2002, true, 1)) && list_says(0, 6, (2002, false, 5002)));
        assert_eq!(list(6, 2, 0).of_folder().bits(), 0o750);
        let his = list(0, 0, 0).letting_in(Some(2003));
        assert!(his.lets_write(2003, false, 1) && !list_says(0, 0, (2003, false, 1)));
        assert_eq!(list(0, 0, 0).letting_in(None), list(0, 0, 0));
        let narrow = List(vec![(OWNER, 6, NOBODY), (GROUP, 6, NOBODY), (MASK, 4, NOBODY)]);
        let his = narrow.letting_in(Some(2003));
        assert!(his.lets_write(2003, true, 1) && !his.lets_write(2002, true, 1));
        let bytes = list(6, 4, 0).encode();
        assert_eq!(List::decode(&bytes), Some(list(6, 4, 0)));
        assert_eq!(List::decode(&bytes[..bytes.len() - 1]), None);
        assert_eq!(List::decode(&[3, 0, 0, 0]), None);
    }
}
