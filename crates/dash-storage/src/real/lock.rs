//! Open-file-description locks, as `fcntl` wants them said.
//!
//! An empty range is nothing to lock (`fcntl` would take its length zero for "to the end of all
//! files"); an end beyond what `off_t` can say is that end.

use std::fs;
use std::io;
use std::ops::Range;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};

use super::retry::retry;
use crate::LockKind;

/// The owner that `F_OFD_GETLK` reports for open-file-description locks.
const NO_OWNER: i32 = -1;
/// And for those of processes that have no number here, as their pid namespace is another one.
const ELSEWHERE: i32 = 0;
/// Everything that can be locked.
pub(super) const ALL: Range<u64> = 0..u64::MAX;

/// Takes or converts a lock; `false` if somebody else's conflicts.
pub(super) fn try_lock(file: &fs::File, range: Range<u64>, kind: LockKind) -> io::Result<bool> {
    match set(file, range, type_of(kind)) {
        Ok(()) => Ok(true),
        Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Releases what the description holds in `range`.
pub(super) fn unlock(file: &fs::File, range: Range<u64>) -> io::Result<()> {
    Ok(set(file, range, libc::F_UNLCK)?)
}

/// The process id that a conflicting lock is reported with, as
/// [`lock_conflict`](crate::File::lock_conflict) has it.
pub(super) fn conflict(
    file: &fs::File,
    range: Range<u64>,
    kind: LockKind,
) -> io::Result<Option<i32>> {
    let Some(mut request) = request(range, type_of(kind))? else {
        return Ok(None);
    };
    retry(|| fcntl(file, FcntlArg::F_OFD_GETLK(&mut request)))?;
    let is_free = libc::c_int::from(request.l_type) == libc::F_UNLCK;
    Ok((!is_free).then_some(match request.l_pid {
        NO_OWNER => 0,
        ELSEWHERE => -1,
        process => process,
    }))
}

fn set(file: &fs::File, range: Range<u64>, lock_type: libc::c_int) -> nix::Result<()> {
    let Some(request) = request(range, lock_type)? else {
        return Ok(());
    };
    retry(|| fcntl(file, FcntlArg::F_OFD_SETLK(&request))).map(drop)
}

fn type_of(kind: LockKind) -> libc::c_int {
    match kind {
        LockKind::Shared => libc::F_RDLCK,
        LockKind::Exclusive => libc::F_WRLCK,
    }
}

fn request(range: Range<u64>, lock_type: libc::c_int) -> nix::Result<Option<libc::flock>> {
    if range.is_empty() {
        return Ok(None);
    }
    let start = libc::off_t::try_from(range.start).map_err(|_| Errno::EINVAL)?;
    Ok(Some(libc::flock {
        l_type: libc::c_short::try_from(lock_type).map_err(|_| Errno::EINVAL)?,
        l_whence: libc::c_short::try_from(libc::SEEK_SET).map_err(|_| Errno::EINVAL)?,
        l_start: start,
        l_len: libc::off_t::try_from(range.end).map_or(0, |end| end - start),
        l_pid: 0,
    }))
}
