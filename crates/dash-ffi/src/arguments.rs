//! What SQLite passes to a file's methods: numbers, places for answers, and locks. With the lock
//! for writing a thread goes on: a failure before it is history.

use crate::code::Code;
use crate::error::{Error, Result, forget};
use crate::flags::{LockLevel, ShmLock};
use core::ffi::c_int;

/// The slot of the write lock of WAL mode (wal.c).
const WAL_WRITE_LOCK: usize = 0;

/// An offset or a size from C, which is never negative.
pub(crate) fn unsigned(value: i64) -> Result<u64> {
    u64::try_from(value)
        .map_err(|_| Error::new(Code::MISUSE, format!("a negative offset: {value}")))
}

/// A count from C, which is never negative.
pub(crate) fn count(value: c_int) -> Result<usize> {
    usize::try_from(value)
        .map_err(|_| Error::new(Code::MISUSE, format!("a negative count: {value}")))
}

/// Stores an answer where SQLite wants it.
///
/// # Safety
///
/// `place` is null or may be written.
pub(crate) unsafe fn store<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: as the caller states.
        unsafe { place.write(value) }
    }
}

/// The level that SQLite asks for.
pub(crate) fn asked(level: LockLevel) -> LockLevel {
    if level == LockLevel::Reserved {
        forget();
    }
    level
}

/// The lock that SQLite asks for on a slot of the wal-index.
pub(crate) fn asked_of_index(slot: usize, lock: ShmLock) -> ShmLock {
    if slot == WAL_WRITE_LOCK && lock == ShmLock::LockExclusive {
        forget();
    }
    lock
}
