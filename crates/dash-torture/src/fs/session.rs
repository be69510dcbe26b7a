//! A program that goes on when commits fail, as one on a failing device does, with a ledger of what
//! succeeded and what may or may not have.

use fastrand::Rng;
use rusqlite::{Connection, ErrorCode};

use super::database::{self, Opened, explained};
use super::ledger::{Commit, Doubtful, Ledger, State};
use super::rig::Rig;

/// A connection, the same content in memory, and the ledger.
pub struct Session<'a> {
    rig: &'a Rig,
    opened: Opened,
    db: Option<Connection>,
    model: Connection,
    /// Commits that failed and may yet be seen: their statements, and what they would have made.
    failed: Vec<(String, Doubtful)>,
    /// The statements of the commits that count.
    counted: Vec<String>,
    /// It was closed since it was last read: what failed, and was seen, may have been in its memory
    /// alone.
    was_closed: bool,
    number: u64,
    rng: Rng,
    /// Of all commits.
    pub ledger: Ledger,
}

/// The answer to a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It is acknowledged; in the log it began at this position.
    Done(u64),
    /// It failed, as it may on a device that fails.
    Refused(ErrorCode),
}

impl<'a> Session<'a> {
    /// Nothing is opened yet.
    pub fn new(rig: &'a Rig, opened: Opened, rng: Rng) -> Result<Self, String> {
        let model = Connection::open_in_memory().map_err(|error| error.to_string())?;
        let empty = database::state(&model, false).map_err(|error| error.to_string())?;
        let ledger = Ledger { empty, ..Ledger::default() };
        let (failed, counted) = (Vec::new(), Vec::new());
        let (db, number, was_closed) = (None, 0, false);
        Ok(Self { rig, opened, db, model, failed, counted, was_closed, number, rng, ledger })
    }

    /// One commit, of so many bytes; the first makes the table. Opens the database if need be.
    ///
    /// # Errors
    ///
    /// An answer that SQLite must not give even on a device that fails, in a sentence.
    pub fn commit(&mut self, bytes: u64) -> Result<Answer, String> {
        let sql = |error: rusqlite::Error| error.to_string();
        let position = || self.rig.log.position().map_err(|error| error.to_string());
        if !self.failed.is_empty() || self.was_closed {
            self.read(false)?;
        }
        self.number += 1;
        let statement = match self.ledger.commits.len() {
            0 => {
                "CREATE TABLE t(id INTEGER PRIMARY KEY, v TEXT); CREATE INDEX i ON t(v)".to_owned()
            }
            _ => format!(
                "INSERT INTO t(v) VALUES ({} || hex(zeroblob({}))); DELETE FROM t WHERE id % 7 = {}",
                self.number,
                bytes / 2,
                self.rng.u8(..7),
            ),
        };
        self.model.execute_batch(&format!("BEGIN; {statement}")).map_err(sql)?;
        let state = {
            // `state` opens a transaction of its own.
            let main = database::content(&self.model, "main").map_err(sql)?;
            (main, 0)
        };
        let begun = position()?;
        match self.run(&format!("BEGIN IMMEDIATE; {statement}; COMMIT")) {
            Ok(()) => {
                self.model.execute_batch("COMMIT").map_err(sql)?;
                self.failed.clear();
                self.counted.push(statement);
                self.ledger.commits.push(Commit {
                    begun,
                    acknowledged: position()?,
                    state,
                    is_durable: true,
                });
                Ok(Answer::Done(begun))
            }
            Err(error) => {
                self.model.execute_batch("ROLLBACK").map_err(sql)?;
                let after = self.ledger.commits.len();
                let doubtful = Doubtful { begun, after, state };
                self.ledger.doubtful.push(doubtful);
                self.failed.push((statement, doubtful));
                if let Some(db) = self.db.as_ref().filter(|db| !db.is_autocommit()) {
                    let _rolled_back_by_the_next = db.execute_batch("ROLLBACK");
                }
                // What can't be read without writing its index.
                let may_not_lock =
                    self.opened.loaded().is_some_and(|loaded| !loaded.reads_without_writing());
                match error.sqlite_error_code() {
                    Some(code @ ErrorCode::FileLockingProtocolFailed) if may_not_lock => {
                        Ok(Answer::Refused(code))
                    }
                    Some(
                        code @ (ErrorCode::SystemIoFailure
                        | ErrorCode::ReadOnly
                        | ErrorCode::DiskFull
                        | ErrorCode::CannotOpen),
                    ) => Ok(Answer::Refused(code)),
                    _ => {
                        Err(format!("an error that a user can't understand: {}", explained(&error)))
                    }
                }
            }
        }
    }

