//! Who holds POSIX locks of a file: `fcntl` names one holder, `/proc/locks` all of them; and who
//! has a lease on one.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::ops::Range;

use rustix::fs::{AtFlags, StatxFlags, statx};

/// A device's major and minor number, and an inode on it.
type Identity = ((u32, u32), u64);

/// The processes with POSIX locks in `range` of a file, each once; none without `/proc`.
pub(super) fn of_locks(file: &fs::File, range: &Range<u64>) -> io::Result<Vec<i32>> {
    let identity = identity(file, "".as_ref(), AtFlags::EMPTY_PATH)?;
    let Ok(locks) = fs::read_to_string("/proc/locks") else { return Ok(Vec::new()) };
    let owners = locks.lines().filter_map(|line| owner(line, "POSIX", identity, range));
    Ok(BTreeSet::from_iter(owners).into_iter().collect())
}

/// Says that somebody keeps a lease on what has this name in a folder, and who that is.
pub(super) fn leased(folder: &fs::File, name: &OsStr) -> io::Error {
    let look = || {
        let identity = identity(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let locks = fs::read_to_string("/proc/locks").ok()?;
        locks.lines().find_map(|line| owner(line, "LEASE", identity, &(0..u64::MAX)))
    };
    let who = look().map_or("another process".to_owned(), |id| format!("process {id}"));
    let message = format!(
        "{who} keeps a lease on it (F_SETLEASE), so nobody can open it: end that process, or remove the file"
    );
    io::Error::new(io::ErrorKind::WouldBlock, message)
}

/// Whose lock a line of `/proc/locks` is, if it is one of that kind in `range` of that file:
/// `1: POSIX  ADVISORY  WRITE 4567 08:01:131105 1073741824 EOF`, with `->` before the kind where
/// somebody waits.
fn owner(line: &str, kind: &str, identity: Identity, range: &Range<u64>) -> Option<i32> {
    let mut fields = line.split_whitespace().skip(1).filter(|field| *field != "->");
    if fields.next()? != kind {
        return None;
    }
    let pid = fields.nth(2)?.parse().ok()?;
    let mut place = fields.next()?.split(':');
    let mut number = || u32::from_str_radix(place.next()?, 16).ok();
    let device = (number()?, number()?);
    let inode = place.next()?.parse().ok()?;
    let first: u64 = fields.next()?.parse().ok()?;
    let last = fields.next()?.parse().unwrap_or(u64::MAX);
    let is_here = (device, inode) == identity && first < range.end && last >= range.start;
    (is_here && pid > 0).then_some(pid)
}

/// Major and minor number of the mounted device, and the inode, as `/proc/locks` has them. A
/// subvolume of Btrfs has a device number of its own in `stat(2)`, so the mount is asked.
fn identity(from: &fs::File, name: &OsStr, how: AtFlags) -> io::Result<Identity> {
    let found = statx(from, name, how, StatxFlags::INO | StatxFlags::MNT_ID)?;
    let mounts = fs::read("/proc/self/mountinfo").unwrap_or_default();
    let mounts = String::from_utf8_lossy(&mounts);
    let mut numbers = mounts.lines().filter_map(|line| device(line, found.stx_mnt_id));
    let numbers = numbers.next().unwrap_or((found.stx_dev_major, found.stx_dev_minor));
    Ok((numbers, found.stx_ino))
}

/// The device of a line of `/proc/self/mountinfo`, if it is about that mount: `36 35 98:0 / /mnt`.
fn device(line: &str, mount: u64) -> Option<(u32, u32)> {
    let mut fields = line.split(' ');
    if fields.next()?.parse() != Ok(mount) {
        return None;
    }
    let (major, minor) = fields.nth(1)?.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_read() {
        let here = ((8, 1), 131_105);
        let of = |line: &str, range: Range<u64>| owner(line, "POSIX", here, &range);
        let line = "1: POSIX  ADVISORY  WRITE 4567 08:01:131105 100 EOF";
        assert_eq!(of(line, 0..101), Some(4567));
        assert_eq!(of(line, 0..100), None, "it begins behind the range");
        let line = "2: POSIX  ADVISORY  READ 4567 08:01:131105 100 109";
        assert_eq!(of(line, 109..200), Some(4567));
        assert_eq!(of(line, 110..200), None, "it ends before the range");
        for other in [
            "3: OFDLCK ADVISORY  READ -1 08:01:131105 0 EOF",
            "4: FLOCK  ADVISORY  WRITE 4567 08:01:131105 0 EOF",
            "5: POSIX  ADVISORY  WRITE 4567 08:01:131106 0 EOF",
            "6: POSIX  ADVISORY  WRITE 4567 08:11:131105 0 EOF",
            "7: POSIX",
        ] {
            assert_eq!(of(other, 0..u64::MAX), None, "{other}");
        }
        let line = "8: LEASE  BREAKING  READ  4567 08:01:131105 0 EOF";
        assert_eq!(owner(line, "LEASE", here, &(0..u64::MAX)), Some(4567));
        let mount = "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw";
        assert_eq!((device(mount, 36), device(mount, 35)), (Some((98, 0)), None));
    }
}
