//! A connection of SQLite's to a database in WAL mode.
//!
//! | file | owns |
//! |---|---|
//! | `state` | what a connection has |
//! | `open`, `close` | its beginning and end |
//! | `database` | the database's file |
//! | `wal_file` | `-wal`, and what its calls tell of transactions |
//! | `own` | the frames of the transaction in hand |
//! | `said` | what commits say of themselves in the log |
//! | `index` | the wal-index and its locks |
//! | `durable` | what has to be durable, and when |
//! | `append` | frames into the log |
//! | `carry` | statements in the place of frames |
//! | `committed` | the database as of the newest commit |
//! | `stock` | the way without the log: a flush of `-wal` |
//! | `session` | what the log asks of this engine |
//! | `generation` | a new header of `-wal` |
//! | `backfill` | what a checkpoint has left in `-wal` |
//! | `checkpoint` | what must be durable before pages are copied |
//! | `drain` | checkpoints that readers and writers overlap |
//! | `rest` | the end of a session while the database is open |
//! | `watch` | who does what, for whoever looks |

mod append;
mod backfill;
mod carry;
mod checkpoint;
mod close;
pub(crate) mod committed;
mod database;
mod drain;
mod durable;
mod generation;
mod in_memory;
mod index;
pub(crate) mod open;
mod own;
pub(crate) mod rest;
mod said;
mod session;
pub(crate) mod state;
mod stock;
pub(crate) mod sums;
mod wal_file;
pub(crate) mod watch;
