//! Mobibench (Jeong et al., USENIX ATC 2013), as DASH uses it: transactions of k operations on rows
//! of 100 bytes, each operation on its own table, no index. The original updates with a constant,
//! and SQLite skips writes that change nothing; here the value differs each time.

use std::time::Duration;

use rusqlite::{ErrorCode, Statement};

use super::data::{Permutation, add, body, bytes_of, fill, rows_of};
use super::session::{Name, Session, Settings, Step, Worker, Workload};
use super::skew::{Keys, Skew};
use crate::failure::{Explain, Result};

/// Rows of a table to update or delete from; DASH runs so many transactions.
const ROWS: i64 = 10_000;

/// The workload.
pub struct Mobibench {
    kind: Name,
    operations: usize,
    rows: i64,
    skew: Skew,
    busy: Duration,
}

impl Mobibench {
    /// As set.
    pub fn new(settings: &Settings) -> Self {
        let operations = settings.operations.max(1);
        let usual = if settings.name == Name::Insert { 0 } else { ROWS };
        let each = |bytes: u64| rows_of(bytes / crate::numbers::count(operations));
        let rows = settings.size.map_or(usual, each);
        let busy = Duration::from_secs(settings.busy);
        Self { kind: settings.name, operations, rows, skew: settings.skew, busy }
    }
}

impl Workload for Mobibench {
    fn about(&self) -> String {
        let what = match self.kind {
            Name::Update => "updates of random 100-byte rows",
            Name::Delete => "deletes of random 100-byte rows",
            _ => "inserts of 100 bytes",
        };
        let skew = match (self.kind, self.skew) {
            (Name::Update, Skew::Zipf) => ", Zipf",
            _ => "",
        };
        match self.operations {
            1 => format!(
                "Mobibench: autocommit {what}{skew}, one table of {} rows at the start",
                self.rows
            ),
            many => format!(
                "Mobibench: {what}{skew}, {many} per transaction, each in its own table of {} rows at the start",
                self.rows
            ),
        }
    }

    fn size(&self) -> u64 {
        bytes_of(self.rows) * crate::numbers::count(self.operations)
    }

    fn connections(&self) -> Option<usize> {
        // Two that delete the same rows would delete nothing half of the time.
        (self.kind == Name::Delete).then_some(1)
    }

    fn build(&self, db: &rusqlite::Connection) -> Result<()> {
        (0..self.operations).try_for_each(|table| fill(db, &format!("t{table}"), self.rows))
    }

    fn session<'a>(&'a self, worker: &Worker<'a>) -> Result<Box<dyn Session + 'a>> {
        let db = worker.db()?;
        db.busy_timeout(self.busy).explain("setting the busy timeout")?;
        let sql = |table: usize| match self.kind {
            Name::Update => format!("UPDATE t{table} SET body = ?1 WHERE id = ?2"),
            Name::Delete => format!("DELETE FROM t{table} WHERE id = ?1"),
            _ => format!("INSERT INTO t{table} (body) VALUES (?1)"),
        };
        let statements = (0..self.operations)
            .map(|table| db.prepare(&sql(table)).explain("preparing an operation"))
            .collect::<Result<Vec<_>>>()?;
        Ok(Box::new(Running {
            db,
            kind: self.kind,
            statements,
            keys: Keys::new(self.skew, self.rows, worker.seed()),
            gone: Permutation::new(self.rows),
            rows: self.rows,
            // Every connection writes values of its own.
            turn: worker.first_turn(),
            alone: worker.of == 1,
            failures: 0,
        }))
    }
}

struct Running<'a> {
    db: &'a rusqlite::Connection,
    kind: Name,
    statements: Vec<Statement<'a>>,
    keys: Keys,
    gone: Permutation,
    rows: i64,
    turn: u64,
    alone: bool,
    failures: u64,
}

impl Running<'_> {
    fn transaction(&mut self) -> rusqlite::Result<()> {
        let body = body(self.turn);
        let many = self.statements.len() > 1;
        if many {
            execute(self.db, "BEGIN IMMEDIATE")?;
        }
        for statement in &mut self.statements {
            match self.kind {
                Name::Update => statement.execute((&body, self.keys.next())),
                Name::Delete => statement.execute([self.gone.next()]),
                _ => statement.execute([&body]),
            }?;
        }
        if many { execute(self.db, "COMMIT") } else { Ok(()) }
    }
}

/// Whether it failed because another connection was there.
fn is_for_others(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(
        code,
        Some(
            ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::FileLockingProtocolFailed
        )
    )
}

impl Session for Running<'_> {
    fn before(&mut self) -> Result<()> {
        if self.kind != Name::Delete {
            return Ok(());
        }
        // What was deleted comes back, so that there is always something to delete.
        self.db.execute_batch("BEGIN").explain("BEGIN")?;
        for table in 0..self.statements.len() {
            add(self.db, &format!("t{table}"), 1, self.rows)?;
        }
        self.db.execute_batch("COMMIT").explain("COMMIT")?;
        // dash's next commit carries a large one's pages along, as stock WAL's next checkpoint
        // does: neither belongs to the deletes.
        self.turn += 1;
        let changed = self.db.execute("UPDATE t0 SET body = ?1 WHERE id = 1", [body(self.turn)]);
        changed.map(drop).explain("a commit after filling up")
    }

    fn step(&mut self) -> Result<Step> {
        self.turn += 1;
        match self.transaction() {
            Err(error) if !self.alone && is_for_others(&error) => {
                self.failures += 1;
                Ok(Step::Failed)
            }
            other => other.explain("a transaction").map(|()| Step::Wrote),
        }
    }

    fn failures(&self) -> u64 {
        self.failures
    }
}

/// BEGIN, as an application that means to write says it: nobody can be in between.
pub fn begin(db: &rusqlite::Connection) -> Result<()> {
    execute(db, "BEGIN IMMEDIATE").explain("BEGIN")
}

/// COMMIT.
pub fn commit(db: &rusqlite::Connection) -> Result<()> {
    execute(db, "COMMIT").explain("COMMIT")
}

fn execute(db: &rusqlite::Connection, sql: &str) -> rusqlite::Result<()> {
    db.prepare_cached(sql)?.execute([]).map(drop)
}
