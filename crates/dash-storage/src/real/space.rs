//! Space that is reserved, given back, or left; and which pid namespace this process is in.

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use nix::sys::statvfs::fstatvfs;
use std::fs;
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU64, Ordering};

use super::fork::forks;
use super::metadata::stat;
use super::retry::uninterrupted;

/// Bytes of what `st_blocks` counts.
const SECTOR: u64 = 512;

/// See [`crate::File::allocate`].
pub(super) fn extend(file: &fs::File, len: u64) -> io::Result<()> {
    let end = libc::off_t::try_from(len).map_err(|_| Errno::EFBIG)?;
    // Not the holes before: a file may claim any length for nothing, and is no reason to fill the
    // disk.
    let old = libc::off_t::try_from(stat(file)?.len()).map_err(|_| Errno::EFBIG)?;
    if old >= end {
        return Ok(());
    }
    match reserve(file, FallocateFlags::empty(), old, end - old) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
        other => return other,
    }
    if stat(file)?.len() < len { file.set_len(len) } else { Ok(()) }
}

/// See [`crate::File::make_room`].
pub(super) fn make_room(file: &fs::File, range: &Range<u64>) -> io::Result<()> {
    if range.is_empty() {
        return Ok(());
    }
    let offset = |at: u64| libc::off_t::try_from(at).map_err(|_| Errno::EFBIG);
    let (start, end) = (offset(range.start)?, offset(range.end)?);
    reserve(file, FallocateFlags::FALLOC_FL_KEEP_SIZE, start, end - start)
}

/// Gives a file blocks up to `end` where it has too few for its length: SQLite writes one byte to
/// every 4 KiB of a `-shm` (os_unix.c `unixShmMap`), which leaves holes on smaller blocks, and who
/// touches such a word on a full disk is ended (SIGBUS).
pub(super) fn fill_holes(file: &fs::File, found: &fs::Metadata, end: u64) -> io::Result<()> {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    if found.blocks() >= found.len() / SECTOR {
        return Ok(());
    }
    match make_room(file, &(0..end)) {
        Err(error) if matches!(error.kind(), StorageFull | QuotaExceeded) => Err(error),
        // Blocks are not to be had so, or what is open may not be written.
        _ => Ok(()),
    }
}

/// Unsupported where the file system, or the kernel, has no such call.
fn reserve(
    file: &fs::File,
    how: FallocateFlags,
    start: libc::off_t,
    len: libc::off_t,
) -> io::Result<()> {
    let unsupported = [Errno::EOPNOTSUPP, Errno::ENOSYS].map(|errno| Some(errno as i32));
    match uninterrupted(|| Ok(fallocate(file, how, start, len)?)) {
        Err(error) if unsupported.contains(&error.raw_os_error()) => {
            Err(io::ErrorKind::Unsupported.into())
        }
        result => result,
    }
}

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
