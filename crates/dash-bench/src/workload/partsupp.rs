//! A table like TPC-H's partsupp with the SSL paper's sizes: 60,000 rows of 220 bytes, transactions
//! of one update (its Random-A) or of 2,000 (Random-B), consecutive ones far apart. No definition
//! of the paper's own tables is public: these are ours.

use rusqlite::{Connection, Statement};

use super::data::Permutation;
use super::mobibench::{begin, commit};
use super::session::{Session, Step, Worker, Workload};
use crate::failure::{Explain, Result};

/// Rows.
const ROWS: i64 = 60_000;
/// Bytes of the comment, so that a row has 220.
const COMMENT: usize = 194;

/// The workload.
pub struct Partsupp {
    operations: usize,
}

impl Partsupp {
    /// With so many updates per transaction.
    pub fn new(operations: usize) -> Self {
        Self { operations }
    }
}

impl Workload for Partsupp {
    fn about(&self) -> String {
        let name = if self.operations == 1 { "Random-A" } else { "Random-B" };
        format!(
            "partsupp-like, SSL's {name} (the table is ours): {} update(s) per transaction without locality, 60,000 rows of 220 bytes",
            self.operations
        )
    }

    fn size(&self) -> u64 {
        14 << 20
    }

    fn connections(&self) -> Option<usize> {
        Some(1)
    }

    fn block(&self) -> usize {
        (400 / self.operations).max(1)
    }

    fn build(&self, db: &Connection) -> Result<()> {
        db.execute_batch(
            "CREATE TABLE partsupp (id INTEGER PRIMARY KEY, ps_partkey INTEGER, ps_suppkey INTEGER,
             ps_availqty INTEGER, ps_supplycost REAL, ps_comment TEXT)",
        )
        .explain("making a table")?;
        let sql = "INSERT INTO partsupp SELECT value, value / 4 + 1, value % 4 + 1, value % 9999, 1.5,
                   substr(printf('%0200d', value), 1, ?2) FROM (WITH RECURSIVE n(value) AS
                   (VALUES(1) UNION ALL SELECT value + 1 FROM n WHERE value < ?1) SELECT value FROM n)";
        let comment = i64::try_from(COMMENT).unwrap_or(0);
        db.execute(sql, [ROWS, comment]).map(drop).explain("filling a table")
    }

    fn session<'a>(&'a self, worker: &Worker<'a>) -> Result<Box<dyn Session + 'a>> {
        let db = worker.db()?;
        let update = db
            .prepare("UPDATE partsupp SET ps_availqty = ps_availqty + 1 WHERE id = ?1")
            .explain("preparing an update")?;
        let keys = Permutation::new(ROWS);
        Ok(Box::new(Running { db, update, keys, operations: self.operations }))
    }
}

struct Running<'a> {
    db: &'a Connection,
    update: Statement<'a>,
    keys: Permutation,
    operations: usize,
}

impl Session for Running<'_> {
    fn step(&mut self) -> Result<Step> {
        let many = self.operations > 1;
        if many {
            begin(self.db)?;
        }
        for _ in 0..self.operations {
            self.update.execute([self.keys.next()]).explain("updating")?;
        }
        if many {
            commit(self.db)?;
        }
        Ok(Step::Wrote)
    }
}
