//! Ring `sim`: programs of transactions on simulated storage, the power cut at every step, every
//! recovery checked against a model and cut again.

#[macro_use]
mod registering;

mod attached;
pub mod commit;
pub mod content;
mod explore;
mod many_processes;
mod model;
mod neighbours;
mod next;
pub mod plan;
mod program;
mod ring;
pub mod rollback;
mod sessions;
mod shrink;
mod sql;
pub(crate) mod stock;
pub mod subject;
mod together;
mod two_processes;
mod wal;
mod within;

pub use explore::{Seen, Violation};
pub use program::run as run_case;
pub use ring::{run, run_on, targets};
pub use sql::vfs::open as open_sqlite;
pub use stock::Stock;
pub use stock::file as stock_file;
pub use stock::index::Saved;
