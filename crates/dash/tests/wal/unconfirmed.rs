//! Protocol `paper`, and statements that fail within a transaction which goes on: nothing is in
//! their way when they are run again, so what holds them is carried by frames (`STATEMENT-6`).

#![allow(unsafe_code, reason = "tests call SQLite's C interface directly")]

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::ffi;

use super::common::*;

const PAPER: &str = "&journal_mode=statement&dash_commit=paper";

/// A database in the protocol, with a row, and whose log is in use.
fn begun(folder: &Folder, parameters: &str) -> Connection {
    let db = folder.try_open("app.db", &format!("{PAPER}{parameters}")).expect("opens");
    db.execute_batch(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, v TEXT UNIQUE); CREATE TABLE z(x);
         INSERT INTO t VALUES (1, 'first'); INSERT INTO z VALUES (0)",
    )
    .expect("commits");
    db
}

fn carried(db: &Connection) -> i64 {
    number(db, "SELECT value FROM dash_stats WHERE name = 'carried'")
}

fn not_carried(db: &Connection) -> String {
    text(db, "SELECT value FROM dash_stats WHERE name = 'not_carried'")
}

/// Runs a transaction in which a statement fails by `fail`, and commits it: by frames.
fn goes_by_frames(db: &Connection, fail: impl FnOnce(&Connection)) {
    let before = (carried(db), unconfirmed(db));
    db.execute_batch("BEGIN IMMEDIATE; INSERT INTO z VALUES (1)").expect("writes");
    fail(db);
    db.execute_batch("COMMIT").expect("commits");
    assert_eq!((carried(db), unconfirmed(db)), (before.0, before.1 + 1), "{}", not_carried(db));
    // The next one is carried again.
    db.execute_batch("BEGIN; INSERT INTO z VALUES (2); COMMIT").expect("commits");
    assert_eq!(carried(db), before.0 + 1, "{}", not_carried(db));
}

fn unconfirmed(db: &Connection) -> u64 {
    let said = not_carried(db);
    let count = said.split(", ").find_map(|part| part.strip_prefix("unconfirmed "));
    count.map_or(0, |count| count.parse().expect("a number"))
}

#[test]
fn a_connection_that_may_not_write_for_a_while() {
    let folder = Folder::new();
    let db = begun(&folder, "");
    goes_by_frames(&db, |db| {
        db.execute_batch("PRAGMA query_only=ON").expect("ok");
        db.execute_batch("DELETE FROM t WHERE id = 1").expect_err("it may not write");
        db.execute_batch("PRAGMA query_only=OFF").expect("ok");
    });
    assert_eq!(number(&db, "SELECT count(*) FROM t"), 1);
}

#[test]
fn a_statement_that_the_schema_no_longer_has_room_for() {
    let folder = Folder::new();
    let db = begun(&folder, "");
    let mut insert = db.prepare("INSERT INTO t VALUES (?, ?)").expect("prepares");
    insert.execute((2, "second")).expect("commits");
    let other = folder.try_open("app.db", "&journal_mode=wal").expect("opens");
    other.execute_batch("ALTER TABLE t ADD COLUMN w").expect("commits");
    goes_by_frames(&db, |_| {
        insert.execute((3, "third")).expect_err("there is another column by now");
    });
}

/// Denies each INSERT while the flag is set that it gets.
unsafe extern "C" fn denies(
    flag: *mut c_void,
    action: c_int,
    _: *const c_char,
    _: *const c_char,
    _: *const c_char,
    _: *const c_char,
) -> c_int {
    // SAFETY: the test's own flag, which outlives its connection.
    let is_set = unsafe { &*flag.cast::<AtomicBool>() }.load(Ordering::Relaxed);
    if is_set && action == ffi::SQLITE_INSERT { ffi::SQLITE_DENY } else { ffi::SQLITE_OK }
}

#[test]
fn a_statement_that_an_authorizer_denies_when_it_is_prepared_again() {
    let (folder, flag) = (Folder::new(), AtomicBool::new(false));
    let db = begun(&folder, "");
    let place = (&raw const flag).cast_mut().cast();
    // SAFETY: an open connection of this thread's, and what its authorizer needs.
    unsafe { ffi::sqlite3_set_authorizer(db.handle(), Some(denies), place) };
    let mut insert = db.prepare("INSERT INTO t VALUES (?, ?)").expect("prepares");
    insert.execute((2, "second")).expect("commits");
    let other = folder.try_open("app.db", "&journal_mode=wal").expect("opens");
    other.execute_batch("CREATE TABLE q(x)").expect("commits");
    goes_by_frames(&db, |_| {
        flag.store(true, Ordering::Relaxed);
        insert.execute((3, "third")).expect_err("it is denied");
        flag.store(false, Ordering::Relaxed);
    });
}

