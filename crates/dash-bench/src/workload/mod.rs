//! What is run: one file per workload.
//!
//! A workload builds a database once; every row begins with a copy of it. A [`Session`] is what one
//! connection then does, one transaction a step.

mod androbench;
mod bulk;
mod cycles;
mod data;
mod duplication;
mod mixed;
mod mobibench;
mod partsupp;
mod reading;
mod replay;
mod skew;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ValueEnum;
use rusqlite::Connection;

use crate::failure::{Failure, Result};
use crate::row::Row;
pub use skew::Skew;

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
    fn db(&self) -> Result<&'a Connection> {
        self.db.ok_or_else(|| Failure::new("this workload needs an open connection"))
    }

    /// Different in every worker, the same in every run and on every side.
    fn seed(&self) -> u64 {
        crate::numbers::count(self.index) + 11
    }

    /// Below the first number that this worker writes. No other worker and no other process on the
    /// same database writes from there: a write of what is there already would be skipped.
    fn first_turn(&self) -> u64 {
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

impl Settings {
    /// The workload.
    pub fn workload(&self) -> Result<Arc<dyn Workload>> {
        Ok(match self.name {
            Name::Insert | Name::Update | Name::Delete => Arc::new(mobibench::Mobibench::new(self)),
            Name::Androbench => Arc::new(androbench::Androbench),
            Name::RandomA => Arc::new(partsupp::Partsupp::new(1)),
            Name::RandomB => Arc::new(partsupp::Partsupp::new(2000)),
            Name::Cycles => Arc::new(cycles::Cycles::new(self)),
            Name::Bulk => Arc::new(bulk::Bulk),
            Name::Reads => Arc::new(reading::Points::new(self)),
            Name::Scans => Arc::new(reading::Scans::new(self)),
            Name::Mixed => Arc::new(mixed::Mixed::new(self)),
            Name::Duplication => Arc::new(duplication::Duplication::new(self)),
            Name::Replay => {
                let folder = self.replay.as_ref().ok_or_else(|| {
                    Failure::new("the workload replay needs a folder: --replay FOLDER")
                })?;
                Arc::new(replay::Replay::read(folder)?)
            }
        })
    }

    /// As arguments of the command that a worker is started by.
    pub fn arguments(&self) -> Vec<std::ffi::OsString> {
        let name = self.name.to_possible_value().map(|value| value.get_name().to_owned());
        let skew = self.skew.to_possible_value().map(|value| value.get_name().to_owned());
        let mut words: Vec<std::ffi::OsString> = Vec::new();
        let mut push = |key: &str, value: std::ffi::OsString| words.extend([key.into(), value]);
        push("--workload", name.unwrap_or_default().into());
        push("--operations", self.operations.to_string().into());
        push("--skew", skew.unwrap_or_default().into());
        push("--share", self.share.to_string().into());
        push("--busy", self.busy.to_string().into());
        if let Some(size) = self.size {
            push("--size", size.to_string().into());
        }
        if let Some(folder) = &self.replay {
            push("--replay", folder.into());
        }
        words
    }
}

#[cfg(test)]
mod tests;
