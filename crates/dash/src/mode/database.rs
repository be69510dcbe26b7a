//! A database that is open in some mode, and what it tells of itself.

use std::path::Path;

use dash_ffi::{ConnectionRef, File, HostVfs, LockLevel, Result, Row, Value};
use dash_statement::Schema;
use dash_storage::FileId;

use super::{Mode, Parameters, Switching};
use crate::errors::inherited;
use crate::holders::{InTheWay, Wanted};

/// A number of `dash_stats`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistic {
    /// What it counts.
    pub name: &'static str,
    /// This connection's.
    pub value: u64,
    /// That of all connections; `None`: it is not kept, or the value is of all of them already.
    pub total: Option<u64>,
}

impl Statistic {
    /// One that no total is kept of.
    pub const fn alone((name, value): (&'static str, u64)) -> Self {
        Self { name, value, total: None }
    }

    /// Those of an engine, of whose first ones totals are kept.
    pub fn with_totals(rows: &[(&'static str, u64)], totals: &[u64]) -> Vec<Self> {
        let totals = totals.iter().map(|total| Some(*total)).chain(std::iter::repeat(None));
        let both = rows.iter().zip(totals);
        both.map(|(&(name, value), total)| Self { name, value, total }).collect()
    }
}

/// A table about all connections of a database.
#[derive(Debug, Clone, Copy)]
pub enum Watched<'a> {
    /// `dash_commits`.
    Commits,
    /// `dash_locks`.
    Locks,
    /// `dash_readers`.
    Readers,
    /// `dash_statements`, of this process only; with the schema, by which it is judged what
    /// provably replays.
    Statements(&'a Schema),
}

/// A database that is open in some mode.
pub trait Database: File {
    /// What `dash_engine()` answers.
    fn engine(&self) -> &'static str;

    /// Whether it works in a forked child as in its parent.
    fn survives_fork(&self) -> bool {
        false
    }

    /// The lock that SQLite keeps in no transaction as well.
    fn resting_level(&self) -> LockLevel {
        LockLevel::None
    }

    /// Puts into `parameters` what `PRAGMA`s have chosen, for whoever opens it again.
    fn keep(&mut self, _parameters: &mut Parameters) {}

    /// In a forked child, in no transaction: opens it again, for the same connection of SQLite's,
    /// which has it locked to `level` and goes on with what it knows. What came over the fork is
    /// forgotten after that; it is never closed, and gives no lock up, for these are the parent's.
    ///
    /// # Errors
    ///
    /// `SQLITE_CANTOPEN` where it can't go on with what lies there; or why it can't be opened. No
    /// lock is left.
    fn renew(&mut self, switching: &Switching<'_>, _level: LockLevel) -> Result<Box<dyn Database>> {
        Err(inherited(switching.path))
    }

    /// A PRAGMA, in lower case: the answer to one of the mode's own. `None`: somebody else's, which
    /// it may take notice of.
    fn pragma(&mut self, _name: &str, _value: Option<&str>) -> Option<Result<String>> {
        None
    }

    /// The rows of `dash_stats`; `None`: dash doesn't write it.
    fn statistics(&self) -> Option<Vec<Statistic>> {
        None
    }

    /// Rows of `dash_stats` that are words, for a connection: NULL if it isn't known.
    fn words(&self, _connection: &ConnectionRef<'_>) -> Vec<(&'static str, Option<String>)> {
        Vec::new()
    }

    /// Goes on in a form of its mode, or in the mode itself.
    fn takes_form(&mut self, _mode: &'static dyn Mode) {}

    /// How a commit becomes durable now, if `PRAGMA synchronous` answers this: the value of the row
    /// `durability` of `dash_stats`, NULL if it isn't known; `None`: there is no such row.
    fn durability(&self, _synchronous: Option<&str>) -> Option<Value> {
        None
    }

    /// The rows of `dash_latency`; `None`: dash doesn't write it.
    fn latencies(&self) -> Option<Vec<Row>> {
        None
    }

    /// The rows of a table about all connections; `None`: the mode keeps none.
    fn watched(&self, _what: Watched<'_>) -> Option<Result<Vec<Row>>> {
        None
    }

    /// Whether SQLite has taken it out of the mode by itself, without a word: what lies there is a
    /// plain file, and this connection holds no lock on it.
    fn is_left(&self) -> bool {
        false
    }

    /// Whether another connection has put it into WAL mode, for which SQLite wants shared memory of
    /// a file that has none. It is asked with SHARED, before SQLite reads.
    ///
    /// # Errors
    ///
    /// Those of reading.
    fn is_in_wal_mode(&mut self) -> Result<bool> {
        Ok(false)
    }

    /// Whether it reads that file, whatever the name is by now; `None`: SQLite's own VFS has it.
    fn is_of(&self, _file: FileId) -> Option<bool> {
        None
    }

    /// What it knows, without a system call, of who was in the way of what it has just refused.
    fn in_the_way(&mut self, _wanted: Wanted) -> InTheWay {
        InTheWay::default()
    }

    /// Whether SQLite has given the write lock of WAL mode up as it has got it, since somebody had
    /// committed since it began to read.
    fn was_outdated(&mut self) -> bool {
        false
    }

    /// Whether a checkpoint has the write lock of WAL mode, and so may wait for readers.
    fn is_checkpoint_writing(&self) -> bool {
        false
    }

    /// Whether the mode can be changed now.
    ///
    /// # Errors
    ///
    /// Why not.
    fn may_leave(&mut self) -> Result<()>;

    /// Closes it: what stays is a plain SQLite file at rest. What `PRAGMA`s have chosen goes into
    /// `parameters`, for whoever opens it again.
    ///
    /// # Errors
    ///
    /// `SQLITE_BUSY` if somebody else has it open; it is closed all the same.
    fn leave(
        self: Box<Self>,
        parameters: &mut Parameters,
        path: &Path,
        host: &HostVfs,
    ) -> Result<()>;

    /// Closes it.
    ///
    /// # Errors
    ///
    /// Those of the engine; it is closed all the same.
    fn end(self: Box<Self>, host: &HostVfs) -> Result<()>;
}
