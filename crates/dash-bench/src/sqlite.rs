//! How SQLite opens a database: through which VFS, in which journal mode, how durably.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::extension::escape;
use crate::failure::{Explain, Failure, Result};

/// How long a connection waits for another one.
const BUSY_TIMEOUT: Duration = Duration::from_secs(20);

/// A way to open.
#[derive(Debug, Clone, Copy)]
pub struct Sqlite {
    /// Parameters of the URI, which choose VFS and journal mode; without any the path as it is.
    parameters: Option<&'static str>,
    /// What `PRAGMA journal_mode` must answer.
    pub journal_mode: &'static str,
    synchronous: &'static str,
    /// How many files as large as the database there are.
    pub copies: u64,
}

impl Sqlite {
    /// SQLite's own VFS.
    pub const fn stock(journal_mode: &'static str, synchronous: &'static str) -> Self {
        Self { parameters: None, journal_mode, synchronous, copies: 1 }
    }

    /// dash by these parameters of the URI.
    pub const fn dash(journal_mode: &'static str, parameters: &'static str, copies: u64) -> Self {
        let parameters = Some(parameters);
        Self { parameters, copies, ..Self::stock(journal_mode, "FULL") }
    }

    /// Whether a commit flushes several times, a journal first.
    pub fn is_rollback(&self) -> bool {
        matches!(self.journal_mode, "delete" | "truncate" | "persist")
    }

    /// Whether it is stock SQLite's WAL.
    pub fn is_wal(&self) -> bool {
        self.journal_mode == "wal"
    }

    /// Whether a connection has the journal mode and `synchronous` without asking: by its URI, from
    /// the file, or because they are SQLite's defaults.
    fn needs_no_settings(&self) -> bool {
        self.parameters.is_some()
            || matches!((self.journal_mode, self.synchronous), ("wal" | "delete", "FULL"))
    }

    /// Opens, and nothing more: what an application does at its start where the mode is in the
    /// file.
    pub fn connect(&self, path: &Path) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        match self.parameters {
            Some(parameters) => {
                let uri = format!("file:{}?{parameters}", escape(path));
                Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)
            }
            None => Connection::open_with_flags(path, flags),
        }
    }

    /// [`Self::connect`], and the settings that the file does not keep: what an application does at
    /// each start.
    pub fn start(&self, path: &Path) -> rusqlite::Result<Connection> {
        let db = self.connect(path)?;
        if !self.needs_no_settings() {
            db.pragma_update_and_check(None, "journal_mode", self.journal_mode, |_| Ok(()))?;
            db.pragma_update(None, "synchronous", self.synchronous)?;
        }
        Ok(db)
    }

    /// Opens a database, puts it into the journal mode, and makes sure that it is; `name` is for
    /// messages.
    pub fn open(&self, path: &Path, name: &str) -> Result<Connection> {
        let what = || format!("opening {} by {name}", path.display());
        let db = self.connect(path).explain(what())?;
        db.busy_timeout(BUSY_TIMEOUT).explain(what())?;
        let wanted = self.journal_mode;
        let ask = match self.parameters {
            Some(_) => "PRAGMA journal_mode".to_owned(),
            None => format!("PRAGMA journal_mode={wanted}"),
        };
        let mode: String = db.query_row(&ask, [], |row| row.get(0)).explain(what())?;
        if mode != wanted {
            return Err(Failure::new(format!("{}: journal mode {mode}, not {wanted}", what())));
        }
        // Foreign keys are off in SQLite as it is shipped, but on in the build that is linked here.
        let settings = format!("PRAGMA synchronous={}; PRAGMA foreign_keys=OFF", self.synchronous);
        db.execute_batch(&settings).explain(what())?;
        Ok(db)
    }
}
