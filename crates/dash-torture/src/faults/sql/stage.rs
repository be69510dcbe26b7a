//! A database under faults: its files, what was committed, and what may be found.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, params};

use crate::sqlite::{self, Wrong};

/// Rows that every commit changes; about a dozen pages.
const ROWS: i64 = 40;

/// See [`Stage::new`].
const NO_REST: &str = "&dash_rest=off";

/// A database and all that is known of it.
pub struct Stage {
    /// Its path.
    pub path: PathBuf,
    /// The engine's name, which is that of its mode.
    pub engine: String,
    /// URI parameters.
    pub parameters: String,
    /// The connection, if it is open.
    pub db: Option<Connection>,
    /// The newest commit that was acknowledged; 0: there are no tables.
    pub acknowledged: i64,
    /// The newest that was begun.
    pub begun: i64,
    /// A second database takes part in every commit.
    pub attached: bool,
}

impl Stage {
    /// A database that is not there yet. It never comes to rest while it is open: a thread that
    /// the engine starts for that would ask for its calls, too, and outlive whoever answers.
    pub fn new(folder: &Path, engine: &str, parameters: &str) -> Self {
        let rest = if parameters.contains(NO_REST) { "" } else { NO_REST };
        Self {
            path: folder.join("app.db"),
            engine: engine.to_owned(),
            parameters: format!("{parameters}{rest}"),
            db: None,
            acknowledged: 0,
            begun: 0,
            attached: false,
        }
    }

    /// It comes to rest so many milliseconds after its last commit: for who starts the thread that
    /// sees to that where nobody asks, or ends with it.
    #[must_use]
    pub fn resting(mut self, millis: u32) -> Self {
        self.comes_to_rest(millis);
        self
    }

    /// The same, from the next opening on.
    pub fn comes_to_rest(&mut self, millis: u32) {
        // Of a parameter that is given twice the last one counts.
        write!(self.parameters, "&dash_rest={millis}").unwrap_or_default();
    }

    /// Whether the name fence stands: after a commit, the database is not at rest.
    pub fn is_fenced(&self) -> bool {
        self.path.with_file_name("app.db-journal").is_dir()
    }

    /// The second database.
    pub fn other(&self) -> PathBuf {
        self.path.with_file_name("other.db")
    }

    /// The open connection.
    pub fn db(&self) -> &Connection {
        self.db.as_ref().unwrap_or_else(|| unreachable!("operations say what they need"))
    }

    /// Opens it, and reads.
    pub fn open(&mut self) -> rusqlite::Result<()> {
        let db = sqlite::open(&self.path, &self.parameters)?;
        // Small, so that transactions spill; statements fail rather than wait.
        db.execute_batch("PRAGMA cache_size = 5")?;
        self.db = Some(db);
        Ok(())
    }

    /// Opens the second one beside it.
    pub fn attach(&mut self) -> rusqlite::Result<()> {
        let uri = sqlite::uri(&self.other(), &self.parameters);
        self.db().execute("ATTACH ? AS other", [uri])?;
        self.attached = true;
        Ok(())
    }

    /// Closes it. After an error it is closed, too.
    pub fn close(&mut self) -> rusqlite::Result<()> {
        match self.db.take().map(Connection::close) {
            Some(Err((_, error))) => Err(error),
            _ => Ok(()),
        }
    }

    /// Makes the tables: commit 1.
    pub fn make(&mut self) -> rusqlite::Result<()> {
        self.begun = 1;
        let tables = |schema: &str| {
            format!(
                "CREATE TABLE {schema}.spread(id INTEGER PRIMARY KEY, n, pad);
                 CREATE TABLE {schema}.log(n INTEGER PRIMARY KEY, pad);
                 WITH RECURSIVE i(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM i WHERE x < {ROWS})
                 INSERT INTO {schema}.spread SELECT x, 1, zeroblob(900) FROM i;
                 INSERT INTO {schema}.log VALUES (1, NULL);"
            )
        };
        let more = if self.attached { tables("other") } else { String::new() };
        let batch = format!("BEGIN; {} {more} COMMIT", tables("main"));
        self.db().execute_batch(&batch)?;
        self.acknowledged = 1;
        Ok(())
    }

    /// The next commit, with so many bytes in its row.
    pub fn commit(&mut self, bytes: i64) -> rusqlite::Result<()> {
        let n = self.begun + 1;
        self.db().execute_batch("BEGIN IMMEDIATE")?;
        self.write(n, bytes)?;
        self.begun = n;
        self.db().execute_batch("COMMIT")?;
        self.acknowledged = n;
        Ok(())
    }

    /// Writes what commit `n` consists of.
    pub fn write(&self, n: i64, bytes: i64) -> rusqlite::Result<()> {
        let schemas: &[_] = if self.attached { &["main", "other"] } else { &["main"] };
        for schema in schemas {
            self.db().execute(&format!("UPDATE {schema}.spread SET n = ?"), [n])?;
            self.db().execute(
                &format!("INSERT INTO {schema}.log VALUES (?, zeroblob(?))"),
                params![n, bytes],
            )?;
        }
        Ok(())
    }

    /// Ends a transaction that failed.
    pub fn give_up(&self) -> rusqlite::Result<()> {
        match &self.db {
            Some(db) if !db.is_autocommit() => db.execute_batch("ROLLBACK"),
            _ => Ok(()),
        }
    }
}

/// The number of the newest commit that a database has; 0: no tables.
pub fn state(db: &Connection) -> Result<i64, Wrong> {
    let tables: i64 =
        db.query_row("SELECT count(*) FROM sqlite_schema WHERE type = 'table'", [], |row| {
            row.get(0)
        })?;
    if tables == 0 {
        return Ok(0);
    }
    let (least, most, rows): (i64, i64, i64) =
        db.query_row("SELECT min(n), max(n), count(*) FROM spread", [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?;
    let newest: i64 = db.query_row("SELECT max(n) FROM log", [], |row| row.get(0))?;
    if least == most && most == newest && rows == ROWS {
        return Ok(newest);
    }
    Err(Wrong::Content(format!(
        "{rows} rows of commits {least} to {most}, with {newest} in the log"
    )))
}

/// [`state`], and SQLite's own opinion.
pub fn sound_state(db: &Connection) -> Result<i64, Wrong> {
    sqlite::sound(db, state)
}
