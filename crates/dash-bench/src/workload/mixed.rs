//! Point reads and updates mixed. One connection throws dice; of several, the first ones only write
//! and the others only read, in the same shares.

use rusqlite::{Connection, Statement};

use super::data::{body, bytes_of, fill, rows_of};
use super::reading::{point, read};
use super::session::{Session, Settings, Step, Worker, Workload};
use super::skew::{Keys, Skew};
use crate::failure::{Explain, Result};

/// Rows of the table unless a size is named.
const ROWS: i64 = 10_000;

/// The workload.
pub struct Mixed {
    rows: i64,
    skew: Skew,
    reads: usize,
}

impl Mixed {
    /// As set.
    pub fn new(settings: &Settings) -> Self {
        let rows = settings.size.map_or(ROWS, rows_of);
        Self { rows, skew: settings.skew, reads: settings.share.min(100) }
    }

    /// The share of reads of one worker, in per cent.
    fn share(&self, worker: &Worker<'_>) -> usize {
        let readers =
            (worker.of * self.reads).div_ceil(100).min(worker.of - usize::from(self.reads < 100));
        match (worker.of, worker.index < worker.of - readers) {
            (1, _) => self.reads,
            (_, true) => 0,
            (_, false) => 100,
        }
    }
}

impl Workload for Mixed {
    fn about(&self) -> String {
        format!(
            "{} % point reads, {} % autocommit updates, {} rows of 100 bytes",
            self.reads,
            100 - self.reads,
            self.rows
        )
    }

    fn size(&self) -> u64 {
        bytes_of(self.rows)
    }

    fn block(&self) -> usize {
        400
    }

    fn build(&self, db: &Connection) -> Result<()> {
        fill(db, "t", self.rows)
    }

    fn session<'a>(&'a self, worker: &Worker<'a>) -> Result<Box<dyn Session + 'a>> {
        let db = worker.db()?;
        let update = db.prepare("UPDATE t SET body = ?1 WHERE id = ?2");
        Ok(Box::new(Running {
            read: point(db)?,
            update: update.explain("preparing an update")?,
            keys: Keys::new(self.skew, self.rows, worker.seed()),
            dice: Keys::new(Skew::Uniform, 100, worker.seed() + 1000),
            reads: i64::try_from(self.share(worker)).unwrap_or(0),
            turn: worker.first_turn(),
        }))
    }
}

struct Running<'a> {
    read: Statement<'a>,
    update: Statement<'a>,
    keys: Keys,
    dice: Keys,
    reads: i64,
    turn: u64,
}

impl Session for Running<'_> {
    fn step(&mut self) -> Result<Step> {
        let key = self.keys.next();
        if self.dice.next() <= self.reads {
            read(&mut self.read, key)?;
            return Ok(Step::Read);
        }
        self.turn += 1;
        self.update.execute((body(self.turn), key)).explain("updating")?;
        Ok(Step::Wrote)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::named;
    use std::path::Path;

    #[test]
    fn of_several_connections_the_first_write_and_the_others_read() {
        let mixed = |reads| Mixed { rows: 1, skew: Skew::Uniform, reads };
        let shares = |reads, of| {
            let row = named("wal");
            let worker = |index| Worker { row, path: Path::new(""), db: None, index, of };
            (0..of).map(|index| mixed(reads).share(&worker(index))).collect::<Vec<_>>()
        };
        assert_eq!(shares(90, 1), [90]);
        assert_eq!(shares(90, 4), [0, 100, 100, 100]);
        assert_eq!(shares(50, 4), [0, 0, 100, 100]);
        assert_eq!(shares(0, 2), [0, 0]);
        assert_eq!(shares(100, 2), [100, 100]);
    }
}
