//! Locks on byte ranges, as another process has them.

use std::fs::File;

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

/// Locks the first bytes of a file until it is closed: `F_RDLCK` or `F_WRLCK`.
pub fn lock_first(file: &File, kind: libc::c_int, bytes: i64) {
    lock(file, kind, 0, bytes);
}

/// The same of bytes elsewhere.
pub fn lock(file: &File, kind: libc::c_int, start: i64, bytes: i64) {
    let lock = libc::flock {
        l_type: i16::try_from(kind).expect("small"),
        l_whence: i16::try_from(libc::SEEK_SET).expect("small"),
        l_start: start,
        l_len: bytes,
        l_pid: 0,
    };
    fcntl(file, FcntlArg::F_OFD_SETLK(&lock)).expect("nobody has it");
}

/// Gives that up.
pub fn unlock_first(file: &File, bytes: i64) {
    lock_first(file, libc::F_UNLCK, bytes);
}
