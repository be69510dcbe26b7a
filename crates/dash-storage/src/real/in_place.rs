//! Files that are always written in place, for shared memory in them.
//!
//! Btrfs writes nothing in place: a mapped page that was written back needs new space when it is
//! written again, and where there is none the store is a SIGBUS, which ends the process. (Stock
//! SQLite's `-shm` has the same fate.) A file with the attribute `FS_NOCOW_FL` is written where it
//! is, if it got its blocks beforehand; Linux heeds that in mappings from 6.16 on. A snapshot
//! shares the blocks once more and makes the next write a copy again.

#![expect(unsafe_code, reason = "ioctls")]

use std::fs;
use std::io;
use std::os::fd::AsRawFd;

use nix::sys::statfs::{BTRFS_SUPER_MAGIC, fstatfs};

/// `FS_NOCOW_FL` of linux/fs.h.
const NOCOW: libc::c_long = 0x0080_0000;

nix::ioctl_read! {
    /// `FS_IOC_GETFLAGS` of linux/fs.h. Its number says `long`; file systems read and write an
    /// `int`.
    flags, b'f', 1, libc::c_long
}
nix::ioctl_write_ptr! {
    /// `FS_IOC_SETFLAGS` of linux/fs.h.
    set_flags, b'f', 2, libc::c_long
}

/// Has an empty file written in place from now on, where the file system would not do so anyway.
/// Whether that needs the file's blocks to be there beforehand.
pub(super) fn keep(file: &fs::File) -> io::Result<bool> {
    if fstatfs(file)?.filesystem_type() != BTRFS_SUPER_MAGIC {
        return Ok(false);
    }
    let mut now: libc::c_long = 0;
    // SAFETY: the descriptor is borrowed for the calls, and the word has room for what is written
    // to it.
    unsafe {
        flags(file.as_raw_fd(), &raw mut now)?;
        let wanted = now | NOCOW;
        set_flags(file.as_raw_fd(), &raw const wanted)?;
    }
    Ok(true)
}
