//! dash keeps the statements by which it reads values, and is in no host's way by that.

#![allow(unsafe_code, reason = "tests call SQLite's C interface directly")]

use std::ptr::null_mut;

use rusqlite::{ffi, params_from_iter};

use super::*;

/// The statements that a connection has, as SQLite shows them to a host.
fn statements(db: &Connection) -> Vec<*mut ffi::sqlite3_stmt> {
    let mut all = Vec::new();
    let mut next = null_mut();
    loop {
        // SAFETY: an open connection of this thread's, and null or one of its statements.
        next = unsafe { ffi::sqlite3_next_stmt(db.handle(), next) };
        if next.is_null() {
            return all;
        }
        all.push(next);
    }
}

fn finish_all(db: &Connection) {
    for statement in statements(db) {
        // SAFETY: a statement that is there, and that nobody but dash knows of.
        unsafe { ffi::sqlite3_finalize(statement) };
    }
}

/// With one, two, and so on parameters, so that more are used than are kept.
fn insert_with(db: &Connection, parameters: usize) {
    let places = vec!["?"; parameters].join("+");
    let values = (1..=parameters).map(|value| i64::try_from(value).expect("a number"));
    db.execute(&format!("INSERT INTO t(c) VALUES ({places})"), params_from_iter(values))
        .expect("commits");
    assert_eq!(newest(db, "sql"), [format!("INSERT INTO t(c) VALUES ({places})")]);
    let values: Vec<_> = (1..=parameters).map(|value| value.to_string()).collect();
    assert_eq!(newest(db, "parameters").concat(), values.join(", "));
}

fn insert_with_many(db: &Connection) {
    (1..=9).chain([1, 3, 9, 1]).for_each(|parameters| insert_with(db, parameters));
}

#[test]
fn some_are_kept_and_a_host_can_close_its_connection() {
    let folder = Folder::new();
    let db = database(&folder);
    assert_eq!(statements(&db).len(), 0);
    insert_with_many(&db);
    assert!((1..=4).contains(&statements(&db).len()), "{}", statements(&db).len());
    // It is `sqlite3_close`, which refuses while there are statements.
    db.close().expect("closes");
}

/// As some hosts do before they close a connection, and others at any time.
#[test]
fn a_host_may_finish_all_that_it_finds() {
    let folder = Folder::new();
    let db = database(&folder);
    for _ in 0..3 {
        insert_with_many(&db);
        finish_all(&db);
        // Others are where they were.
        let own: Vec<_> = (0..9).map(|_| db.prepare("SELECT ?1, ?2").expect("prepares")).collect();
        insert_with_many(&db);
        drop(own);
    }
    finish_all(&db);
    db.close().expect("closes");
}

#[test]
fn a_host_that_has_taken_the_hook_closes_its_connection_too() {
    let folder = Folder::new();
    let db = database(&folder);
    insert_with_many(&db);
    // SAFETY: an open connection of this thread's.
    assert_eq!(unsafe { ffi::sqlite3_trace_v2(db.handle(), 0, None, null_mut()) }, 0);
    db.close().expect("closes");
}

#[test]
fn one_that_could_not_be_closed_goes_on() {
    let folder = Folder::new();
    let db = database(&folder);
    insert_with_many(&db);
    let open = db.prepare("SELECT * FROM t").expect("prepares");
    // SAFETY: an open connection; it stays open, as it has a statement.
    assert_eq!(unsafe { ffi::sqlite3_close(db.handle()) }, ffi::SQLITE_BUSY);
    assert_eq!(statements(&db).len(), 1);
    insert_with_many(&db);
    drop(open);
    db.close().expect("closes");
}

#[test]
fn nothing_that_changes_the_schema_is_in_their_way() {
    let folder = Folder::new();
    let db = database(&folder);
    for round in 0..3 {
        insert_with_many(&db);
        db.execute_batch(&format!(
            "CREATE TABLE u{round}(x); ATTACH ':memory:' AS a; DETACH a; VACUUM; BEGIN; INSERT INTO t(c) VALUES (1); ROLLBACK; \
             ANALYZE; REINDEX"
        ))
        .expect("changes it");
    }
    insert_with_many(&db);
    db.close().expect("closes");
}

/// A host's own table in the place of the one by which they are let go.
#[test]
fn a_table_of_the_same_name_is_not_taken_for_it() {
    let folder = Folder::new();
    let db = recording(&folder);
    db.execute_batch("CREATE TABLE dash_stats(x); CREATE TABLE t(id INTEGER PRIMARY KEY, c)")
        .expect("commits");
    db.execute("INSERT INTO t(c) VALUES (?1)", [1]).expect("commits");
    assert_eq!(statements(&db).len(), 0, "they could not be let go");
    insert_with_many(&db);
    db.close().expect("closes");
}
