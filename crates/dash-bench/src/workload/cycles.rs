//! Open, update one row, close: what a short-lived program on a phone does, nobody else having the
//! database open.

use std::path::Path;

use super::data::{body, bytes_of, fill, rows_of};
use super::session::{Session, Settings, Step, Worker, Workload};
use super::skew::{Keys, Skew};
use crate::failure::{Explain, Result};
use crate::row::Row;

/// Rows of the table.
const ROWS: i64 = 1000;

/// The workload.
pub struct Cycles {
    rows: i64,
    skew: Skew,
}

impl Cycles {
    /// As set.
    pub fn new(settings: &Settings) -> Self {
        Self { rows: settings.size.map_or(ROWS, rows_of), skew: settings.skew }
    }
}

impl Workload for Cycles {
    fn about(&self) -> String {
        format!(
            "open, one autocommit update of a 100-byte row, close; {} rows, nobody else there",
            self.rows
        )
    }

    fn size(&self) -> u64 {
        bytes_of(self.rows)
    }

    fn stays_open(&self) -> bool {
        false
    }

    fn block(&self) -> usize {
        20
    }

    fn build(&self, db: &rusqlite::Connection) -> Result<()> {
        fill(db, "t", self.rows)
    }

    fn session<'a>(&'a self, worker: &Worker<'a>) -> Result<Box<dyn Session + 'a>> {
        let keys = Keys::new(self.skew, self.rows, worker.seed());
        Ok(Box::new(Running {
            row: worker.row,
            path: worker.path,
            keys,
            turn: worker.first_turn(),
        }))
    }
}

struct Running<'a> {
    row: &'static Row,
    path: &'a Path,
    keys: Keys,
    turn: u64,
}

impl Session for Running<'_> {
    fn step(&mut self) -> Result<Step> {
        self.turn += 1;
        let db = self.row.start(self.path)?;
        db.execute("UPDATE t SET body = ?1 WHERE id = ?2", (body(self.turn), self.keys.next()))
            .explain("updating")?;
        db.close().map_err(|(_, error)| error).explain("closing")?;
        Ok(Step::Wrote)
    }
}
