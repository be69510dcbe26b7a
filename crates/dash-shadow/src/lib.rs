#![doc = include_str!("../FORMAT.md")]
#![forbid(unsafe_code)]

mod alive;
mod begin;
mod buffer;
mod carry;
mod close;
mod commit;
mod connection;
mod coordination;
mod dead_writer;
mod door;
mod durable;
mod error;
mod evaluate;
mod exclude;
mod failed;
mod fence;
mod first;
pub mod format;
mod header;
pub mod inspect;
mod locks;
#[cfg(feature = "mutations")]
pub mod mutation;
#[cfg(not(feature = "mutations"))]
mod mutation;
mod names;
mod open;
mod publish;
mod ranges;
mod read;
mod read_only;
mod readers;
mod rebuild;
mod recover;
mod renames;
mod repair;
mod return_name;
mod room;
mod secure;
mod snapshot;
mod spare;
mod statistics;
mod super_journal;
mod table;
mod tail;
mod tuning;
mod turns;
mod unpublished;
mod versions;
mod vouch;
mod which_block;
mod write;

pub use alive::while_closed;
pub use connection::Connection;
pub use door::keep_access_at_rest;
pub use error::{Error, Operation, Result};
pub use format::Protocol;
pub use inspect::{Report, inspect};
pub use locks::LockLevel;
pub use names::Names;
pub use open::OpenOptions;
pub use read_only::ReadOnly;
pub use statistics::Statistics;
pub use tuning::Tuning;
pub use turns::Turn;
