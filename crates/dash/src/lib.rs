//! dash: commits of stock SQLite that are durable with one flush and no journal file.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("app.db").display().to_string();
//! dash::register!(rusqlite)?; // once, before anything is opened
//! let db = rusqlite::Connection::open(format!("file:{path}?vfs=dash"))?;
//! db.busy_timeout(std::time::Duration::from_secs(30))?;
//! db.pragma_update(None, "journal_mode", "WAL")?;
//! db.pragma_update(None, "synchronous", "FULL")?; // NORMAL can lose commits with the power
//! db.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)")?; // durable when it returns
//! let engine: String = db.query_row("SELECT dash_engine()", [], |row| row.get(0))?;
//! assert_eq!(engine, "wal");
//! # Ok(())
//! # }
//! ```
//!
//! sqlx takes two lines more than `vfs("dash")`, as it shows no function of its SQLite: a
//! dependency on the `libsqlite3-sys` that it has itself, and
//!
//! ```text
//! unsafe { dash::register_with(libsqlite3_sys::sqlite3_auto_extension) }?;
//! SqliteConnectOptions::new().in_memory(true).connect().await?.close().await?;
//! ```
//!
//! This crate, `sqlite-dash` in the registry, is also the loadable extension `libdash.so` (which
//! the package `libdash` makes of it). It registers the VFS `dash`, which hands main databases to
//! an engine (the crates `dash-shadow` and `dash-wal`) and everything else to the VFS below.
//!
//! # Opening
//!
//! A VFS can't be loaded on the connection that it serves: it is loaded on a scratch connection.
//!
//! | URI parameter | values |
//! |---|---|
//! | `journal_mode` | `shadow` (default); `wal`; `delete`, `truncate`, `persist`, `memory` or `off`: a plain file with SQLite's own journal (which of the five, the PRAGMA of the same name says; it starts as `delete`) |
//! | `dash_commit` | `single` (default), `paper`, `exclusive`: how many flushes a commit makes (1, 3, 2) |
//! | `dash_default` | `shadow`: the mode also of a file in WAL mode, and whatever `PRAGMA journal_mode=wal` asks for |
//! | `dash_durability` | in mode wal: `host` (default), `full`, `device`, `none`: what a commit survives |
//! | `dash_barrier` | in mode wal: `log` (default), `wal`: what a checkpoint relies on |
//! | `dash_read` | in mode wal: `latest` (default), `durable`: whether readers wait until what they see is durable |
//! | `dash_rest` | milliseconds, 10 to 3600000 (default 200; in mode shadow 10000), or `off`: how long after the last commit the database comes to rest though it is open, so that a kill leaves a plain SQLite database |
//! | `dash_statements` | in mode wal: `off` (default), `on`: whether this connection's statements are recorded, for the table `dash_statements` and in the log |
//! | `dash_statement_text` | in mode wal: `slack` (default), `full`, `off`: how much of them the log records, and whether its records may be longer for it |
//! | `dash_backup` | `off` (default), `on`: whether `dash_backup()` may replace databases, make files in other folders than the database's, and work on a connection that may only read |
//!
//! A misspelt one fails the open; `dash_last_error()`, on any connection, tells why. SQLite's own
//! parameters keep their meaning, except `nolock=1`, which is refused for writing and means
//! `immutable=1` for reading. A database attached without a `vfs` of its own inherits dash from
//! `main`. The copy that `VACUUM INTO` makes is a plain file, and durable with its name.
//!
//! # Modes
//!
//! `vfs=dash` means mode `wal` for a file in WAL mode and mode `shadow` for any other, unless the
//! URI says otherwise. In mode `shadow` an existing plain database is
//! taken over by its first write. From then on `app.db-shadow` lies beside it, and the pair stays
//! in mode shadow through whatever opens it with dash. Between sessions `app.db` is a plain SQLite
//! file that any program may read and write.
//!
//! `PRAGMA journal_mode=delete` (or another of SQLite's own) leaves dash: the shadow is removed,
//! and this connection goes on as stock would, with a journal file. As in stock SQLite, rollback
//! modes are not remembered: a later open with plain `vfs=dash` takes the file into mode shadow
//! again. Leaving works between two transactions and for the only connection. The connections of a
//! process agree on the mode: one that is opened while others are there joins theirs, and an
//! explicit `journal_mode` against theirs fails.
//!
//! `PRAGMA journal_mode=wal` enters SQLite's own WAL mode, which the file keeps, as in stock
//! SQLite. SQLite runs as ever, with `-wal` and `-shm` in their stock formats; commits become
//! durable in a log of dash's. Whoever wants mode `shadow` from programs that ask for WAL as a
//! habit says so by `dash_default=shadow`. A hot journal that stock SQLite left is rolled back
//! first, by stock SQLite.
//!
//! # What `synchronous` means
//!
//! In mode wal it means what it does in stock SQLite, unless `dash_durability` says otherwise. In
//! mode shadow:
//!
//! | `PRAGMA synchronous` | flushes of a commit | a commit that returned survives |
//! |---|---|---|
//! | `OFF` | none | the end of the process, however it comes; not a power loss |
//! | `NORMAL`, `FULL`, `EXTRA` | as `dash_commit` says | a power loss, too |
//!
//! # PRAGMAs, functions, tables
//!
//! | | |
//! |---|---|
//! | `PRAGMA journal_mode`, `PRAGMA dash_commit`, `PRAGMA dash_durability` and others | the module `pragma` has the table |
//! | `dash_version()` | such as `0.1.0` |
//! | `dash_engine([schema])` | `shadow`; `wal`; `plain`: through dash, in one of SQLite's own modes; `none`: not on dash |
//! | `dash_last_error()` | the message of the last error, also of a failed open |
//! | `dash_backup(path [, schema [, 'replace']])` | copies a database into a plain file, and answers its pages |
//! | `dash_stats(name, value, meaning, total)`, `dash_stats('aux')` | counters of this connection, and of all |
//! | `dash_latency(op, count, p50, p90, p99, p999, max)` | microseconds, on this connection |
//! | `dash_commits`, `dash_locks`, `dash_readers` | in mode wal: the last 1,000 commits, who has a lock or waits for it, who reads; of all processes |
//! | `dash_statements` | in mode wal: the last 1,000 statements that wrote, with their values, of this process's connections that record them |
//!
//! # Where mode shadow differs from stock
//!
//! - A reader doesn't keep a writer from committing, and a writer no readers, as in WAL mode:
//!   `BEGIN EXCLUSIVE` keeps out writers only.
//! - A read transaction whose snapshot is no longer the newest can't write: `SQLITE_BUSY_SNAPSHOT`,
//!   begin it again.
//! - A transaction over several attached databases is atomic if all of them are in mode shadow and
//!   `main` is a file; one that would also change another database's file with a journal is
//!   refused.
//! - Under `locking_mode=EXCLUSIVE` a reader with mapped pages can make the next commit wait; after
//!   `busy_timeout` that is an I/O error, and the transaction is rolled back when the reader has
//!   left.

mod backup;
mod by_stock;
mod carried;
mod clearing;
mod controls;
mod delegate;
mod entry;
mod errors;
mod errors_to;
mod file_system;
mod functions;
mod gone;
mod holders;
mod ignored;
mod latency;
mod leftovers;
mod main_file;
mod mapping;
mod mode;
mod modes;
mod no_database;
mod open;
mod own_file;
mod plain;
mod pragma;
mod reference;
mod refused;
mod renewal;
mod rerun;
mod rest;
mod rollback;
mod shadow;
mod statements;
mod summed;
mod switch;
mod tables;
mod together;
#[cfg(test)]
mod toy;
mod undecided;
mod vfs;
mod wake;
mod wal;

pub use entry::{
    automatic, register_with, sqlite3_dash_init, sqlite3_dashdefault_init, sqlite3_extension_init,
};
