//! Space that is given back, or is left; and which pid namespace this process is in.

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use nix::sys::statvfs::fstatvfs;
use std::fs;
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{forks, uninterrupted};

/// See [`crate::File::punch`].
pub(super) fn punch(file: &fs::File, range: &Range<u64>) -> io::Result<()> {
    if range.is_empty() {
        return Ok(());
    }
    let offset = |at: u64| libc::off_t::try_from(at).map_err(|_| Errno::EFBIG);
    let (start, len) = (offset(range.start)?, offset(range.end - range.start)?);
    let how = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    match uninterrupted(|| Ok(fallocate(file, how, start, len)?)) {
        Err(error) if error.raw_os_error() == Some(Errno::ENOSYS as i32) => {
            Err(io::ErrorKind::Unsupported.into())
        }
        result => result,
    }
}

/// See [`crate::File::free_space`].
pub(super) fn free(file: &fs::File) -> io::Result<u64> {
    let found = uninterrupted(|| Ok(fstatvfs(file)?))?;
    #[expect(clippy::useless_conversion, reason = "32-bit systems have smaller numbers")]
    let (blocks, size) = (u64::from(found.blocks_available()), u64::from(found.fragment_size()));
    Ok(blocks.saturating_mul(size))
}

/// The inode number of the namespace; asked once, and again in a forked child. 0 where `/proc` is
/// not mounted.
pub(super) fn pid_namespace() -> u64 {
    static KNOWN: AtomicU64 = AtomicU64::new(0);
    static KNOWN_AFTER: AtomicU64 = AtomicU64::new(u64::MAX);
    if KNOWN_AFTER.load(Ordering::Acquire) == forks() {
        return KNOWN.load(Ordering::Relaxed);
    }
    let number = fs::metadata("/proc/self/ns/pid").map_or(0, |found| found.ino());
    KNOWN.store(number, Ordering::Relaxed);
    KNOWN_AFTER.store(forks(), Ordering::Release);
    number
}
