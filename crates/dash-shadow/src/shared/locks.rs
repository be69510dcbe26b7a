//! Which byte is locked for what. All locks are open-file-description locks that never wait.
//!
//! On each of the two **inodes**, at SQLite's own places (os.h), so that stock processes and dash
//! see each other:
//!
//! | byte | who holds it |
//! |---|---|
//! | PENDING | exclusive: a writer that waits for stock readers of the shadow to leave |
//! | RESERVED | shared: every dash connection for its life, so that a stock writer waits and a stock reader knows that the name fence is no hot journal |
//! | SHARED (510 bytes) | shared: stock readers, read-only dash connections; exclusive: the dash writer, on the shadow |
//! | LIFE | shared: every dash connection for its life; exclusive: the first and the last one |
//!
//! On the **coordination file**:
//!
//! | byte | who holds it |
//! |---|---|
//! | OPEN | exclusive: a connection that opens, closes or recovers |
//! | WRITER | exclusive: the connection in a write transaction; shared: those that only read under locking_mode=EXCLUSIVE |
//! | ALIVE | shared: every dash connection for its life, whatever becomes of its files; exclusive: the first and the last one |
//! | KEEPS_WRITER | exclusive: the connection that holds WRITER for housekeeping, for moments only |
//! | KEEPS_SHADOW | exclusive: the connection that holds the shadow's SHARED range for housekeeping |
//! | READER + i | exclusive: the connection that owns reader entry i |

pub use dash_engine::coordination::{ALIVE, OPEN, WRITER};
pub use dash_engine::locks::{ALL, LockLevel, PENDING, RESERVED, SHARED};
use std::ops::Range;

/// Held by whoever has the database open through dash.
pub const LIFE: Range<u64> = 0x4000_0201..0x4000_0202;

/// Held while WRITER is held for housekeeping: a connection that meets it waits.
pub const KEEPS_WRITER: Range<u64> = 3..4;

/// Held while the shadow is: a connection that wants it says so, and waits.
pub const KEEPS_SHADOW: Range<u64> = 4..5;