    /// Opens the database if it isn't open.
    fn opened(&mut self) -> rusqlite::Result<()> {
        if self.db.is_none() {
            self.db = Some(self.opened.open(&self.rig.point(), false, &[])?);
        }
        Ok(())
    }

    fn run(&mut self, sql: &str) -> rusqlite::Result<()> {
        self.opened()?;
        self.db.as_ref().map_or(Ok(()), |db| db.execute_batch(sql))
    }

    /// Reads: finds what was acknowledged, or fails.
    ///
    /// # Errors
    ///
    /// Other content, in a sentence.
    pub fn read(&mut self, must: bool) -> Result<(), String> {
        let expected = self.ledger.commits.last().map_or(self.ledger.empty, |commit| commit.state);
        let opened = self.opened();
        match opened.and_then(|()| match &self.db {
            Some(db) => database::state(db, false),
            None => Ok(expected),
        }) {
            Ok(found)
                if found == expected
                    || self.shows_failed(found)?
                    || self.forgets_failed(found)? =>
            {
                self.was_closed = false;
                Ok(())
            }
            Ok(found) if self.ledger.doubtful.iter().any(|failed| failed.state == found) => {
                Err("reading finds the rows of a commit that failed".to_owned())
            }
            Ok(_) => Err("reading finds rows that no commit made".to_owned()),
            Err(error) if must => Err(format!("reading: {}", explained(&error))),
            Err(_) => Ok(()),
        }
    }

    /// Whether this is what a commit left that failed and is seen all the same. It counts from then
    /// on, as all that come later stand on it.
    fn shows_failed(&mut self, found: State) -> Result<bool, String> {
        let shows = self.opened.loaded().is_some_and(|loaded| loaded.shows_failed_commits());
        let seen = self.failed.iter().find(|(_, failed)| shows && failed.state == found);
        let Some((statement, failed)) = seen else { return Ok(false) };
        self.model.execute_batch(statement).map_err(|error| error.to_string())?;
        self.counted.push(statement.clone());
        let acknowledged = self.rig.log.position().map_err(|error| error.to_string())?;
        let Doubtful { begun, state, .. } = *failed;
        self.ledger.commits.push(Commit { begun, acknowledged, state, is_durable: false });
        self.failed.clear();
        Ok(true)
    }

    /// Whether this is what was there before commits that failed, and were seen in the memory of a
    /// connection that is closed now. They count no more then.
    fn forgets_failed(&mut self, found: State) -> Result<bool, String> {
        let commits = &mut self.ledger.commits;
        let sound = commits.iter().rposition(|commit| commit.is_durable).map_or(0, |at| at + 1);
        let is_it = |&kept: &usize| match kept.checked_sub(1) {
            Some(last) => commits[last].state == found,
            None => self.ledger.empty == found,
        };
        let may_be = self.was_closed && self.opened.is_in_memory();
        let Some(kept) = (sound..commits.len()).rev().find(is_it).filter(|_| may_be) else {
            return Ok(false);
        };
        commits.truncate(kept);
        self.counted.truncate(kept);
        self.model = Connection::open_in_memory().map_err(|error| error.to_string())?;
        for statement in &self.counted {
            self.model.execute_batch(statement).map_err(|error| error.to_string())?;
        }
        Ok(true)
    }

    /// Closes the connection; on a device that fails that fails, too.
    pub fn close(&mut self) {
        drop(self.db.take());
        self.was_closed = true;
    }
}
