//! Programs that a function or SQLite itself runs inside a statement: they may begin and end
//! transactions, be prepared again, or be left half-read. The record says that they were there, and
//! nothing else.

#![allow(unsafe_code, reason = "tests call SQLite's C interface directly")]

use core::ffi::CStr;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use rusqlite::ffi;
use rusqlite::functions::FunctionFlags;

use super::*;

/// [`database`], with a function `run` that runs a text.
fn running(folder: &Folder) -> Connection {
    let db = database(folder);
    db.create_scalar_function("run", 1, FunctionFlags::SQLITE_UTF8, |context| {
        // SAFETY: used during the call only.
        let db = unsafe { context.get_connection() }?;
        db.execute_batch(&context.get::<String>(0)?).map(|()| 0)
    })
    .expect("registers");
    db
}

/// The newest commit has `sql`, with programs inside. The next one has nothing of it.
fn has_programs_inside(db: &Connection, sql: &[&str]) {
    assert_eq!(newest(db, "sql"), sql);
    assert_eq!(reason(db), Reason::OtherProgram.sentence(), "{sql:?}");
    insert(db, "next");
    assert_eq!((newest(db, "parameters"), reason(db)), (vec!["'next'".into()], "-".into()));
}

#[test]
fn a_function_may_begin_and_end_transactions() {
    let folder = Folder::new();
    let db = running(&folder);
    for whole in [
        "SELECT run('BEGIN; INSERT INTO t(c) VALUES (1); COMMIT')",
        "SELECT run('BEGIN IMMEDIATE; INSERT INTO t(c) VALUES (1); END')",
        "SELECT run('SAVEPOINT s; INSERT INTO t(c) VALUES (1); RELEASE s')",
    ] {
        db.execute_batch(whole).expect("commits");
        has_programs_inside(&db, &[whole]);
    }
    for parts in [
        ["BEGIN", "INSERT INTO t(c) VALUES (1)", "SELECT run('COMMIT')"],
        ["SELECT run('BEGIN')", "INSERT INTO t(c) VALUES (1)", "COMMIT"],
        ["SELECT run('BEGIN')", "INSERT INTO t(c) VALUES (1)", "SELECT run('COMMIT')"],
        ["SELECT run('SAVEPOINT s')", "INSERT INTO t(c) VALUES (1)", "RELEASE s"],
    ] {
        for part in parts {
            db.execute_batch(part).expect("runs");
        }
        let shown = parts.into_iter().filter(|part| !["BEGIN", "COMMIT"].contains(part));
        has_programs_inside(&db, &shown.collect::<Vec<_>>());
    }
}

#[test]
fn what_was_rolled_back_before_a_function_writes_is_not_shown() {
    let folder = Folder::new();
    let db = running(&folder);
    db.execute_batch("BEGIN; INSERT INTO t(c) VALUES (1); ROLLBACK").expect("rolls back");
    let sql = "SELECT run('INSERT INTO t(c) VALUES (2)')";
    db.execute_batch(sql).expect("commits");
    has_programs_inside(&db, &[sql]);
}

#[test]
fn a_pragma_may_run_statements() {
    let folder = Folder::new();
    let db = database(&folder);
    db.execute_batch("CREATE INDEX i ON t(c); INSERT INTO t(c) VALUES (1), (2)").expect("commits");
    // All tables, whatever this connection has asked of them so far.
    let optimize = "PRAGMA optimize=0x10002";
    db.execute_batch(optimize).expect("commits");
    has_programs_inside(&db, &[optimize]);
}

/// A full-text index writes when its transaction is committed.
#[test]
fn an_open_query_runs_nothing_of_what_a_commit_does() {
    let folder = Folder::new();
    let db = database(&folder);
    db.execute_batch("CREATE VIRTUAL TABLE f USING fts5(x); INSERT INTO t(c) VALUES (1), (2)")
        .expect("commits");
    db.execute_batch("BEGIN; INSERT INTO f VALUES ('a')").expect("writes");
    let mut query = db.prepare("SELECT id FROM t").expect("prepares");
    let mut rows = query.query([]).expect("queries");
    rows.next().expect("a row");
    db.execute_batch("COMMIT").expect("commits");
    assert_eq!(newest(&db, "sql"), ["INSERT INTO f VALUES ('a')"]);
    drop(rows);
    has_programs_inside(&db, &["INSERT INTO f VALUES ('a')"]);
}

/// A statement that a function has prepared, and runs each time that it is called.
struct Prepared(AtomicPtr<ffi::sqlite3_stmt>);

impl Prepared {
    fn prepare(&self, db: &Connection, sql: &CStr) {
        let mut raw = null_mut();
        // SAFETY: an open connection, a C string, and a place for the statement.
        let code = unsafe {
            ffi::sqlite3_prepare_v2(db.handle(), sql.as_ptr(), -1, &raw mut raw, null_mut())
        };
        assert_eq!(code, 0);
        self.0.store(raw, Ordering::Relaxed);
    }

    fn call(&self, call: unsafe extern "C" fn(*mut ffi::sqlite3_stmt) -> i32) -> i32 {
        // SAFETY: prepared, and finalized by the last call of the test only.
        unsafe { call(self.0.load(Ordering::Relaxed)) }
    }
}

#[test]
fn what_a_function_runs_may_be_prepared_again() {
    static INNER: Prepared = Prepared(AtomicPtr::new(null_mut()));
    let folder = Folder::new();
    let db = database(&folder);
    INNER.prepare(&db, c"INSERT INTO t(c) VALUES (5)");
    db.create_scalar_function("again", 0, FunctionFlags::SQLITE_UTF8, |_| {
        let code = INNER.call(ffi::sqlite3_step);
        INNER.call(ffi::sqlite3_reset);
        Ok(code)
    })
    .expect("registers");
    for table in ["a", "b", "c"] {
        db.execute_batch(&format!("CREATE TABLE {table}(x)")).expect("changes the schema");
        assert_eq!(number(&db, "SELECT again()"), i64::from(ffi::SQLITE_DONE));
        has_programs_inside(&db, &["SELECT again()"]);
    }
    INNER.call(ffi::sqlite3_finalize);
}

#[test]
fn what_a_function_runs_may_be_left_half_read() {
    static INNER: Prepared = Prepared(AtomicPtr::new(null_mut()));
    let folder = Folder::new();
    let db = database(&folder);
    INNER.prepare(&db, c"INSERT INTO t(c) VALUES (5), (6) RETURNING id");
    db.create_scalar_function("leave", 0, FunctionFlags::SQLITE_UTF8, |_| {
        Ok(INNER.call(ffi::sqlite3_step))
    })
    .expect("registers");
    let before = commits(&db);
    assert_eq!(number(&db, "SELECT leave()"), i64::from(ffi::SQLITE_ROW));
    assert_eq!(commits(&db), before);
    INNER.call(ffi::sqlite3_reset);
    assert_eq!(commits(&db), before + 1, "the reset has committed");
    has_programs_inside(&db, &["SELECT leave()"]);
    // What is written meanwhile joins the transaction.
    number(&db, "SELECT leave()");
    insert(&db, 7);
    INNER.call(ffi::sqlite3_finalize);
    has_programs_inside(&db, &["SELECT leave()", "INSERT INTO t(c) VALUES (?)"]);
}
