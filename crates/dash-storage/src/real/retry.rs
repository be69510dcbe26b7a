//! Calls that a signal interrupts are made again.

use std::io;

use nix::errno::Errno;

/// Makes a call until no signal interrupts it (file systems in user space let signals in anywhere).
/// Not for calls that must not be made twice: whether an interrupted one was carried out is not
/// known.
pub(super) fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Makes a call until no signal interrupts it, if it answers with its `errno`.
pub(super) fn retry<T>(mut call: impl FnMut() -> nix::Result<T>) -> nix::Result<T> {
    loop {
        match call() {
            Err(Errno::EINTR) => {}
            result => return result,
        }
    }
}
