//! How each side opens a database, always as durably as SQLite can be asked to: every commit has
//! been flushed when it returns (`synchronous=FULL`).

use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;
use rusqlite::{Connection, OpenFlags};

use crate::failure::{Explain, Failure, Result};

/// What the table says about every row that commits.
pub const DURABLE: &str = "every commit flushed before it returns (synchronous=FULL on every side)";
/// What it says of rows that only read.
pub const READS_ONLY: &str = "nothing is written";

/// Who keeps the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// dash, `dash_commit=single`.
    Single,
    /// dash, `dash_commit=exclusive`.
    Exclusive,
    /// dash, `dash_commit=paper`.
    Paper,
    /// Stock SQLite, `journal_mode=WAL`.
    Wal,
    /// Stock SQLite, `journal_mode=PERSIST`.
    Persist,
    /// Stock SQLite, `journal_mode=DELETE`.
    Delete,
}

impl Engine {
    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Single => "dash single",
            Self::Exclusive => "dash exclusive",
            Self::Paper => "dash paper",
            Self::Wal => "stock WAL",
            Self::Persist => "stock PERSIST",
            Self::Delete => "stock DELETE",
        }
    }

    /// The name that clap knows it by, and files are called after.
    pub fn word(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Exclusive => "exclusive",
            Self::Paper => "paper",
            Self::Wal => "wal",
            Self::Persist => "persist",
            Self::Delete => "delete",
        }
    }

    /// Whether it is dash.
    pub fn is_dash(self) -> bool {
        matches!(self, Self::Single | Self::Exclusive | Self::Paper)
    }

    /// Opens, and nothing more: what an application does at its start.
    pub fn connect(self, path: &Path) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        if self.is_dash() {
            let uri = format!("file:{}?vfs=dash&dash_commit={}", path.display(), self.word());
            Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)
        } else {
            Connection::open_with_flags(path, flags)
        }
    }

    /// Opens a database, puts it into the journal mode, and makes sure that it is.
    pub fn open(self, path: &Path) -> Result<Connection> {
        let what = || format!("opening {} by {}", path.display(), self.name());
        let db = self.connect(path).explain(what())?;
        db.busy_timeout(Duration::from_secs(20)).explain(what())?;
        let (ask, wanted) = match self {
            Self::Single | Self::Exclusive | Self::Paper => ("PRAGMA journal_mode", "shadow"),
            Self::Wal => ("PRAGMA journal_mode=WAL", "wal"),
            Self::Persist => ("PRAGMA journal_mode=PERSIST", "persist"),
            Self::Delete => ("PRAGMA journal_mode=DELETE", "delete"),
        };
        let mode: String = db.query_row(ask, [], |row| row.get(0)).explain(what())?;
        if mode != wanted {
            return Err(Failure::new(format!("{}: journal mode {mode}, not {wanted}", what())));
        }
        db.execute_batch("PRAGMA synchronous=FULL").explain(what())?;
        Ok(db)
    }
}
