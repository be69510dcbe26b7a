//! The two sides, and how each opens a database as durably as SQLite can be asked to.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

use super::failed;
use crate::engines;
use crate::extension::Extension;
use crate::failure::{Failure, Result};

/// How long a connection waits for another one of the same replay.
const BUSY_TIMEOUT: Duration = Duration::from_secs(20);

/// Who runs the transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Side {
    /// SQLite's own VFS, `journal_mode=WAL`, `synchronous=FULL`.
    Stock,
    /// dash, `synchronous=FULL`.
    Dash,
}

impl Side {
    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stock => "stock WAL",
            Self::Dash => "dash",
        }
    }

    /// The file it works on.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Stock => "stock.db",
            Self::Dash => "dash.db",
        }
    }

    /// Opens a database on this side.
    pub fn open(self, extension: &Extension, path: &Path) -> Result<Connection> {
        let fail =
            |error: rusqlite::Error| failed(self, &format!("opening {}", path.display()), &error);
        let (db, wanted) = match self {
            Self::Stock => (Connection::open(path).map_err(fail)?, "wal"),
            Self::Dash => (extension.open(path, true)?, engines::DEFAULT.name),
        };
        db.busy_timeout(BUSY_TIMEOUT).map_err(fail)?;
        let ask =
            if self == Self::Stock { "PRAGMA journal_mode=WAL" } else { "PRAGMA journal_mode" };
        let mode: String = db.query_row(ask, [], |row| row.get(0)).map_err(fail)?;
        // Foreign keys are off in SQLite as it is shipped, but on in the build that is linked here.
        db.execute_batch("PRAGMA synchronous=FULL; PRAGMA foreign_keys=OFF").map_err(fail)?;
        if mode.eq_ignore_ascii_case(wanted) {
            Ok(db)
        } else {
            Err(Failure::new(format!(
                "{}: {} is in journal mode {mode}, not {wanted}",
                self.name(),
                path.display()
            )))
        }
    }
}
