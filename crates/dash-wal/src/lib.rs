#![doc = include_str!("../FORMAT.md")]
#![forbid(unsafe_code)]

mod alive;
mod annotation;
mod bounds;
mod connection;
mod context;
mod execute;
mod frames;
pub mod history;
mod index;
pub mod inspect;
mod logged;
mod made;
mod memory;
mod mounted;
#[cfg(feature = "mutations")]
pub mod mutation;
#[cfg(not(feature = "mutations"))]
mod mutation;
mod names;
mod notes;
mod options;
mod process;
mod recover;
mod recovery;
mod remove;
mod rights;
mod shared;
mod stamp;
mod statistics;
#[cfg(test)]
mod testing;
mod watch;

pub use alive::{is_in_memory, is_open, refuse_in_memory, while_closed};
pub use annotation::{Known, Said};
pub use connection::committed::Newest as NewestCommit;
pub use connection::open::refuse_orphaned;
pub use connection::rest::{Newest, Rest, RestState};
pub use connection::state::{Connection, Settings};
pub use connection::upgrade::Reading;
pub use connection::upgrade::view::Conflict;
pub use connection::watch::Doing;
pub use dash_engine::error::{Error, Operation, Result};
pub use dash_engine::handover::Turn;
pub use dash_engine::locks::LockLevel;
pub use dash_log::session::{LogMedium, Strayed, Whose};
pub use execute::{Execute, Pages, Runner};
pub use inspect::{Report, inspect};
pub use mounted::refuse_mounted;
pub use names::{Names, refuse_log_place};
pub use options::{Barrier, Durability, OpenOptions, Stock, Tuning};
pub use process::Process;
pub use recover::{Choice, recover};
pub use remove::remove_log;
pub use shared::commits::{RecentCommit, Record};
pub use statistics::Statistics;
pub use watch::{LockEntry, LockName, Reader, Watched, watch};
