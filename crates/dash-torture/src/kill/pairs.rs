//! Transactions over two databases: a reader of both finds such a transaction in both or in
//! neither, also where its process was killed in the middle and nobody has written since.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, params};

use super::ledger::{self, Ledger};
use super::round::{Report, Setting};
use super::worker::{Said, TIMEOUT, Worker, say};
use crate::deadly;
use crate::engines::named;
use crate::random::Dice;
use crate::sqlite;

/// The role of the writers.
pub(super) const WRITER: &str = "pair writer";
/// Workers that write.
const WRITERS: usize = 2;
/// Long enough for a commit that is under way to come to its end.
const AGAIN: Duration = Duration::from_millis(40);
/// A writer dies within so many calls that change something, from when it begins a transaction.
const CALLS: usize = 60;

/// How often each writer has written.
type Counts = Vec<i64>;

fn right_of(left: &Path) -> PathBuf {
    left.with_file_name("right.db")
}

fn open(left: &Path, parameters: &str) -> rusqlite::Result<Connection> {
    let db = sqlite::open(left, parameters)?;
    db.busy_timeout(TIMEOUT)?;
    db.execute("ATTACH ? AS other", [sqlite::uri(&right_of(left), parameters)])?;
    Ok(db)
}

fn make(left: &Path, parameters: &str) -> rusqlite::Result<()> {
    let db = open(left, parameters)?;
    for database in ["main", "other"] {
        db.execute_batch(&format!(
            "CREATE TABLE {database}.counts(worker INTEGER PRIMARY KEY, n INT, body BLOB);
             INSERT INTO {database}.counts VALUES (0, 0, NULL), (1, 0, NULL)"
        ))?;
    }
    db.close().map_err(|(_, error)| error)
}

fn counts(db: &Connection, database: &str) -> rusqlite::Result<Counts> {
    let sql = format!("SELECT n FROM {database}.counts ORDER BY worker");
    db.prepare_cached(&sql)?.query_map([], |row| row.get(0))?.collect()
}

/// Both, in one transaction, the one that is named first first.
fn both(db: &Connection, order: [&str; 2]) -> rusqlite::Result<[Counts; 2]> {
    db.execute_batch("BEGIN")?;
    let read = counts(db, order[0]).and_then(|first| Ok([first, counts(db, order[1])?]));
    db.execute_batch(if read.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
    read
}

impl Worker<'_> {
    /// Writes both, again and again.
    pub(super) fn write_pairs(&mut self) -> Result<(), String> {
        let (file, task) = (&self.assignment.file, &self.assignment.task);
        let failed = |what: &str, error: &rusqlite::Error| {
            format!("{what}: {error} (code {}); {}", sqlite::code(error), sqlite::last_error())
        };
        let slot = i64::try_from(task.slot).map_err(|error| error.to_string())?;
        say(Said::Opening)?;
        let db = open(file, &task.parameters).map_err(|error| failed("opening", &error))?;
        let mut ledger = Ledger::open(file, task.slot).map_err(|error| error.to_string())?;
        let number = |db: &Connection| -> rusqlite::Result<u64> {
            Ok(u64::try_from(counts(db, "main")?[task.slot]).unwrap_or_default() + 1)
        };
        let mut lives = self.dice.below(6);
        loop {
            if lives == 0 {
                deadly::die_after(i64::try_from(self.dice.index(CALLS)).unwrap_or(0));
            }
            lives = lives.saturating_sub(1);
            let length = [100, 9_000][self.dice.index(2)];
            let mut n = 0;
            let worked = db.execute_batch("BEGIN IMMEDIATE").and_then(|()| {
                n = number(&db)?;
                for database in ["main", "other"] {
                    let sql = format!(
                        "UPDATE {database}.counts SET n = ?, body = zeroblob(?) WHERE worker = ?"
                    );
                    let signed = i64::try_from(n).unwrap_or_default();
                    db.execute(&sql, params![signed, length, slot])?;
                }
                Ok(())
            });
            let ended = match worked {
                Ok(()) => {
                    ledger.begin(n).map_err(|error| error.to_string())?;
                    self.timed("COMMIT", || db.execute_batch("COMMIT"))?
                }
                Err(error) => Err(error),
            };
            match ended {
                Ok(()) => {
                    ledger.acknowledge(n).map_err(|error| error.to_string())?;
                    say(Said::Done)?;
                }
                Err(error) => {
                    self.later("a transaction over two databases", &error)?;
                    if !db.is_autocommit() {
                        db.execute_batch("ROLLBACK").map_err(|error| failed("ROLLBACK", &error))?;
                    }
                }
            }
        }
    }

    /// Reads both, again and again: what the first has, the second has, too.
    pub(super) fn read_pairs(&mut self) -> Result<(), String> {
        let (file, task) = (&self.assignment.file, &self.assignment.task);
        say(Said::Opening)?;
        let db = open(file, &task.parameters)
            .map_err(|error| format!("opening two databases: {error}; {}", sqlite::last_error()))?;
        say(Said::Opened)?;
        loop {
            let order = if self.dice.one_in(2) { ["main", "other"] } else { ["other", "main"] };
            match both(&db, order) {
                Ok(seen) if joins(&task.engine) && is_mixed(&seen) => {
                    std::thread::sleep(AGAIN);
                    if both(&db, order).is_ok_and(|again| again == seen) {
                        return Err(format!("{order:?} are at {seen:?}"));
                    }
                }
                Ok(_) => say(Said::Done)?,
                Err(error) => self.later("reading two databases", &error)?,
            }
            std::thread::sleep(Duration::from_micros(300));
        }
    }
}

