//! The operations under which calls are made to fail: what there is before, and what is done.

use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::stage::{Stage, state};
use crate::sqlite::{self, Wrong};

/// An operation.
pub struct Operation {
    /// Its name in a case.
    pub name: &'static str,
    /// What there is before it; nothing fails there.
    pub before: fn(&mut Stage) -> rusqlite::Result<()>,
    /// What is done while calls fail.
    pub act: fn(&mut Stage) -> Result<(), Wrong>,
    /// Whether it is done by the host's own VFS in part, so that errors may come from there.
    pub host: bool,
    /// After `before` another process opens it and commits, and is killed at this part of its
    /// calls, in percent.
    pub crash: Option<u8>,
}

/// More than SQLite's cache holds here.
const LARGE: i64 = 120_000;

/// Longer than it takes a database to come to rest.
const PATIENCE: Duration = Duration::from_secs(20);

/// A database at rest, with three commits.
fn resting(stage: &mut Stage) -> rusqlite::Result<()> {
    open_with_commits(stage)?;
    stage.close()
}

fn open_with_commits(stage: &mut Stage) -> rusqlite::Result<()> {
    stage.open()?;
    stage.make()?;
    stage.commit(100)?;
    stage.commit(5_000)
}

/// A database that only stock SQLite has ever had open.
fn plain(stage: &mut Stage) -> rusqlite::Result<()> {
    stage.db = Some(Connection::open(&stage.path)?);
    stage.make()?;
    stage.close()
}

fn plain_and_open(stage: &mut Stage) -> rusqlite::Result<()> {
    plain(stage)?;
    stage.open()
}

fn two_databases(stage: &mut Stage) -> rusqlite::Result<()> {
    stage.open()?;
    stage.attach()?;
    stage.make()?;
    stage.commit(100)?;
    stage.commit(5_000)
}

fn exclusive(stage: &mut Stage) -> rusqlite::Result<()> {
    open_with_commits(stage)?;
    stage.db().execute_batch("PRAGMA locking_mode = EXCLUSIVE")?;
    stage.commit(100)
}

fn in_mode_delete(stage: &mut Stage) -> rusqlite::Result<()> {
    open_with_commits(stage)?;
    switch(stage.db(), "delete")
}

/// A database that has come to rest, and is open.
fn at_rest(stage: &mut Stage) -> rusqlite::Result<()> {
    stage.comes_to_rest(10);
    open_with_commits(stage)?;
    let begun = Instant::now();
    while stage.is_fenced() {
        if begun.elapsed() > PATIENCE {
            let busy = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
            let why = Some("it does not come to rest".into());
            return Err(rusqlite::Error::SqliteFailure(busy, why));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn switch(db: &Connection, mode: &str) -> rusqlite::Result<()> {
    db.query_row(&format!("PRAGMA journal_mode = {mode}"), [], |row| row.get::<_, String>(0))
        .map(drop)
}

fn look(stage: &mut Stage) -> Result<(), Wrong> {
    let seen = state(stage.db())?;
    if (stage.acknowledged..=stage.begun).contains(&seen) {
        return Ok(());
    }
    Err(Wrong::Content(format!("commit {seen} is seen, {} was acknowledged", stage.acknowledged)))
}

fn open_and_look(stage: &mut Stage) -> Result<(), Wrong> {
    stage.open()?;
    look(stage)
}

fn rolled_back(stage: &mut Stage) -> Result<(), Wrong> {
    stage.db().execute_batch("BEGIN IMMEDIATE")?;
    stage.write(-5, LARGE)?;
    stage.db().execute_batch("ROLLBACK")?;
    look(stage)
}

fn savepoint(stage: &mut Stage) -> Result<(), Wrong> {
    let n = stage.begun + 1;
    stage.db().execute_batch("BEGIN IMMEDIATE; SAVEPOINT s")?;
    stage.write(-5, LARGE)?;
    stage.db().execute_batch("ROLLBACK TO s")?;
    stage.write(n, 100)?;
    stage.begun = n;
    stage.db().execute_batch("RELEASE s; COMMIT")?;
    stage.acknowledged = n;
    Ok(())
}

fn read_only(stage: &mut Stage) -> Result<(), Wrong> {
    stage.db = Some(Connection::open(sqlite::uri(&stage.path, "&mode=ro"))?);
    look(stage)
}

const fn operation(
    name: &'static str,
    before: fn(&mut Stage) -> rusqlite::Result<()>,
    act: fn(&mut Stage) -> Result<(), Wrong>,
) -> Operation {
    Operation { name, before, act, host: false, crash: None }
}

/// In part the host's own VFS is at work.
const fn by_host(operation: Operation) -> Operation {
    Operation { host: true, ..operation }
}

/// Opens what a process has left that was killed.
const fn crashed(name: &'static str, percent: u8) -> Operation {
    Operation { crash: Some(percent), ..by_host(operation(name, resting, open_and_look)) }
}

/// All of them.
pub const ALL: &[Operation] = &[
    by_host(operation("open-new", |_| Ok(()), open_new)),
    by_host(operation("open", resting, open_and_look)),
    by_host(operation("open-read-only", resting, read_only)),
    by_host(operation("open-plain", plain, open_and_look)),
    crashed("open-crashed-20", 20),
    crashed("open-crashed-40", 40),
    crashed("open-crashed-60", 60),
    crashed("open-crashed-80", 80),
    crashed("open-crashed-99", 99),
    operation("read", open_with_commits, look),
    operation("first-commit", plain_and_open, |stage| Ok(stage.commit(100)?)),
    operation("commit", open_with_commits, |stage| Ok(stage.commit(100)?)),
    operation("commit-large", open_with_commits, |stage| Ok(stage.commit(LARGE)?)),
    by_host(operation("commits", resting, several_commits)),
    operation("rollback", open_with_commits, rolled_back),
    operation("savepoint", open_with_commits, savepoint),
    operation("exclusive", exclusive, |stage| Ok(stage.commit(100)?)),
    by_host(operation("read-at-rest", at_rest, look)),
    by_host(operation("commit-at-rest", at_rest, |stage| Ok(stage.commit(100)?))),
    by_host(operation("attached", two_databases, |stage| Ok(stage.commit(100)?))),
    by_host(operation("vacuum", open_with_commits, vacuum)),
    operation("close", open_with_commits, |stage| Ok(stage.close()?)),
    by_host(operation("leave", open_with_commits, |stage| Ok(switch(stage.db(), "delete")?))),
    by_host(operation("enter", in_mode_delete, |stage| Ok(switch(stage.db(), &stage.engine)?))),
];

fn open_new(stage: &mut Stage) -> Result<(), Wrong> {
    stage.open()?;
    stage.make()?;
    Ok(())
}

fn several_commits(stage: &mut Stage) -> Result<(), Wrong> {
    stage.open()?;
    for bytes in [100, 20_000, 100] {
        stage.commit(bytes)?;
    }
    Ok(stage.close()?)
}

fn vacuum(stage: &mut Stage) -> Result<(), Wrong> {
    stage.db().execute_batch("PRAGMA page_size = 2048; VACUUM")?;
    look(stage)
}
