//! The numbers of the standard streams. Where a process has closed one of them, the next file that
//! is opened gets its number, and what a library prints goes into that file. SQLite's VFS keeps its
//! files off these numbers, too (`robust_open` in `os_unix.c`).

use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::{fs, io};

use nix::fcntl::{self, OFlag};
use nix::sys::stat::Mode;
use nix::unistd::dup2;

use super::retry::retry;

/// The first number that is no standard stream's.
const FIRST: RawFd = 3;

/// The same open file under a number of no standard stream, all of which are in use then. Costs
/// nothing where it has one.
///
/// The lower number is closed, and with it go POSIX locks that others of the process have on the
/// file. A folder has none, and one is opened before any file of a database.
pub(super) fn kept_off(mut opened: OwnedFd) -> io::Result<OwnedFd> {
    if opened.as_raw_fd() >= FIRST {
        return Ok(opened);
    }
    let unreadable = occupy()?;
    let kept = opened.try_clone()?;
    retry(|| dup2(&unreadable, &mut opened))?;
    let _ = opened.into_raw_fd();
    Ok(kept)
}

/// A file under a number of no standard stream: one that is no database's, such as a temporary one.
///
/// # Errors
///
/// There is no descriptor left.
pub fn keep_off_standard_streams(file: fs::File) -> io::Result<fs::File> {
    kept_off(file.into()).map(fs::File::from)
}

/// Gives each free number of a standard stream to what can be neither read nor written: a program
/// that tries is told EBADF, as before.
fn occupy() -> io::Result<OwnedFd> {
    loop {
        let place = retry(|| fcntl::open(c"/", OFlag::O_PATH, Mode::empty()))?;
        if place.as_raw_fd() >= FIRST {
            return Ok(place);
        }
        let _ = place.into_raw_fd();
    }
}
