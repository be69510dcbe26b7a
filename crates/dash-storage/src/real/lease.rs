//! Leases, for the one thing they tell: whether anybody else has a file open.
//!
//! A write lease (`F_SETLEASE`) is granted only while there is no other open file description of
//! the inode, in any process. It is given back at once: whoever opens the file in that instant is
//! held up until then, and the kernel tells the holder by a signal, SIGIO if nothing else is
//! chosen, which ends a process that doesn't expect it. So SIGURG is chosen, which does nothing to
//! a process that doesn't ask for it and by its meaning may come at any time. The kernel forgets
//! the choice with the lease, so it is made each time.

#![expect(unsafe_code, reason = "fcntl with requests that nix does not have")]

use std::fs;
use std::io;
use std::os::fd::AsRawFd;

use nix::errno::Errno;

use super::retry::retry;

/// `F_SETSIG` of asm-generic/fcntl.h; libc has it for some targets only.
const F_SETSIG: libc::c_int = 10;

/// Whether there is another open file description of the file.
pub(super) fn open_elsewhere(file: &fs::File) -> io::Result<bool> {
    call(file, F_SETSIG, libc::SIGURG)?;
    match call(file, libc::F_SETLEASE, libc::F_WRLCK) {
        Ok(()) => {}
        Err(Errno::EAGAIN) => return Ok(true),
        Err(error) => return Err(error.into()),
    }
    // If this fails, somebody took the lease away.
    let _ = call(file, libc::F_SETLEASE, libc::F_UNLCK);
    Ok(false)
}

fn call(file: &fs::File, request: libc::c_int, argument: libc::c_int) -> Result<(), Errno> {
    retry(|| {
        // SAFETY: the descriptor is borrowed for the call, and these requests take an integer.
        Errno::result(unsafe { libc::fcntl(file.as_raw_fd(), request, argument) })
    })
    .map(drop)
}
