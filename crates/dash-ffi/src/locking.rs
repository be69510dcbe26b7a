//! Locks that SQLite asks for. With the one for writing a thread goes on: a failure before it is
//! history.

use crate::error::{Result, forget};
use crate::file::File;
use crate::flags::{LockLevel, ShmLock};

/// The slot of the write lock of WAL mode (wal.c).
const WAL_WRITE_LOCK: usize = 0;

/// `xLock`.
pub(crate) fn lock(file: &mut dyn File, level: LockLevel) -> Result<()> {
    if level == LockLevel::Reserved {
        forget();
    }
    file.lock(level)
}

/// `xShmLock`.
pub(crate) fn shm_lock(
    file: &mut dyn File,
    slot: usize,
    count: usize,
    lock: ShmLock,
) -> Result<()> {
    if slot == WAL_WRITE_LOCK && lock == ShmLock::LockExclusive {
        forget();
    }
    file.shm_lock(slot, count, lock)
}
