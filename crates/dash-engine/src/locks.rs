//! SQLite's lock levels and lock bytes (os.h), and how an engine takes them: as
//! open-file-description locks that never wait.

use crate::error::{Context, Error, Operation, Result};
use dash_storage::{File, LockKind};
use std::ops::Range;

/// SQLite's PENDING_BYTE.
pub const PENDING: Range<u64> = 0x4000_0000..0x4000_0001;

/// SQLite's RESERVED_BYTE.
pub const RESERVED: Range<u64> = 0x4000_0001..0x4000_0002;

/// SQLite's SHARED range.
pub const SHARED: Range<u64> = 0x4000_0002..0x4000_0200;

/// Everything that can be locked.
pub const ALL: Range<u64> = 0..u64::MAX;

/// Who holds a lock, in words, by what [`File::lock_conflict`] answers: not every holder has a
/// number here.
#[must_use]
pub fn holder(process: i32) -> String {
    match process {
        1.. => format!("process {process}"),
        _ => "another process".to_owned(),
    }
}

/// The five lock levels of SQLite's `xLock`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum LockLevel {
    /// No lock.
    #[default]
    None,
    /// Reading a snapshot.
    Shared,
    /// The one write transaction.
    Reserved,
    /// Waiting for readers of the shadow; `xLock` is never asked for it.
    Pending,
    /// May write the shadow.
    Exclusive,
}

/// Takes RESERVED, shared, on a file. `Busy` if a stock writer is in the way.
pub fn keep_stock_writers_out<F: File>(file: &F, name: &str) -> Result<()> {
    share(file, RESERVED, name)
}

/// Takes a lock, shared, or what is held of it exclusively down to that.
pub fn share<F: File>(file: &F, range: Range<u64>, name: &str) -> Result<()> {
    match file.try_lock(range, LockKind::Shared).during(Operation::Lock, name)? {
        true => Ok(()),
        false => Err(Error::Busy),
    }
}
