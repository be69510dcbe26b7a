//! A connection of SQLite's to a database in WAL mode.
//!
//! | part | file | what else it does |
//! |---|---|---|
//! | the database and what lies beside it | `files` | keeps stock SQLite out while there is a log |
//! | `-wal` | `wal` | `backfill`: what a checkpoint has left in it; `in_memory`; `sums`: frames without checksums |
//! | the wal-index | `index` | |
//! | the write transaction | `transaction` | |
//! | what was read, and what SQLite is shown of the index | `reads`, `view` | |
//! | the checkpoint | `checkpoint` | `drain`: readers and writers that overlap it |
//!
//! | file | what the parts do together |
//! |---|---|
//! | `state` | the connection; what was chosen and counted |
//! | `open`, `close` | its beginning and end |
//! | `database`, `wal_file`, `shm`, `attach` | SQLite's calls on the three files |
//! | `upgrade`, `viewed` | a transaction that has read goes on to write on an old snapshot |
//! | `commit` | a commit, and what the log asks for it |
//! | `barrier` | what must be durable before pages are copied |
//! | `append` | frames into the log |
//! | `statements` | what is recorded of statements, beside frames and in their place |
//! | `stock` | the way without the log: a flush of `-wal` |
//! | `strangers` | what stock SQLite has written meanwhile |
//! | `generation` | a new header of `-wal` |
//! | `committed` | the database as of the newest commit |
//! | `rest` | the end of a session while the database is open |
//! | `same_files` | whether all have the same `-shm` and `-wal` |
//! | `watch` | who does what, for whoever looks |

mod append;
mod attach;
mod backfill;
mod barrier;
mod checkpoint;
mod close;
mod commit;
pub(crate) mod committed;
mod database;
mod drain;
pub(crate) mod files;
mod generation;
mod in_memory;
mod index;
pub(crate) mod open;
pub(crate) mod rest;
pub(crate) mod same_files;
mod shm;
pub(crate) mod state;
mod statements;
mod stock;
mod strangers;
mod sums;
mod transaction;
pub(crate) mod upgrade;
pub(crate) mod wal;
mod wal_file;
pub(crate) mod watch;
