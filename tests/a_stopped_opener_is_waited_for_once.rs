//! A process that is stopped while it opens or closes a database keeps the lock by which openers
//! take turns. Connections that come back from rest wait 10 s for that, and then as long as their
//! `busy_timeout` says: SQLite's busy handler counts its own sleeps only, and asked again and again
//! it waited for minutes.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

mod suite;

use std::fs::File;
use std::time::{Duration, Instant};

use dash_testing::locks::lock_first;
use dash_testing::names::{beside, wait_for_rest};
use suite::sql::run;

#[test]
fn by_who_comes_back_from_rest() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    suite::load();
    let db = rusqlite::Connection::open(suite::uri(&path, "&dash_rest=10")).unwrap();
    db.busy_timeout(Duration::from_secs(1)).unwrap();
    run(&db, "CREATE TABLE t(v); INSERT INTO t VALUES (1)");
    wait_for_rest(&path);
    let stopped = File::create(beside(&path, "-dash")).unwrap();
    lock_first(&stopped, libc::F_WRLCK, 1);
    for attempt in 0..2 {
        let asked = Instant::now();
        let error = db.execute_batch("SELECT * FROM t").unwrap_err();
        assert_eq!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::DatabaseBusy));
        // Before, it was 10 s each of the many times that the busy handler asks.
        assert!(asked.elapsed() < Duration::from_secs(100), "{attempt}: {:?}", asked.elapsed());
    }
    drop(stopped);
    assert_eq!(suite::one::<i64>(&db, "SELECT v FROM t"), 1);
}
