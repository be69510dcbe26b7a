//! Rails, sqlite3-ruby and others wait for a lock by a busy handler of their own, which asks again
//! every few milliseconds. Whether it goes on is known to them alone: the error log has who is in
//! the way once a second at most, and `dash_last_error()` whenever it is asked.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

mod suite;

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
