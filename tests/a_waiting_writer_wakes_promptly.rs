//! A busy handler that waits for a lock in the same process is woken when the lock is released:
//! SQLite alone would sleep on, up to 100 ms at a time.

mod suite;

use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use rusqlite::Connection;
use suite::sql::{at_rest, run};

/// SQLite's handler sleeps for 100 ms at a time by then.
const HELD: Duration = Duration::from_millis(350);
const ROUNDS: usize = 7;

fn opened(path: &Path) -> Connection {
    let db = suite::open(path);
    db.busy_timeout(Duration::from_secs(30)).expect("sets");
    db
}

/// In how many of some rounds the connection that waits is woken by `release`.
fn woken(path: &Path, hold: &str, wait: &str, release: &str) -> usize {
    let round = |_: &usize| {
        let holder = opened(path);
        run(&holder, hold);
        let ready = Barrier::new(2);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let db = opened(path);
                ready.wait();
                run(&db, wait);
                suite::one::<i64>(&db, "SELECT value FROM dash_stats WHERE name = 'wakeups'") == 1
            });
            ready.wait();
            thread::sleep(HELD);
            run(&holder, release);
            waiting.join().expect("no panic")
        })
    };
    (0..ROUNDS).filter(round).count()
}

#[test]
fn when_another_writer_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    run(&suite::open(&path), "CREATE TABLE t(v); INSERT INTO t VALUES (0)");
    for (hold, release) in [
        ("BEGIN IMMEDIATE; UPDATE t SET v = v + 1", "COMMIT"),
        ("BEGIN EXCLUSIVE; UPDATE t SET v = v + 5", "ROLLBACK"),
    ] {
        let woken = woken(&path, hold, "UPDATE t SET v = v + 1", release);
        // One may have looked again by itself just then.
        assert!(woken > ROUNDS / 2, "{release}: {woken} of {ROUNDS}");
    }
    assert_eq!(suite::one::<i64>(&at_rest(&path), "SELECT v FROM t"), 21);
}

/// Many that wait all get their turn before their timeout.
#[test]
fn and_all_of_them_get_their_turn() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    run(&suite::open(&path), "CREATE TABLE t(v); INSERT INTO t VALUES (0)");
    let holder = opened(&path);
    run(&holder, "BEGIN IMMEDIATE");
    thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| {
                let db = opened(&path);
                for _ in 0..5 {
                    run(&db, "BEGIN IMMEDIATE; UPDATE t SET v = v + 1; COMMIT");
                }
            });
        }
        thread::sleep(HELD);
        run(&holder, "COMMIT");
    });
    assert_eq!(suite::one::<i64>(&holder, "SELECT v FROM t"), 60);
}
