//! Who holds POSIX locks of a file: `fcntl` names one holder, `/proc/locks` all of them.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::ops::Range;

use procfs::process::Process;
use procfs::{Lock, LockType};
use rustix::fs::{AtFlags, StatxFlags, statx};

/// The processes with POSIX locks in `range` of a file, each once; none without `/proc`.
pub(super) fn of_locks(file: &fs::File, range: &Range<u64>) -> io::Result<Vec<i32>> {
    let (device, inode) = identity(file)?;
    let is_here = |lock: &Lock| {
        let last = lock.offset_last.unwrap_or(u64::MAX);
        (lock.devmaj, lock.devmin) == device
            && lock.inode == inode
            && lock.offset_first < range.end
            && last >= range.start
    };
    let Ok(locks) = procfs::locks() else { return Ok(Vec::new()) };
    let held = locks.into_iter().filter(|lock| lock.lock_type == LockType::Posix && is_here(lock));
    Ok(BTreeSet::from_iter(held.filter_map(|lock| lock.pid)).into_iter().collect())
}

/// Major and minor number of the mounted device, and the inode, as `/proc/locks` has them. A
/// subvolume of Btrfs has a device number of its own in `stat(2)`, so the mount is asked.
fn identity(file: &fs::File) -> io::Result<((u32, u32), u64)> {
    let found = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::INO | StatxFlags::MNT_ID)?;
    let mounts = Process::myself().and_then(|process| process.mountinfo());
    let mut mounts = mounts.into_iter().flatten();
    let mount = mounts.find(|mount| u64::try_from(mount.mnt_id) == Ok(found.stx_mnt_id));
    let numbers = mount.and_then(|mount| {
        let (major, minor) = mount.majmin.split_once(':')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    });
    Ok((numbers.unwrap_or((found.stx_dev_major, found.stx_dev_minor)), found.stx_ino))
}
