//! Blocks that are there and written, so that writing them again changes nothing but their bytes.
//!
//! A block that is only allocated is marked as never written, and the first write to it changes
//! that mark: a commit of the file system's journal, which a flush then waits for.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use nix::sys::resource::{Resource, getrlimit};

use super::{in_place, retry::uninterrupted};
use crate::Blocks;

/// `FALLOC_FL_WRITE_ZEROES`: allocates blocks and has the device make zeros of them, where it can
/// do so without being sent any. Linux 6.17.
const WRITE_ZEROES: FallocateFlags = FallocateFlags::from_bits_retain(0x80);
/// Zeros written at once, in bytes.
const PIECE: usize = 1 << 20;

/// Whether this process may make a file so long. Past that limit the kernel ends it (SIGXFSZ), and
/// it has not asked for a long file.
///
/// # Errors
///
/// `EFBIG`.
pub fn check_limit(end: u64) -> io::Result<()> {
    match end > getrlimit(Resource::RLIMIT_FSIZE)?.0 {
        true => Err(Errno::EFBIG.into()),
        false => Ok(()),
    }
}

/// Allocates the range and makes zeros of it; `write` writes.
pub(super) fn initialize(
    file: &File,
    range: Range<u64>,
    write: impl Fn(&[u8], u64) -> io::Result<()>,
) -> io::Result<()> {
    if range.is_empty() {
        return Ok(());
    }
    check_limit(range.end)?;
    let found = uninterrupted(|| file.metadata())?;
    if found.len() == 0 {
        // As well as can be: where blocks are copied on write, each write changes more.
        let _ = in_place::keep(file);
    }
    // A part of a block would stay in one that is only allocated.
    let whole = |at: u64| at.is_multiple_of(found.blksize().max(512));
    if whole(range.start) && whole(range.end) && allocate(file, WRITE_ZEROES, &range)? {
        return Ok(());
    }
    // All of it in one piece, if there is room for it at all.
    allocate(file, FallocateFlags::empty(), &range)?;
    write_zeros(range, write)
}

/// Writes zeros, piece by piece.
pub(super) fn write_zeros(
    range: Range<u64>,
    write: impl Fn(&[u8], u64) -> io::Result<()>,
) -> io::Result<()> {
    let len = range.end.saturating_sub(range.start);
    let most = usize::try_from(len).unwrap_or(PIECE).min(PIECE);
    let zeros = Blocks::try_new(most)?;
    let mut at = range.start;
    while at < range.end {
        let len = usize::try_from(range.end - at).unwrap_or(most).min(most);
        write(&zeros[..len], at)?;
        at = at.saturating_add(u64::try_from(len).map_err(|_| Errno::EFBIG)?);
    }
    Ok(())
}

/// Whether the file system could do that.
fn allocate(file: &File, how: FallocateFlags, range: &Range<u64>) -> io::Result<bool> {
    let place = |at: u64| libc::off_t::try_from(at).map_err(|_| Errno::EFBIG);
    let (start, end) = (place(range.start)?, place(range.end)?);
    match uninterrupted(|| Ok(fallocate(file, how, start, end - start)?)) {
        Ok(()) => Ok(true),
        Err(error)
            if matches!(
                error.raw_os_error().map(Errno::from_raw),
                Some(Errno::EOPNOTSUPP | Errno::ENOSYS | Errno::EINVAL)
            ) =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}
