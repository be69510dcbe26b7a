//! The rows that the lab compares, and what it says of all of them.

use dash_bench::row::Row;
use dash_bench::rows::named;

/// What a section of [`crate::targets`] says about every row that commits.
pub const DURABLE: &str = "every commit flushed before it returns (synchronous=FULL on every side)";
/// What it says of rows that only read.
pub const READS_ONLY: &str = "nothing is written";

/// dash, one flush per commit.
pub const SINGLE: &Row = named("dash-single");
/// dash, the paper's protocol for an exclusive connection.
pub const EXCLUSIVE: &Row = named("dash-exclusive");
/// dash, the paper's protocol.
pub const PAPER: &Row = named("dash-paper");
/// dash in WAL mode.
pub const DASH_WAL: &Row = named("dash-wal");
/// The same, its checkpoints relying on `-wal` alone.
pub const DASH_WAL_BARRIER: &Row = named("dash-wal-barrier");
/// dash in mode statement.
pub const STATEMENT: &Row = named("dash-statement");
/// Stock WAL, `synchronous=NORMAL`.
pub const NORMAL: &Row = named("wal-normal");
/// A write with a flush, and no database.
pub const LIMIT: &Row = named("limit");
/// Stock WAL as it comes.
pub const WAL: &Row = named("wal");
/// Stock WAL, every commit makes the log longer.
pub const WAL_GROWING: &Row = named("wal-growing");
/// Stock WAL, the log overwritten from its start.
pub const WAL_RECYCLED: &Row = named("wal-recycled");
/// Stock `journal_mode=PERSIST`.
pub const PERSIST: &Row = named("persist");
/// Stock `journal_mode=TRUNCATE`.
pub const TRUNCATE: &Row = named("truncate");
/// Stock `journal_mode=DELETE`.
pub const DELETE: &Row = named("delete");
/// What SQLite costs that makes nothing durable.
pub const FLOOR: &Row = named("floor");
