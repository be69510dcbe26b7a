//! What recording costs a program that runs many statements.

#![allow(unsafe_code, reason = "tests call SQLite's C interface directly")]

use core::ffi::{c_int, c_void};

use rusqlite::ffi;

use super::*;

/// What no record is going to hold is not read, unless it may be all of the commit (protocol
/// `paper`) or the log is to have all.
#[test]
fn of_a_transaction_of_many_statements_the_first_ones_are_read() {
    let all =
        [("&dash_statements=on", 500), ("&dash_statements=on&dash_statement_text=full", 1000)];
    for (parameters, read) in all {
        let folder = Folder::new();
        let parameters = format!("&journal_mode=wal{parameters}");
        let db = folder.try_open("app.db", &parameters).expect("opens");
        db.execute_batch("CREATE TABLE t(id INTEGER PRIMARY KEY, c); BEGIN").expect("begins");
        for number in 0..1200 {
            insert(&db, number);
        }
        db.execute_batch("COMMIT").expect("commits");
        // The table shows so many, and one of them may say what is missing.
        assert!(newest(&db, "sql").len().abs_diff(read) <= 1, "{parameters}");
        let dropped = reason(&db).contains("700 statements were dropped");
        assert_eq!(dropped, read == 500, "{parameters}: {}", reason(&db));
    }
    let folder = Folder::new();
    let db = folder.try_open("app.db", "&journal_mode=statement&dash_commit=paper").expect("opens");
    db.execute_batch("CREATE TABLE t(id INTEGER PRIMARY KEY, c); BEGIN").expect("begins");
    for number in 0..1200 {
        insert(&db, number);
    }
    db.execute_batch("COMMIT").expect("commits");
    assert!(!reason(&db).contains("dropped"), "{}", reason(&db));
}

unsafe extern "C" fn tick(count: *mut c_void) -> c_int {
    // SAFETY: what the handler was set with.
    unsafe { *count.cast::<u32>() += 1 };
    0
}

/// A host's progress handler comes after so many steps of each statement: one of dash's own, which
/// is short, is none of them.
#[test]
fn reading_values_makes_no_progress_that_the_host_is_told_of() {
    let ticks = |parameters: &str| {
        let folder = Folder::new();
        let db = folder.try_open("app.db", parameters).expect("opens");
        db.execute_batch("CREATE TABLE t(id INTEGER PRIMARY KEY, c)").expect("commits");
        let mut count = 0_u32;
        // SAFETY: an open connection, and a number that outlives the handler.
        unsafe {
            let count = (&raw mut count).cast();
            ffi::sqlite3_progress_handler(db.handle(), 20, Some(tick), count);
        }
        for number in 0..100 {
            insert(&db, number);
        }
        drop(db);
        count
    };
    let without = ticks("&journal_mode=wal");
    assert_eq!(ticks("&journal_mode=wal&dash_statements=on"), without);
}
