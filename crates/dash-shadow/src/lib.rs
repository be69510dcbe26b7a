#![doc = include_str!("../FORMAT.md")]
#![forbid(unsafe_code)]

mod buffer;
mod close;
mod commit;
mod connection;
mod coordination;
mod dead_writer;
mod error;
mod evaluate;
pub mod format;
mod header;
pub mod inspect;
mod locks;
mod names;
mod open;
mod ranges;
mod read_only;
mod recover;
mod repair;
mod statistics;
mod super_journal;
mod tail;
mod tuning;
mod write;

pub use connection::Connection;
pub use error::{Error, Operation, Result};
pub use format::Protocol;
pub use inspect::{Report, inspect};
pub use locks::LockLevel;
pub use names::Names;
pub use open::OpenOptions;
pub use read_only::ReadOnly;
pub use statistics::Statistics;
pub use tuning::Tuning;
