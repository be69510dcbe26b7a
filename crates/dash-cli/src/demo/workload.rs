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
    let mut random = Random::new(7);
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
        let id = random.up_to(ROWS);
        Statement {
            sql: "UPDATE dash_demo SET body = ? WHERE id = ?".into(),
            values: vec![random.text().into(), id.into()],
        }
    }
}

/// Letters that are the same in every run, so that two runs can be compared.
pub struct Random(fastrand::Rng);

impl Random {
    /// From a seed.
    pub fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// A number from 1 to `limit`.
    fn up_to(&mut self, limit: i64) -> i64 {
        self.0.i64(1..=limit)
    }

    /// A hundred letters.
    pub fn text(&mut self) -> String {
        (0..ROW_BYTES).map(|_| self.0.lowercase()).collect()
    }
}
