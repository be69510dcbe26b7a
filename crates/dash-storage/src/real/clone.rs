//! `FICLONERANGE`: two files sharing extents until one of them writes.

#![expect(unsafe_code, reason = "an ioctl")]

use std::fs;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;

use nix::errno::Errno;

/// `struct file_clone_range` of linux/fs.h.
#[repr(C)]
pub struct CloneRange {
    source: i64,
    source_offset: u64,
    source_len: u64,
    offset: u64,
}

const _: () = assert!(size_of::<CloneRange>() == 32);

nix::ioctl_write_ptr! {
    /// `FICLONERANGE` of linux/fs.h.
    ficlonerange, 0x94, 13, CloneRange
}

/// Shares `range` of `source` into the same place of `target`.
pub(super) fn clone_range(
    target: &fs::File,
    source: &fs::File,
    range: Range<u64>,
) -> io::Result<()> {
    if range.is_empty() {
        return Ok(()); // A length of zero would mean "to the end".
    }
    let request = CloneRange {
        source: source.as_raw_fd().into(),
        source_offset: range.start,
        source_len: range.end - range.start,
        offset: range.start,
    };
    loop {
        // SAFETY: both descriptors are borrowed for the call, and the request has the layout that
        // this ioctl reads.
        match unsafe { ficlonerange(target.as_raw_fd(), &raw const request) } {
            Ok(_) => return Ok(()),
            Err(Errno::EINTR) => {}
            Err(Errno::EINVAL | Errno::ENOTTY | Errno::EXDEV | Errno::ENOSYS) => {
                return Err(Errno::EOPNOTSUPP.into());
            }
            Err(error) => return Err(error.into()),
        }
    }
}
