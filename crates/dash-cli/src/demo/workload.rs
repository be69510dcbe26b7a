//! What is run: streams of transactions, one connection each, and the database they start from.

use std::path::PathBuf;

use rusqlite::types::Value;
use rusqlite::{Connection, params};

use crate::failure::{Explain, Result};

/// Rows that the made-up table begins with.
const ROWS: i64 = 5000;
/// Bytes of a row's text.
const ROW_BYTES: usize = 100;

/// A statement and the values bound to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// One statement, without its semicolon.
    pub sql: String,
    /// Bound in order; a statement with values is prepared once.
    pub values: Vec<Value>,
}

/// Statements from BEGIN to COMMIT, or one alone.
pub type Transaction = Vec<Statement>;

/// What both sides run.
pub struct Workload {
    /// For the reader.
    pub title: String,
    /// The database to start from: a plain SQLite file.
    pub base: PathBuf,
    /// One connection each, at the same time.
    pub streams: Vec<Vec<Transaction>>,
}

impl Workload {
    /// Of all streams.
    pub fn transactions(&self) -> u64 {
        self.streams.iter().map(|stream| stream.len() as u64).sum()
    }
}

/// Alternating inserts and updates of random rows, 100 bytes each, autocommit.
pub fn made(base: PathBuf, count: usize, title: String) -> Result<Workload> {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    fill(&base, &mut random).explain("making the table dash_demo")?;
    let transactions = (0..count).map(|number| vec![statement(number, &mut random)]).collect();
    Ok(Workload { title, base, streams: vec![transactions] })
}

fn fill(base: &PathBuf, random: &mut Random) -> rusqlite::Result<()> {
    let mut db = Connection::open(base)?;
    db.execute_batch(
        "PRAGMA journal_mode=DELETE; DROP TABLE IF EXISTS dash_demo;
         CREATE TABLE dash_demo (id INTEGER PRIMARY KEY, body TEXT NOT NULL)",
    )?;
    let transaction = db.transaction()?;
    {
        let mut insert = transaction.prepare("INSERT INTO dash_demo VALUES (?, ?)")?;
        for id in 1..=ROWS {
            insert.execute(params![id, random.text()])?;
        }
    }
    transaction.commit()
}

fn statement(number: usize, random: &mut Random) -> Statement {
    if number.is_multiple_of(2) {
        Statement {
            sql: "INSERT INTO dash_demo (body) VALUES (?)".into(),
            values: vec![random.text().into()],
        }
    } else {
        let id = random.below(ROWS) + 1;
        Statement {
            sql: "UPDATE dash_demo SET body = ? WHERE id = ?".into(),
            values: vec![random.text().into(), id.into()],
        }
    }
}

/// The same numbers in every run (xorshift), so that two runs can be compared.
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number from 0 to `limit` - 1.
    pub fn below(&mut self, limit: i64) -> i64 {
        i64::try_from(self.next() >> 1).unwrap_or(0) % limit
    }

    /// A hundred letters.
    pub fn text(&mut self) -> String {
        (0..ROW_BYTES)
            .map(|_| char::from(b'a' + u8::try_from(self.below(26)).unwrap_or(0)))
            .collect()
    }
}
