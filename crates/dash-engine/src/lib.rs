//! What the engines are built of, below each of them: no format on disk, no protocol, and nothing
//! of one engine.
//!
//! Errors and what memory may run out of; files beside a database, and who may use them; counters
//! of all connections; ranges of bytes; sets of pages; files gone through in pieces, around holes;
//! SQLite's own header and lock bytes, and the lock levels of a database's file; the name fence;
//! the write lock, handed from connection to connection.

#![forbid(unsafe_code)]

pub mod beside;
pub mod buffer_pool;
pub mod coordination;
pub mod copied;
pub mod copy;
pub mod database;
pub mod error;
pub mod fence;
pub mod handover;
pub mod header;
pub mod holes;
pub mod io;
pub mod locks;
pub mod memory;
pub mod mutation;
pub mod names;
pub mod note;
pub mod open;
pub mod page_set;
pub mod ranges;
pub mod totals;
