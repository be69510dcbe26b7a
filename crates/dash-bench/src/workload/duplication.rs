//! DASH's Figure 18: what it costs that a commit carries the last one's pages along. Transactions
//! of k inserts, each into its own table; a share of the tables is the same in every transaction,
//! the others take turns, so that consecutive transactions have only that share in common.

use rusqlite::{Connection, Statement};

use super::data::{body, bytes_of, fill};
use super::mobibench::{begin, commit};
use super::session::{Session, Settings, Step, Worker, Workload};
use crate::failure::{Explain, Result};

/// The workload.
pub struct Duplication {
    operations: usize,
    share: usize,
}

impl Duplication {
    /// As set.
    pub fn new(settings: &Settings) -> Self {
        Self { operations: settings.operations.max(1), share: settings.share.min(100) }
    }

    /// How many tables are the same in every transaction.
    fn shared(&self) -> usize {
        (self.operations * self.share + 50) / 100
    }
}

impl Workload for Duplication {
    fn about(&self) -> String {
        format!(
            "{} inserts of 100 bytes per transaction, each in its own table; {} of the tables the same as in the last transaction",
            self.operations,
            self.shared()
        )
    }

    fn size(&self) -> u64 {
        bytes_of(0)
    }

    fn connections(&self) -> Option<usize> {
        Some(1)
    }

    fn build(&self, db: &Connection) -> Result<()> {
        (0..2 * self.operations).try_for_each(|table| fill(db, &format!("t{table}"), 0))
    }

    fn session<'a>(&'a self, worker: &Worker<'a>) -> Result<Box<dyn Session + 'a>> {
        let db = worker.db()?;
        let inserts = (0..2 * self.operations)
            .map(|table| {
                db.prepare(&format!("INSERT INTO t{table} (body) VALUES (?1)"))
                    .explain("preparing an insert")
            })
            .collect::<Result<_>>()?;
        Ok(Box::new(Running { db, inserts, shared: self.shared(), turn: 0 }))
    }
}

struct Running<'a> {
    db: &'a Connection,
    inserts: Vec<Statement<'a>>,
    shared: usize,
    turn: usize,
}

impl Session for Running<'_> {
    fn step(&mut self) -> Result<Step> {
        self.turn += 1;
        let operations = self.inserts.len() / 2;
        let text = body(crate::numbers::count(self.turn));
        begin(self.db)?;
        for at in 0..operations {
            let other = if at < self.shared { 0 } else { self.turn % 2 };
            self.inserts[at + other * operations].execute([&text]).explain("inserting")?;
        }
        commit(self.db)?;
        Ok(Step::Wrote)
    }
}
