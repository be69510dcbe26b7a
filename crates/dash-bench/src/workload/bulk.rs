//! Bulk load: transactions of 10,000 rows of 100 bytes.

use rusqlite::{Connection, Statement};

use super::data::{body, fill};
use super::mobibench::{begin, commit};
use super::session::{Session, Step, Worker, Workload};
use crate::failure::{Explain, Result};

/// Rows of a transaction.
const ROWS: u64 = 10_000;

/// The workload.
pub struct Bulk;

impl Workload for Bulk {
    fn about(&self) -> String {
        "bulk load: transactions of 10,000 rows of 100 bytes into a table that grows".into()
    }

    fn size(&self) -> u64 {
        0
    }

    fn connections(&self) -> Option<usize> {
        Some(1)
    }

    fn block(&self) -> usize {
        2
    }

    fn build(&self, db: &Connection) -> Result<()> {
        fill(db, "t", 0)
    }

    fn session<'a>(&'a self, worker: &Worker<'a>) -> Result<Box<dyn Session + 'a>> {
        let db = worker.db()?;
        let insert =
            db.prepare("INSERT INTO t (body) VALUES (?1)").explain("preparing an insert")?;
        Ok(Box::new(Running { db, insert, turn: 0 }))
    }
}

struct Running<'a> {
    db: &'a Connection,
    insert: Statement<'a>,
    turn: u64,
}

impl Session for Running<'_> {
    fn step(&mut self) -> Result<Step> {
        begin(self.db)?;
        for _ in 0..ROWS {
            self.turn += 1;
            self.insert.execute([body(self.turn)]).explain("inserting")?;
        }
        commit(self.db)?;
        Ok(Step::Wrote)
    }
}
