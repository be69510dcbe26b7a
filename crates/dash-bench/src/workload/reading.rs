//! Reading only: points by key, and scans of the whole table.

use rusqlite::{Connection, Statement};

use super::data::{bytes_of, fill, rows_of};
use super::session::{Session, Settings, Step, Worker, Workload};
use super::skew::{Keys, Skew};
use crate::failure::{Explain, Result};

/// Rows of the table unless a size is named: 12 MB, more than SQLite's cache of 2 MB.
const ROWS: i64 = 100_000;

/// Point reads.
pub struct Points {
    rows: i64,
    skew: Skew,
}

impl Points {
    /// As set.
    pub fn new(settings: &Settings) -> Self {
        Self { rows: settings.size.map_or(ROWS, rows_of), skew: settings.skew }
    }
}

impl Workload for Points {
    fn about(&self) -> String {
        let skew = if self.skew == Skew::Zipf { "Zipf" } else { "uniform" };
        format!(
            "autocommit point reads by key ({skew}), {} rows of 100 bytes, SQLite's default cache",
            self.rows
        )
    }

    fn writes(&self) -> bool {
        false
    }

    fn size(&self) -> u64 {
        bytes_of(self.rows)
    }

    fn block(&self) -> usize {
        5000
    }

    fn build(&self, db: &Connection) -> Result<()> {
        fill(db, "t", self.rows)
    }

    fn session<'a>(&'a self, worker: &Worker<'a>) -> Result<Box<dyn Session + 'a>> {
        let keys = Keys::new(self.skew, self.rows, worker.seed());
        Ok(Box::new(Pointing { read: point(worker.db()?)?, keys }))
    }
}

/// The statement of a point read.
pub fn point(db: &Connection) -> Result<Statement<'_>> {
    db.prepare("SELECT body FROM t WHERE id = ?1").explain("preparing a read")
}

/// Reads one row.
pub fn read(statement: &mut Statement<'_>, key: i64) -> Result<()> {
    let length = statement.query_row([key], |row| Ok(row.get_ref(0)?.as_str()?.len()));
    std::hint::black_box(length.explain("reading")?);
    Ok(())
}

struct Pointing<'a> {
    read: Statement<'a>,
    keys: Keys,
}

impl Session for Pointing<'_> {
    fn step(&mut self) -> Result<Step> {
        read(&mut self.read, self.keys.next())?;
        Ok(Step::Read)
    }
}

/// Scans.
pub struct Scans {
    rows: i64,
}

impl Scans {
    /// As set.
    pub fn new(settings: &Settings) -> Self {
        Self { rows: settings.size.map_or(ROWS, rows_of) }
    }
}

impl Workload for Scans {
    fn about(&self) -> String {
        format!("scans of a table of {} rows of 100 bytes: sum(length(body))", self.rows)
    }

    fn writes(&self) -> bool {
        false
    }

    fn size(&self) -> u64 {
        bytes_of(self.rows)
    }

    fn block(&self) -> usize {
        usize::try_from(1_000_000 / self.rows.max(1)).unwrap_or(1).clamp(1, 100)
    }

    fn build(&self, db: &Connection) -> Result<()> {
        fill(db, "t", self.rows)
    }

    fn session<'a>(&'a self, worker: &Worker<'a>) -> Result<Box<dyn Session + 'a>> {
        let sql = "SELECT sum(length(body)) FROM t";
        Ok(Box::new(Scanning { scan: worker.db()?.prepare(sql).explain("preparing a scan")? }))
    }
}

struct Scanning<'a> {
    scan: Statement<'a>,
}

impl Session for Scanning<'_> {
    fn step(&mut self) -> Result<Step> {
        let sum: i64 = self.scan.query_row([], |row| row.get(0)).explain("scanning")?;
        std::hint::black_box(sum);
        Ok(Step::Read)
    }
}
