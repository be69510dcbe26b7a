//! What a workload is, and what one connection does of it.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use rusqlite::Connection;

use super::skew::Skew;
use crate::failure::{Failure, Result};
use crate::row::Row;

/// Which workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Name {
    /// Mobibench: inserts of 100 bytes, each operation of a transaction into its own table.
    Insert,
    /// Mobibench: updates of 100-byte rows, each operation in its own table.
    Update,
    /// Mobibench: deletes of 100-byte rows, each operation from its own table.
    Delete,
    /// AndroBench: 1,024 inserts, updates and deletes in a table of 17 columns.
    Androbench,
    /// 60,000 rows of 220 bytes, one random update per transaction (SSL's Random-A; table ours).
    RandomA,
    /// The same, 2,000 updates per transaction (SSL's Random-B; table ours).
    RandomB,
    /// Open, update one row, close.
    Cycles,
    /// Transactions of 10,000 rows of 100 bytes.
    Bulk,
    /// Point reads by key.
    Reads,
    /// Scans of the whole table.
    Scans,
    /// Point reads and updates mixed; with several connections the first ones write, the others
    /// read.
    Mixed,
    /// Inserts whose consecutive transactions share a part of their tables (DASH's Figure 18).
    Duplication,
    /// Recorded SQL, from the folder of --replay.
    Replay,
}

/// What can be set about a workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Which.
    pub name: Name,
    /// Operations of a transaction.
    pub operations: usize,
    /// About how large the database is at the start, in bytes; the workload's own size if none.
    pub size: Option<u64>,
    /// Which rows are chosen.
    pub skew: Skew,
    /// Per cent of the transactions of `mixed` that read; of the tables of `duplication` that are
    /// shared.
    pub share: usize,
    /// The recorded SQL.
    pub replay: Option<PathBuf>,
    /// Seconds that one of several connections waits for another one.
    pub busy: u64,
}

/// A step wrote, or only read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It committed a change.
    Wrote,
    /// It changed nothing.
    Read,
    /// Another connection was in the way for too long; nothing was done, and it counts as failed.
    Failed,
    /// There is nothing left to do; nothing was done.
    End,
}

/// Who runs a session.
pub struct Worker<'a> {
    /// Who keeps the database.
    pub row: &'static Row,
    /// Where it is.
    pub path: &'a Path,
    /// The connection; none if the workload opens its own.
    pub db: Option<&'a Connection>,
    /// Which connection of those that work at the same time.
    pub index: usize,
    /// How many those are.
    pub of: usize,
}

impl<'a> Worker<'a> {
    pub(super) fn db(&self) -> Result<&'a Connection> {
        self.db.ok_or_else(|| Failure::new("this workload needs an open connection"))
    }

    /// Different in every worker, the same in every run and on every side.
    pub(super) fn seed(&self) -> u64 {
        crate::numbers::count(self.index) + 11
    }

    /// Below the first number that this worker writes. No other worker and no other process on the
    /// same database writes from there: a write of what is there already would be skipped.
    pub(super) fn first_turn(&self) -> u64 {
        u64::from(std::process::id()) << 40 | self.seed() << 32
    }
}

/// What one connection does.
pub trait Session {
    /// Before a block, off the clock: puts back what the last one used up.
    fn before(&mut self) -> Result<()> {
        Ok(())
    }

    /// One transaction.
    fn step(&mut self) -> Result<Step>;

    /// Statements that failed so far, where a workload goes on then.
    fn failures(&self) -> u64 {
        0
    }
}

/// A workload.
pub trait Workload: Send + Sync {
    /// What a reader must know.
    fn about(&self) -> String;

    /// The same in a word or two, for a progress bar.
    fn title(&self) -> String {
        self.about().chars().take_while(|c| !matches!(c, ':' | ',')).take(24).collect()
    }

    /// Whether there are commits.
    fn writes(&self) -> bool {
        true
    }

    /// Makes the database to start from.
    fn build(&self, db: &Connection) -> Result<()>;

    /// Whether a connection stays open between steps.
    fn stays_open(&self) -> bool {
        true
    }

    /// How many steps there are, if they end.
    fn steps(&self) -> Option<usize> {
        None
    }

    /// How many connections there must be, if the workload says so.
    fn connections(&self) -> Option<usize> {
        None
    }

    /// Transactions of a block, so that a block takes some tens of milliseconds.
    fn block(&self) -> usize {
        200
    }

    /// Bytes of the database, about.
    fn size(&self) -> u64;

    /// What a connection does.
    fn session<'a>(&'a self, worker: &Worker<'a>) -> Result<Box<dyn Session + 'a>>;
}
