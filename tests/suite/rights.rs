//! Who may read and write a file: by its owner, group and bits, and its access control list, as the
//! kernel decides it (acl(5)).

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

/// Where Linux keeps a file's list, and the one that new files of a folder get.
pub const LIST: &str = "system.posix_acl_access";
pub const DEFAULT_LIST: &str = "system.posix_acl_default";

/// What an entry of a list is about.
pub const OWNER: u16 = 0x01;
pub const USER: u16 = 0x02;
pub const GROUP: u16 = 0x04;
pub const NAMED_GROUP: u16 = 0x08;
pub const MASK: u16 = 0x10;
pub const OTHERS: u16 = 0x20;

/// An entry: what it is about, its bits, a user's or group's number.
pub type Entry = (u16, u16, u32);

/// Somebody.
#[derive(Debug, Clone, Copy)]
pub struct Person {
    pub user: u32,
    pub groups: &'static [u32],
}

/// Gives a file to a user and a group.
pub fn give(path: &Path, (user, group): (u32, u32)) {
    chown(path, Some(user), Some(group)).expect("root may");
}

/// Sets a file's permission bits.
pub fn allow(path: &Path, bits: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(bits)).expect("ours");
}

/// A list as the kernel has it.
pub fn encode(entries: &[Entry]) -> Vec<u8> {
    let one = |&(about, bits, id): &Entry| {
        [&about.to_le_bytes()[..], &bits.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    [2u32.to_le_bytes().to_vec(), entries.iter().flat_map(one).collect()].concat()
}

/// A file's entries; those that its bits stand for, if it has no list.
pub fn entries(path: &Path) -> Option<Vec<Entry>> {
    let found = path.symlink_metadata().ok()?;
    if let Some(list) = xattr::get(path, OsStr::new(LIST)).ok().flatten() {
        let half = |bytes: &[u8]| u16::from_le_bytes([bytes[0], bytes[1]]);
        let id = |bytes: &[u8]| u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
        let one = |entry: &[u8]| (half(entry), half(&entry[2..]), id(entry));
        return Some(list[4..].chunks_exact(8).map(one).collect());
    }
    let bits = |who: u32| u16::try_from(found.mode() >> who & 7).expect("small");
    Some(vec![(OWNER, bits(6), 0), (GROUP, bits(3), 0), (OTHERS, bits(0), 0)])
}

/// What somebody may do with a file; nothing where there is none.
pub fn may(path: &Path, who: Person) -> u16 {
    let (Some(entries), Ok(found)) = (entries(path), path.symlink_metadata()) else { return 0 };
    let bits = |about: u16| entries.iter().find(|entry| entry.0 == about).map_or(0, |it| it.1);
    let mask = entries.iter().find(|entry| entry.0 == MASK).map_or(7, |entry| entry.1);
    if who.user == found.uid() {
        return bits(OWNER);
    }
    if let Some(named) = entries.iter().find(|entry| entry.0 == USER && entry.2 == who.user) {
        return named.1 & mask;
    }
    let is_in = |&&(about, _, id): &&Entry| match about {
        GROUP => who.groups.contains(&found.gid()),
        NAMED_GROUP => who.groups.contains(&id),
        _ => false,
    };
    let groups: Vec<_> = entries.iter().filter(is_in).map(|entry| entry.1).collect();
    match groups.is_empty() {
        true => bits(OTHERS),
        false => groups.iter().fold(0, |all, bits| all | bits) & mask,
    }
}
