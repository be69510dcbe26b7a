//! Locks that SQLite asks for. With the one for writing a thread goes on: a failure before it is
//! history.

use crate::error::forget;
use crate::flags::{LockLevel, ShmLock};

/// The slot of the write lock of WAL mode (wal.c).
const WAL_WRITE_LOCK: usize = 0;

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
