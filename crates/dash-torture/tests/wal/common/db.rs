//! A connection: what it commits, and how it ends.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use dash_simulated::{Effect, Fault, Operation, OperationKind, Simulated};
use dash_torture::sim::Saved;
use dash_torture::sim::subject::World;
use rusqlite::Connection;

use super::{DB, Tale, content, payload, said};

/// A connection through the engine.
pub struct Db {
    pub db: Connection,
    pub process: Simulated,
    pub(super) world: World,
    pub(super) tale: Tale,
    /// Its commits need not survive a power loss.
    pub(super) lazy: AtomicBool,
}

impl Db {
    /// The connection, in the same tale told anew.
    #[must_use]
    pub fn of(self, tale: &Tale) -> Self {
        Self { tale: tale.clone(), ..self }
    }

    /// One more in the same process.
    pub fn another(&self) -> Self {
        self.tale.open_in(self.world.another(), "").unwrap()
    }

    /// One more, which has not read anything.
    pub fn opened_only(&self) -> Connection {
        dash_torture::sim::open_sqlite(self.world.another()).unwrap()
    }

    pub fn run(&self, sql: &str) -> Result<(), String> {
        self.db.execute_batch(sql).map_err(|error| said(&error))
    }

    pub fn ok(&self, sql: &str) {
        self.run(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// The first column of the first row.
    pub fn value<T: rusqlite::types::FromSql>(&self, sql: &str) -> Result<T, String> {
        self.db.query_row(sql, [], |row| row.get(0)).map_err(|error| said(&error))
    }

    /// `PRAGMA synchronous`; NORMAL and OFF promise nothing.
    pub fn synchronous(&self, level: &str) {
        self.lazy.store(matches!(level, "NORMAL" | "OFF"), SeqCst);
        self.ok(&format!("PRAGMA synchronous={level}"));
    }

    /// The next commit.
    pub fn put(&self) {
        self.try_put().unwrap();
    }

    pub fn try_put(&self) -> Result<(), String> {
        self.begin()?;
        self.commit()
    }

    /// Its beginning.
    pub fn begin(&self) -> Result<(), String> {
        let number = self.tale.tried() + 1;
        self.run("BEGIN IMMEDIATE")?;
        let statement = "INSERT INTO t VALUES(?1, ?2)";
        self.db.execute(statement, (number, payload(number))).map_err(|error| said(&error))?;
        self.run("UPDATE u SET n = n + 1")
    }

    /// The next commit, within the transaction that is open, and its end.
    pub fn put_in_it(&self) {
        let number = self.tale.tried() + 1;
        self.db.execute("INSERT INTO t VALUES(?1, ?2)", (number, payload(number))).unwrap();
        self.ok("UPDATE u SET n = n + 1");
        self.commit().unwrap();
    }

    /// Its end.
    pub fn commit(&self) -> Result<(), String> {
        let number = self.tale.told.tried.fetch_add(1, SeqCst) + 1;
        self.run("COMMIT")?;
        if !self.lazy.load(SeqCst) {
            self.tale.told.acknowledged.fetch_max(number, SeqCst);
        }
        Ok(())
    }

    /// Something else, which [`Self::content`] does not look at, begun: `rows` rows.
    pub fn scribble(&self, rows: i64) -> Result<(), String> {
        self.run("BEGIN IMMEDIATE")?;
        self.run(&format!(
            "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i<{rows})
             INSERT INTO big SELECT randomblob(400) FROM c"
        ))
    }

    /// A transaction that SQLite rolls back after its last frame, and after its flush: the
    /// wal-index needs another region then, and can't have it.
    pub fn fails_late(&self) {
        self.scribble(10_000).unwrap();
        self.ok("COMMIT");
        let fault = Fault::new(Effect::Error(libc::EIO)).on(OperationKind::SharedRegion);
        self.tale.machine.fail(fault.of_inode(self.tale.inode("-shm")).forever());
        let mut commits = 0..2000;
        let failed = commits.any(|_| self.scribble(1).and_then(|()| self.run("COMMIT")).is_err());
        assert!(failed, "no region was needed");
        self.tale.machine.stop_failing();
        drop(self.run("ROLLBACK"));
    }

    /// What it reads.
    pub fn content(&self) -> i64 {
        content(&self.db).unwrap()
    }

    /// A complete checkpoint.
    pub fn checkpoint(&self, mode: &str) {
        let sql = format!("PRAGMA wal_checkpoint({mode})");
        let busy: i64 = self.value(&sql).unwrap();
        assert_eq!(busy, 0, "{mode}");
    }

    /// A complete checkpoint, and a header more.
    pub fn restart(&self) {
        self.checkpoint("RESTART");
        self.put();
    }

    /// The process dies between two calls.
    pub fn kill(self) {
        let saved = Saved::take(&self.tale.machine, DB);
        self.tale.machine.kill(&self.process);
        drop(self);
        saved.restore();
    }

    /// The process dies before an operation that `when` chooses, or after it, within what `act`
    /// does; whether it came so far.
    pub fn dies(
        self,
        after: bool,
        mut when: impl FnMut(&Operation) -> bool + Send + 'static,
        act: impl FnOnce(&Self),
    ) -> bool {
        let (machine, victim) = (self.tale.machine.clone(), self.process.clone());
        let saved = Arc::new(Mutex::new(None));
        let kept = Arc::clone(&saved);
        machine.watch(move |machine, operation| {
            if kept.lock().unwrap().is_none() && when(operation) {
                *kept.lock().unwrap() = Some(Saved::take(machine, DB));
                if after {
                    machine.kill_after(&victim);
                } else {
                    machine.kill(&victim);
                }
            }
        });
        act(&self);
        machine.watch(|_, _| {});
        let saved = saved.lock().unwrap().take();
        match saved {
            Some(saved) => {
                drop(self);
                saved.restore();
                true
            }
            None => {
                self.kill();
                false
            }
        }
    }

    /// The same at the operation with this number, from 0.
    pub fn dies_at(self, after: bool, number: usize, act: impl FnOnce(&Self)) -> bool {
        let mut count = 0;
        let when = move |_: &Operation| {
            count += 1;
            count > number
        };
        self.dies(after, when, act)
    }

    pub fn close(self) {
        self.db.close().unwrap_or_else(|(_, error)| panic!("{}", said(&error)));
    }
}
