//! Rails, sqlite3-ruby and others wait for a lock by a busy handler of their own, which asks again
//! every few milliseconds. Whether it goes on is known to them alone: the error log has who is in
//! the way once a second at most, and `dash_last_error()` whenever it is asked.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

mod suite;

use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use suite::error_log::{listen, log};
use suite::parts::last_error;
use suite::sql::run;

fn by_the_thread(tries: i32) -> bool {
    std::thread::sleep(Duration::from_millis(2));
    tries < 100
}

/// `xSleep` is called, but not as SQLite's own handler does.
#[expect(unsafe_code, reason = "rusqlite has no call for it")]
fn by_sqlite(tries: i32) -> bool {
    // SAFETY: it takes a number, and may be called at any time once SQLite is initialised.
    unsafe { rusqlite::ffi::sqlite3_sleep(3) };
    tries < 100
}

fn waits(db: &mut Connection, handler: fn(i32) -> bool) {
    db.busy_handler(Some(handler)).unwrap();
    db.execute_batch("INSERT INTO t VALUES (1)").unwrap_err();
}

#[test]
fn a_busy_handler_of_a_programs_own_fills_no_log() {
    listen();
    for mode in ["wal", "shadow", "delete"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        let open = || suite::open_dash(path.as_os_str(), &format!("&journal_mode={mode}")).unwrap();
        let writer = open();
        run(&writer, "CREATE TABLE t(x); BEGIN IMMEDIATE");
        for handler in [by_the_thread, by_sqlite] {
            let mut db = open();
            log();
            let begun = Instant::now();
            let most = |more| usize::try_from(begun.elapsed().as_secs()).unwrap() + more;
            waits(&mut db, handler);
            let before = log();
            assert!(before.len() <= most(1), "{mode}: {before:?}");
            let said = last_error();
            assert!(said.contains("app.db is locked"), "{mode}: {said}");
            waits(&mut db, handler);
            drop(db);
            let heard = log();
            assert!(heard.len() <= most(2), "{mode}: {heard:?}");
        }
    }
}

/// A reader that meets the wal-index while it is changed asks for the write lock. SQLite looks
/// again by itself where that is taken: no busy handler is asked, and nobody is refused.
#[test]
fn nor_does_a_reader_that_looks_again() {
    listen();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let [db, writer] =
        [(), ()].map(|()| suite::open_dash(path.as_os_str(), "&journal_mode=wal").unwrap());
    run(&db, "CREATE TABLE t(x); INSERT INTO t VALUES (1)");
    run(&writer, "BEGIN IMMEDIATE; INSERT INTO t VALUES (2)");
    let index = dash_testing::names::beside(&path, "-shm");
    let index = std::fs::OpenOptions::new().read(true).write(true).open(index).unwrap();
    // In the first of two copies of its header.
    let (mut byte, place) = ([0], 8);
    index.read_exact_at(&mut byte, place).unwrap();
    index.write_all_at(&[byte[0] ^ 1], place).unwrap();
    log();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            index.write_all_at(&byte, place).unwrap();
        });
        assert_eq!(suite::one::<i64>(&db, "SELECT count(*) FROM t"), 1);
    });
    run(&db, "SELECT x FROM t");
    assert_eq!(log(), [""; 0]);
}
