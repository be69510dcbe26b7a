//! The tables that rows work on, and the operations on them.

use std::path::Path;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use rusqlite::{Connection, params};

use crate::failure::{Explain, Result};
use crate::row::Row;

/// Rows of the table of point reads and random updates: 12 MB.
pub const ROWS: i64 = 100_000;
/// SQLite's default page cache, 2 MB.
pub const SMALL_CACHE: &str = "PRAGMA cache_size=-2000";
/// A page cache that holds the table.
pub const LARGE_CACHE: &str = "PRAGMA cache_size=-65536";

/// Row numbers: the same sequence on every side.
pub struct Dice(SmallRng);

impl Dice {
    /// Starts a sequence.
    pub fn new(seed: u64) -> Self {
        Self(SmallRng::seed_from_u64(seed))
    }

    /// A number from 1 to `sides`.
    pub fn roll(&mut self, sides: i64) -> i64 {
        self.0.random_range(1..=sides.max(1))
    }
}

/// A database with an empty table to insert into.
pub fn with_empty_table(row: &Row, path: &Path) -> Result<Connection> {
    let db = row.open(path)?;
    db.execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT NOT NULL)")
        .explain("making a table")?;
    Ok(db)
}

/// A database with `rows` rows of 100 bytes, and a table `log` to insert into.
pub fn with_rows(row: &Row, path: &Path, rows: i64) -> Result<Connection> {
    let db = row.open(path)?;
    db.execute_batch(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT NOT NULL);
         CREATE TABLE log (id INTEGER PRIMARY KEY, body TEXT NOT NULL)",
    )
    .explain("making tables")?;
    let sql = "INSERT INTO t SELECT value, printf('%0100d', value) FROM (WITH RECURSIVE n(value) AS
               (VALUES(1) UNION ALL SELECT value + 1 FROM n WHERE value < ?1) SELECT value FROM n)";
    db.execute(sql, [rows]).explain("filling a table")?;
    Ok(db)
}

/// Autocommit inserts of 100 bytes.
pub struct Inserter<'a> {
    statement: rusqlite::Statement<'a>,
    body: String,
}

impl<'a> Inserter<'a> {
    /// Into the table `t`.
    pub fn new(db: &'a Connection) -> Result<Self> {
        Self::into(db, "t")
    }

    /// Into a table.
    pub fn into(db: &'a Connection, table: &str) -> Result<Self> {
        let statement = db
            .prepare(&format!("INSERT INTO {table} (body) VALUES (?1)"))
            .explain("preparing an insert")?;
        Ok(Self { statement, body: "x".repeat(100) })
    }

    /// One insert.
    pub fn step(&mut self) -> Result<()> {
        self.statement.execute([&self.body]).map(drop).explain("inserting")
    }
}

/// Autocommit reads of one row.
pub struct PointReader<'a> {
    statement: rusqlite::Statement<'a>,
    dice: Dice,
    next: i64,
}

impl<'a> PointReader<'a> {
    /// Of the table `t`.
    pub fn new(db: &'a Connection) -> Result<Self> {
        let statement =
            db.prepare("SELECT body FROM t WHERE id = ?1").explain("preparing a read")?;
        Ok(Self { statement, dice: Dice::new(7), next: 0 })
    }

    fn read(&mut self, id: i64) -> Result<()> {
        let len = self.statement.query_row([id], |row| Ok(row.get_ref(0)?.as_str()?.len()));
        std::hint::black_box(len.explain("reading")?);
        Ok(())
    }

    /// Reads any row.
    pub fn step(&mut self) -> Result<()> {
        let id = self.dice.roll(ROWS);
        self.read(id)
    }

    /// Reads the next row.
    pub fn step_in_order(&mut self) -> Result<()> {
        self.next = self.next % ROWS + 1;
        self.read(self.next)
    }
}

/// Updates in transactions that touch twenty pages far from each other.
pub struct Scatter<'a> {
    db: &'a Connection,
    dice: Dice,
    rows: i64,
}

/// Pages of such a transaction.
const SCATTERED: usize = 20;

impl<'a> Scatter<'a> {
    /// On the table `wide`, which has one row a page.
    pub fn new(db: &'a Connection) -> Result<Self> {
        let rows = db
            .query_row("SELECT max(id) FROM wide", [], |row| row.get(0))
            .explain("counting rows")?;
        Ok(Self { db, dice: Dice::new(u64::from(std::process::id())), rows })
    }

    /// One transaction.
    pub fn step(&mut self) -> Result<()> {
        let mut update = self
            .db
            .prepare_cached("UPDATE wide SET n = n + 1 WHERE id = ?1")
            .explain("preparing an update")?;
        self.db.execute_batch("BEGIN").explain("BEGIN")?;
        for _ in 0..SCATTERED {
            update.execute(params![self.dice.roll(self.rows)]).explain("updating")?;
        }
        self.db.execute_batch("COMMIT").explain("COMMIT")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dice_stay_within_their_sides_and_repeat() {
        let mut dice = Dice::new(3);
        let first: Vec<i64> = (0..1000).map(|_| dice.roll(6)).collect();
        assert!(first.iter().all(|side| (1..=6).contains(side)));
        assert!((1..=6).all(|side| first.contains(&side)));
        let mut again = Dice::new(3);
        assert!(first.iter().all(|side| *side == again.roll(6)));
    }
}
