//! A busy handler that waits for a lock in the same process is woken when the lock is released: SQLite alone would
//! sleep on, up to 100 ms at a time.

mod suite;

use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

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

/// How long after `release` the connection that waits has got what it waits for; the median of some rounds.
fn delay(path: &Path, hold: &str, wait: &str, release: &str) -> Duration {
    let mut delays: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let holder = opened(path);
            run(&holder, hold);
            let ready = Barrier::new(2);
            thread::scope(|scope| {
                let waiting = scope.spawn(|| {
                    let db = opened(path);
                    ready.wait();
                    run(&db, wait);
                    Instant::now()
                });
                ready.wait();
                thread::sleep(HELD);
                run(&holder, release);
                let released = Instant::now();
                waiting.join().expect("no panic").saturating_duration_since(released)
            })
        })
        .collect();
    delays.sort();
    delays[ROUNDS / 2]
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
        let delay = delay(&path, hold, "UPDATE t SET v = v + 1", release);
        // Sleeping on would take 50 ms on the average.
        assert!(delay < Duration::from_millis(25), "{release}: {delay:?}");
    }
    assert_eq!(suite::one::<i64>(&at_rest(&path), "SELECT v FROM t"), 21);
}

/// Many that wait all get their turn, well before their timeout.
#[test]
fn and_all_of_them_get_their_turn() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    run(&suite::open(&path), "CREATE TABLE t(v); INSERT INTO t VALUES (0)");
    let holder = opened(&path);
    run(&holder, "BEGIN IMMEDIATE");
    let begun = Instant::now();
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
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    assert_eq!(suite::one::<i64>(&holder, "SELECT v FROM t"), 60);
}
