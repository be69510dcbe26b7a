#![doc = include_str!("../FORMAT.md")]
#![forbid(unsafe_code)]

mod connection;
mod file;
mod forget;
pub mod format;
pub mod inspect;
#[cfg(feature = "mutations")]
pub mod mutation;
#[cfg(not(feature = "mutations"))]
mod mutation;
mod names;
mod options;
mod read_only;
mod recovery;
mod refusal;
mod shared;
mod statistics;
mod tuning;
mod watch;
mod while_closed;

pub use connection::rest::Identity;
pub use connection::settle::Moment;
pub use connection::state::Connection;
pub use dash_engine::coordination::OPEN_PATIENCE;
pub use dash_engine::error::{Error, Operation, Result};
pub use dash_engine::handover::Turn;
pub use dash_engine::memory::headroom;
pub use forget::forget;
pub use format::Protocol;
pub use inspect::{Report, inspect};
pub use names::Names;
pub use names::orphan::remove_orphan;
pub use options::OpenOptions;
pub use read_only::ReadOnly;
pub use shared::locks::LockLevel;
pub use shared::readers::Reader;
pub use statistics::Statistics;
pub use tuning::Tuning;
pub use watch::{Connected, Watched, watch};
pub use while_closed::{
    is_at_rest, is_open, is_protected, keeps_access, remove_coordination, while_closed,
};
