//! What a row of a table is: how it is opened, what its commits survive, where it stands.

use std::fmt;
use std::path::Path;

use rusqlite::Connection;

use crate::durability::Durability;
use crate::failure::{Explain, Failure, Result};
use crate::sqlite::Sqlite;
use crate::stores::Store;

/// A row of a table.
pub struct Row {
    /// What the command line calls it.
    pub word: &'static str,
    /// Its name in the table.
    pub name: &'static str,
    /// A line of `--help`.
    pub about: &'static str,
    /// How it is opened.
    pub kind: Kind,
    /// What its commits survive.
    pub durability: Durability,
    /// Where it stands though nobody names it.
    pub usual: &'static [Usual],
    /// What a reader of the table must know; empty if nothing.
    pub note: &'static str,
}

/// What is opened.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// SQLite.
    Sqlite(Sqlite),
    /// SQLite whose log is brought into position before each block.
    Regime(Sqlite, Regime),
    /// Another store, which can only put.
    Store(fn(&Path) -> Result<Box<dyn Store>>),
    /// No database: the disk by itself.
    Limit,
}

/// Tables for which nobody names the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usual {
    /// Commits on one connection, stock WAL's regimes apart.
    Commits,
    /// Commits where a block can't be kept within one regime.
    Lives,
    /// Reading; the shim beside what it passes through to.
    Reads,
    /// Beside those of [`Usual::Lives`] where databases are opened and closed.
    Cycles,
}

/// Where stock WAL's log is when a block begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Regime {
    /// Empty.
    Growing,
    /// Long, and overwritten from its start.
    Recycled,
}

impl Regime {
    /// What brings it there.
    pub fn checkpoint(self) -> &'static str {
        match self {
            Self::Growing => "PRAGMA wal_checkpoint(TRUNCATE)",
            Self::Recycled => "PRAGMA wal_checkpoint(RESTART)",
        }
    }
}

impl Row {
    /// How SQLite opens it; nothing where there is no SQLite.
    pub fn sqlite(&self) -> Option<&Sqlite> {
        match &self.kind {
            Kind::Sqlite(sqlite) | Kind::Regime(sqlite, _) => Some(sqlite),
            Kind::Store(_) | Kind::Limit => None,
        }
    }

    /// The regime that its log is kept in.
    pub fn regime(&self) -> Option<Regime> {
        match self.kind {
            Kind::Regime(_, regime) => Some(regime),
            _ => None,
        }
    }

    fn is_opened(&self) -> Result<&Sqlite> {
        self.sqlite().ok_or_else(|| Failure::new(format!("{} is no SQLite", self.name)))
    }

    /// See [`Sqlite::connect`].
    pub fn connect(&self, path: &Path) -> Result<Connection> {
        self.is_opened()?.connect(path).explain("opening")
    }

    /// See [`Sqlite::start`].
    pub fn start(&self, path: &Path) -> Result<Connection> {
        self.is_opened()?.start(path).explain("opening")
    }

    /// See [`Sqlite::open`].
    pub fn open(&self, path: &Path) -> Result<Connection> {
        self.is_opened()?.open(path, self.name)
    }
}

impl PartialEq for Row {
    fn eq(&self, other: &Self) -> bool {
        self.word == other.word
    }
}

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word)
    }
}
