//! Which byte of the coordination file is locked for what. All locks are open-file-description
//! locks that never wait.
//!
//! | byte | who holds it |
//! |---|---|
//! | OPEN, WRITER, ALIVE | see [`dash_engine::coordination`]; WRITER is slot 0 of the wal-index |
//! | CKPT, RECOVER | exclusive: whoever holds slots 1 and 2 of the wal-index |
//! | LOG | exclusive: whoever writes the log |
//! | START | exclusive: whoever has SHARED or more of a database that is still empty |
//! | REST | exclusive: whoever brings the database to rest |
//! | ATTACHED | shared: whoever has the wal-index attached in files; exclusive: the first, while it says which |
//! | ENTRY + i | exclusive: the connection that owns entry i |
//!
//! Where `-wal` is in memory ([`crate::memory`]) nobody takes WRITER, CKPT, RECOVER and LOG here:
//! all who could are threads of one process.
//!
//! Stock SQLite is met on its own bytes of `-shm`, see [`crate::index`].

pub use dash_engine::coordination::{ALIVE, OPEN, WRITER};
use std::ops::Range;

/// Slot 1 of the wal-index.
pub const CKPT: Range<u64> = 5..6;

/// Slot 2 of the wal-index.
pub const RECOVER: Range<u64> = 6..7;

/// Held by whoever writes the log.
pub const LOG: Range<u64> = 7..8;

/// Held beside SHARED of a database that is still empty.
pub const START: Range<u64> = 8..9;

/// Held by whoever brings the database to rest.
pub const REST: Range<u64> = 9..10;

/// Held by whoever has the wal-index attached (WAL-55).
pub const ATTACHED: Range<u64> = 10..11;