/// Whether an engine promises that a transaction over two databases is in both or in neither.
fn joins(engine: &str) -> bool {
    named(engine).is_some_and(|engine| engine.subject().claims().several_databases)
}

/// Whether the second lacks what the first, which was read earlier, has.
fn is_mixed([first, second]: &[Counts; 2]) -> bool {
    first.iter().zip(second).any(|(first, second)| second < first)
}

impl Setting<'_> {
    /// A round with two databases; `Err` says what must never happen.
    pub fn pairs(&self, dice: &mut Dice) -> Result<Report, String> {
        let failed =
            |error: rusqlite::Error| format!("two databases: {error}; {}", sqlite::last_error());
        let folder = self.database.with_file_name("pairs");
        let left = folder.join("left.db");
        if !folder.exists() {
            std::fs::create_dir(&folder).map_err(|error| error.to_string())?;
            make(&left, self.parameters).map_err(failed)?;
        }
        let mut report = Report::default();
        let setting = Setting { database: &left, ..*self };
        let mut readers = Vec::new();
        for slot in WRITERS..WRITERS + 2 {
            readers.push(setting.start("pair reader", slot, dice)?);
        }
        for reader in &mut readers {
            reader.must_say(Said::Done)?;
        }
        let mut writers = Vec::new();
        for slot in 0..1 + dice.index(WRITERS) {
            writers.push(setting.start(WRITER, slot, dice)?);
        }
        for mut writer in writers {
            // It kills itself.
            writer.must_die()?;
            report.take(writer)?;
        }
        // Nobody writes any more, and the readers have had the databases open all the time.
        std::thread::sleep(AGAIN * 2);
        for reader in readers {
            report.take(reader)?;
        }
        let db = open(&left, self.parameters).map_err(failed)?;
        let seen = both(&db, ["main", "other"]).map_err(failed)?;
        let ledgers = ledger::read_all(&left, WRITERS).map_err(|error| error.to_string())?;
        if joins(self.engine) && seen[0] != seen[1] {
            return Err(format!("two databases, after the kill, are at {seen:?}"));
        }
        for counts in &seen {
            for (&n, entry) in counts.iter().zip(&ledgers) {
                let n = u64::try_from(n).unwrap_or(u64::MAX);
                if !(entry.acknowledged..=entry.begun).contains(&n) {
                    return Err(format!("two databases are at commits {seen:?}, after {entry:?}"));
                }
            }
        }
        // Where the one is behind the other, it follows, and the next round begins with both alike.
        for database in ["main", "other"] {
            for (slot, (one, other)) in seen[0].iter().zip(&seen[1]).enumerate() {
                let sql =
                    format!("UPDATE {database}.counts SET n = ? WHERE worker = ? AND n <> ?1");
                let slot = i64::try_from(slot).unwrap_or_default();
                db.execute(&sql, params![one.max(other), slot]).map_err(failed)?;
            }
        }
        db.close().map_err(|(_, error)| failed(error))?;
        let newest = seen[0].iter().zip(&seen[1]).map(|(one, other)| one.max(other));
        for (slot, &n) in newest.enumerate() {
            ledger::settle(&left, slot, u64::try_from(n).unwrap_or_default())
                .map_err(|error| error.to_string())?;
        }
        Ok(report)
    }
}
