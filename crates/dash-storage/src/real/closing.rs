//! Whether closing a descriptor would drop locks that this process still needs.
//!
//! `close(2)` of *any* descriptor of an inode drops all POSIX locks that the process has on it,
//! through whatever descriptor they were taken. A stock SQLite connection in the same process has
//! just such locks. So our descriptors are parked while there are any. The kernel doesn't tell a
//! process its own POSIX locks, except to an open file description: `F_OFD_GETLK` reports them, if
//! no other lock stands in front of them. Where another dash connection's lock of one byte does,
//! the bytes on both sides are asked for: nobody else can have that byte, or SQLite doesn't share
//! it. It does share those of a `-shm`. Behind them, and behind any longer lock, the `fdinfo` of
//! the descriptors knows, each of the locks taken through it. (`/proc/locks` knows, too; but
//! reading it holds up all locking on the machine, for milliseconds.)

#![expect(unsafe_code, reason = "looks at descriptors that are not ours")]

use std::fs;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::RawFd;

use super::{descriptor, lock};
use crate::{FileId, LockKind};

/// Whether this process has POSIX locks on the inode; when in doubt, yes.
///
/// The description's own locks must be released before, or they would hide others.
pub(super) fn drops_locks(file: &fs::File, id: FileId) -> bool {
    asked(file).unwrap_or_else(|| listed(id))
}

/// The same, if that can be told by asking for locks.
pub(super) fn asked(file: &fs::File) -> Option<bool> {
    asked_of(file, lock::ALL, ASK_MOST)
}

/// The same, from a look at all descriptors of this process.
pub(super) fn listed(id: FileId) -> bool {
    looked_for(id.inode).unwrap_or(true)
}

/// How many locks of one byte are looked behind.
const ASK_MOST: usize = 64;

/// The bytes of a `-shm` that SQLite locks one by one, and shares: its eight locks, and the one
/// that says that the connection is there (os_unix.c `UNIX_SHM_BASE`, `UNIX_SHM_DMS`).
const SHM: Range<u64> = 120..129;

/// What `F_OFD_GETLK` says; `None` if something stands in the way.
fn asked_of(file: &fs::File, range: Range<u64>, most: usize) -> Option<bool> {
    let Some(lock) = lock::conflicting(file, range.clone(), LockKind::Exclusive).ok()? else {
        return Some(false);
    };
    if lock.owner == own_process() {
        return Some(true);
    }
    let found = lock.range;
    let hides = lock.kind == LockKind::Shared && SHM.contains(&found.start);
    if lock.owner != lock::NO_OWNER || found.end - found.start != 1 || hides || most == 0 {
        return None;
    }
    let below = asked_of(file, range.start..found.start, most - 1)?;
    Some(below || asked_of(file, found.end..range.end, most - 1)?)
}

fn own_process() -> i32 {
    nix::unistd::getpid().as_raw()
}

/// What knows the descriptors of this thread's process, and the locks taken through each. What
/// `/proc/self` has is gone once the first thread has ended.
const PROCESS: &str = "/proc/thread-self";

/// Looks for a POSIX lock of this process on an inode of that number on any device (stacked file
/// systems show other device numbers there); `None` if the list can't be read. A process may have
/// thousands of descriptors, and `fdinfo` of one takes long: it is read of those of the inode
/// alone, and not of ours, through which no POSIX lock is ever taken.
fn looked_for(inode: u64) -> Option<bool> {
    let process = own_process();
    for entry in fs::read_dir(format!("{PROCESS}/fd")).ok()? {
        let number = entry.ok()?.file_name().to_str()?.parse().ok()?;
        if inode_of(number) != Some(inode) || descriptor::is_own(number) {
            continue;
        }
        // One that was just closed has none.
        let info = fs::read_to_string(format!("{PROCESS}/fdinfo/{number}")).unwrap_or_default();
        let mut locks = info.lines().filter_map(|line| line.strip_prefix("lock:"));
        if locks.any(|line| is_posix_lock(line, process, inode)) {
            return Some(true);
        }
    }
    Some(false)
}

/// Which inode a descriptor is of; `None`: it was just closed.
fn inode_of(number: RawFd) -> Option<u64> {
    let mut found = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the kernel knows which numbers are open, and fills in the place if this one is.
    let found =
        unsafe { (libc::fstat(number, found.as_mut_ptr()) == 0).then(|| found.assume_init()) };
    found.map(|found| found.st_ino)
}

/// A lock is `1: POSIX  ADVISORY  READ 4321 fe:00:123456 128 128`; waiters have `->` before POSIX.
fn is_posix_lock(line: &str, process: i32, inode: u64) -> bool {
    let mut words = line.split_ascii_whitespace().skip(1);
    if words.next() != Some("POSIX") {
        return false;
    }
    let mut words = words.skip(2);
    let same_process = words.next().and_then(|word| word.parse().ok()) == Some(process);
    let number = words.next().and_then(|place| place.rsplit(':').next());
    same_process && number.and_then(|number| number.parse().ok()) == Some(inode)
}

#[cfg(test)]
mod tests {
    use super::is_posix_lock;

    #[test]
    fn a_lock_of_fdinfo_is_understood() {
        let line = "12: POSIX  ADVISORY  READ  4321 fe:00:123456 1073741826 1073742335";
        assert!(is_posix_lock(line, 4321, 123_456));
        assert!(!is_posix_lock(line, 4322, 123_456));
        assert!(!is_posix_lock(line, 4321, 12_345));
        assert!(!is_posix_lock("1: OFDLCK ADVISORY  READ -1 fe:00:123456 0 0", -1, 123_456));
        assert!(!is_posix_lock("1: -> POSIX  ADVISORY  READ 1 fe:00:5 0 0", 1, 5));
        assert!(!is_posix_lock("", 1, 5));
    }
}
