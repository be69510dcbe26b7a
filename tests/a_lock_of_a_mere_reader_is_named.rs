//! SEC11: who may only read `app.db-dash` can hold a read lock there for as long as it likes.
//! Openers waited 13 seconds for that, and then spoke of a stock process that writes. Now they say
//! at once what is in the way.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

mod suite;

use std::fs::File;
use std::time::{Duration, Instant};

use dash_testing::locks::lock_first;
use dash_testing::names::beside;
use suite::sql::run;

#[test]
fn a_lock_of_a_mere_reader_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let first = suite::open(&path);
    run(&first, "CREATE TABLE t(v); INSERT INTO t VALUES (1)");
    let reader = File::open(beside(&path, "-dash")).unwrap();
    lock_first(&reader, libc::F_RDLCK, 2);
    let begun = Instant::now();
    let error = rusqlite::Connection::open(suite::uri(&path, "")).unwrap_err();
    let took = begun.elapsed();
    let rusqlite::Error::SqliteFailure(code, _) = &error else { panic!("{error}") };
    assert_eq!(code.code, rusqlite::ErrorCode::DatabaseBusy, "{error}");
    let said = suite::parts::last_error();
    assert!(said.contains("holds a read lock on app.db-dash"), "{said}");
    assert!(took < Duration::from_secs(8), "{took:?}");
    drop(reader);
    let second = suite::open(&path);
    assert_eq!(suite::one::<i64>(&second, "SELECT v FROM t"), 1);
}