unsafe extern "C" {
    fn sqlite3_prepare(
        db: *mut ffi::sqlite3,
        sql: *const c_char,
        length: c_int,
        statement: *mut *mut ffi::sqlite3_stmt,
        tail: *mut *const c_char,
    ) -> c_int;
}

/// What `sqlite3_prepare` made is not prepared again: SQLite says that the schema has changed.
#[test]
fn a_statement_that_is_not_prepared_again() {
    let folder = Folder::new();
    let db = begun(&folder, "");
    let mut insert = null_mut();
    let sql = c"INSERT INTO t VALUES (3, 'third')".as_ptr();
    // SAFETY: an open connection of this thread's, a C string, and a place for the statement.
    let code = unsafe { sqlite3_prepare(db.handle(), sql, -1, &raw mut insert, null_mut()) };
    assert_eq!(code, ffi::SQLITE_OK);
    let other = folder.try_open("app.db", "&journal_mode=wal").expect("opens");
    other.execute_batch("CREATE TABLE q(x)").expect("commits");
    goes_by_frames(&db, |_| {
        // SAFETY: the statement of above, which is finished once.
        let ends = unsafe { (ffi::sqlite3_step(insert), ffi::sqlite3_finalize(insert)) };
        assert_eq!(ends, (ffi::SQLITE_ERROR, ffi::SQLITE_SCHEMA));
    });
}

#[test]
fn a_table_that_another_connection_with_the_same_cache_reads() {
    let folder = Folder::new();
    let first = begun(&folder, "");
    let open = || folder.try_open("app.db", &format!("{PAPER}&cache=shared")).expect("opens");
    let (db, reader) = (open(), open());
    for number in 0..4 {
        db.execute("INSERT INTO z VALUES (?)", [number]).expect("commits");
    }
    assert!(carried(&db) > 0, "{}", not_carried(&first));
    let mut select = reader.prepare("SELECT * FROM t").expect("prepares");
    let mut rows = select.query([]).expect("reads");
    assert!(rows.next().expect("reads").is_some());
    goes_by_frames(&db, |db| {
        db.execute_batch("INSERT INTO t VALUES (2, 'second')").expect_err("the table is locked");
    });
}

/// The row that would have given way is there.
#[test]
fn a_limit_of_pages() {
    let folder = Folder::new();
    let db = begun(&folder, "");
    let pages = number(&db, "PRAGMA page_count");
    db.execute_batch(&format!("PRAGMA max_page_count={}", pages + 1)).expect("ok");
    goes_by_frames(&db, |db| {
        let replace = format!("REPLACE INTO t VALUES (2, '{}')", "x".repeat(20_000));
        db.execute_batch(&replace).expect_err("there is no room");
    });
}

/// Of what it changed nothing is told before the transaction ends.
#[test]
fn what_changed_no_row_is_not_told_from_that() {
    let folder = Folder::new();
    let db = begun(&folder, "");
    for sql in [
        "DELETE FROM t WHERE id = 7",
        "UPDATE t SET v = 'x' WHERE id = 7",
        "INSERT OR IGNORE INTO t VALUES (1, 'again')",
    ] {
        goes_by_frames(&db, |db| db.execute_batch(sql).expect("runs"));
    }
    for sql in ["INSERT INTO t VALUES (1, 'again')", "INSERT OR FAIL INTO t VALUES (1, 'again')"] {
        goes_by_frames(&db, |db| drop(db.execute_batch(sql).expect_err("there is one")));
    }
}

#[test]
fn each_step_that_changed_a_row_is_carried() {
    let folder = Folder::new();
    let db = begun(&folder, "");
    for sql in [
        "INSERT INTO t VALUES (2, 'alone')",
        "BEGIN; REPLACE INTO t VALUES (3, 'alone'); UPDATE OR REPLACE t SET id = 3 WHERE id = 1; COMMIT",
        "SAVEPOINT s; DELETE FROM t WHERE id = 3; RELEASE s",
        "BEGIN; SAVEPOINT s; INSERT INTO t VALUES (4, 'in'); RELEASE s; DELETE FROM t WHERE id = 4; COMMIT",
        "PRAGMA locking_mode=EXCLUSIVE; BEGIN; INSERT INTO t VALUES (5, 'five'); UPDATE t SET v = 5 WHERE id = 5; COMMIT",
    ] {
        let before = carried(&db);
        db.execute_batch(sql).expect(sql);
        assert_eq!(carried(&db), before + 1, "{sql}: {}", not_carried(&db));
    }
    assert_eq!(not_carried(&db).matches("unconfirmed").count(), 0);
}
