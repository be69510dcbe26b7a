//! Threads, processes and other SQLite versions count in one database (`UPDATE t SET v = v + 1`):
//! every count that was acknowledged is there, and none twice. T1 (a lost update behind a stale
//! page cache), T17, T27 (opening while names are exchanged), T11 (readers that come one after the
//! other starve no writer).

mod suite;

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dash_testing::roles::{Role, python, role, say, told};
use rusqlite::Connection;
use suite::sql::{at_rest, run, stat};

const PATIENT: Duration = Duration::from_secs(30);

fn made(path: &Path) {
    let db = suite::open(path);
    run(&db, "CREATE TABLE t(id INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (1, 0), (2, 0)");
}

fn opened(path: &Path, protocol: &str) -> Connection {
    suite::load();
    let db =
        Connection::open(suite::uri(path, &format!("&dash_commit={protocol}"))).expect("opens");
    db.busy_timeout(PATIENT).expect("sets");
    db
}

fn sum(db: &Connection) -> i64 {
    suite::one(db, "SELECT sum(v) FROM t")
}

/// Counts `times`; every other time after a look at the rows, so that there is something cached to
/// be stale.
fn count(db: &Connection, times: i64) {
    for number in 0..times {
        match number % 3 {
            0 => run(db, "UPDATE t SET v = v + 1 WHERE id = 1"),
            1 => {
                let before = sum(db);
                run(db, "BEGIN IMMEDIATE; UPDATE t SET v = v + 1 WHERE id = 2; COMMIT");
                assert!(sum(db) > before);
            }
            _ => {
                run(db, "BEGIN IMMEDIATE");
                let value: i64 = suite::one(db, "SELECT v FROM t WHERE id = 1");
                run(db, &format!("UPDATE t SET v = {value} + 1 WHERE id = 1; COMMIT"));
            }
        }
    }
}

#[test]
fn by_threads() {
    for protocol in ["single", "paper", "exclusive"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        made(&path);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| count(&opened(&path, protocol), 60));
            }
        });
        assert_eq!(sum(&at_rest(&path)), 240, "{protocol}");
    }
}

/// Connections that are handed from thread to thread, as a pool does, also in the middle of a
/// transaction.
#[test]
fn by_connections_of_a_pool() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    made(&path);
    let pool: Vec<Mutex<Connection>> =
        (0..3).map(|_| Mutex::new(opened(&path, "single"))).collect();
    std::thread::scope(|scope| {
        for first in 0..4 {
            let pool = &pool;
            scope.spawn(move || {
                for turn in 0..60 {
                    let db = pool[(first + turn) % pool.len()].lock().unwrap();
                    // Whoever finds a transaction ends it.
                    if db.is_autocommit() && turn % 4 == 0 {
                        run(&db, "BEGIN IMMEDIATE; UPDATE t SET v = v + 1 WHERE id = 2");
                    } else {
                        run(&db, "UPDATE t SET v = v + 1 WHERE id = 1");
                    }
                    if !db.is_autocommit() && turn % 4 != 0 {
                        run(&db, "COMMIT");
                    }
                    if !db.is_autocommit() {
                        drop(db);
                        let found = pool[(first + turn) % pool.len()].lock().unwrap();
                        if !found.is_autocommit() {
                            run(&found, "COMMIT");
                        }
                    }
                }
            });
        }
    });
    drop(pool);
    assert_eq!(sum(&at_rest(&path)), 240);
}

/// Other processes, each with threads of its own, and Debian's SQLite from Python, while a stock
/// reader looks on.
#[test]
fn by_processes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    made(&path);
    let mut expected = 0;
    let mut processes: Vec<Role> =
        (0..2).map(|_| Role::start("a_process_that_counts", &path)).collect();
    expected += 2 * 2 * 60;
    let script = "
db = open(sys.argv[2])
for number in range(60):
    db.execute('UPDATE t SET v = v + 1 WHERE id = ?', (1 + number % 2,))
    assert db.execute('PRAGMA dash_commit').fetchone() == ('single',)
";
    if let Some(mut command) = python(script, &[&path]) {
        processes.push(Role::spawn(&mut command));
        expected += 60;
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let stock = suite::stock(&path);
            stock.busy_timeout(PATIENT).unwrap();
            while !done.load(Ordering::SeqCst) {
                suite::check(&stock);
            }
        });
        count(&opened(&path, "single"), 60);
        expected += 60;
        processes.into_iter().for_each(Role::finish);
        done.store(true, Ordering::SeqCst);
    });
    let db = suite::open(&path);
    assert_eq!(sum(&db), expected);
    drop(db);
    assert_eq!(sum(&at_rest(&path)), expected);
}

#[test]
#[ignore = "a role of the test above"]
fn a_process_that_counts() {
    let Some(path) = role("a_process_that_counts") else { return };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| count(&opened(path.as_ref(), "single"), 60));
        }
    });
}

/// T27: each count by a connection of its own, which is first or last more often than not.
#[test]
fn by_connections_that_come_and_go() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    made(&path);
    let processes: Vec<Role> =
        (0..3).map(|_| Role::start("a_process_that_comes_and_goes", &path)).collect();
    processes.into_iter().for_each(Role::finish);
    assert_eq!(sum(&at_rest(&path)), 3 * 50);
}

#[test]
#[ignore = "a role of the test above"]
fn a_process_that_comes_and_goes() {
    let Some(path) = role("a_process_that_comes_and_goes") else { return };
    for _ in 0..50 {
        run(&opened(path.as_ref(), "single"), "UPDATE t SET v = v + 1 WHERE id = 1");
    }
}

/// Killed in the middle, again and again, in two processes in turn: nothing acknowledged goes, and
/// nothing is counted twice.
#[test]
fn by_processes_that_are_killed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    made(&path);
    let steady = opened(&path, "single");
    let mut least = 0;
    for round in 0..10_u64 {
        let mut child = Role::start("a_process_that_says_what_it_counted", &path);
        for _ in 0..5 + round {
            let said: i64 = child.hear("acknowledged").parse().expect("a number");
            least = least.max(said);
        }
        count(&steady, 3);
        std::thread::sleep(Duration::from_micros(round * 61));
        child.kill();
        // The next writer completes a commit that was durable when its process ended.
        run(&steady, "BEGIN IMMEDIATE; COMMIT");
        let now = sum(&steady);
        assert!(now >= least, "round {round}: {now}, but {least} was acknowledged");
        suite::check(&steady);
        count(&steady, 3);
        assert_eq!(sum(&steady), now + 3, "round {round}");
        least = now + 3;
    }
    drop(steady);
    assert_eq!(sum(&at_rest(&path)), least);
}

#[test]
#[ignore = "a role of the test above"]
fn a_process_that_says_what_it_counted() {
    let Some(path) = role("a_process_that_says_what_it_counted") else { return };
    let db = opened(path.as_ref(), "single");
    loop {
        run(&db, "BEGIN IMMEDIATE; UPDATE t SET v = v + 1 WHERE id = 1");
        let sum = sum(&db);
        run(&db, "COMMIT");
        say("acknowledged", sum);
    }
}

/// Without a timeout a second writer is told at once, and with one it waits for a writer in another
/// process.
#[test]
fn and_busy_timeout_means_what_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    made(&path);
    let mut holder = Role::start("a_process_that_holds_the_lock", &path);
    holder.hear("holding");
    let db = opened(&path, "single");
    for timeout in [0, 100] {
        db.busy_timeout(Duration::from_millis(timeout)).unwrap();
        let begun = Instant::now();
        let error = db.execute_batch("UPDATE t SET v = 100").unwrap_err();
        assert_eq!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::DatabaseBusy));
        assert!(begun.elapsed() >= Duration::from_millis(timeout / 2));
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    }
    assert_eq!(sum(&db), 0);
    db.busy_timeout(PATIENT).unwrap();
    holder.tell("commit");
    run(&db, "UPDATE t SET v = v + 1 WHERE id = 1");
    holder.finish();
    assert_eq!(sum(&db), 11);
}

#[test]
#[ignore = "a role of the test above"]
fn a_process_that_holds_the_lock() {
    let Some(path) = role("a_process_that_holds_the_lock") else { return };
    let db = opened(path.as_ref(), "single");
    run(&db, "BEGIN IMMEDIATE; UPDATE t SET v = 10 WHERE id = 2");
    say("holding", 1);
    told();
    run(&db, "COMMIT");
}

/// T11: connections of stock SQLite in loops, so that one or the other is always in the middle of
/// reading.
#[test]
fn while_readers_come_without_a_pause() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    made(&path);
    run(&suite::open(&path), "CREATE TABLE big(x); INSERT INTO big VALUES (zeroblob(100000))");
    let done = AtomicBool::new(false);
    // The last one to close: a stock reader that stays longer, and has the former copy, would have
    // the database protected.
    let db = opened(&path, "single");
    std::thread::scope(|scope| {
        for dash in [false, false, true] {
            let (path, done) = (&path, &done);
            scope.spawn(move || {
                let db = if dash { suite::open(path) } else { suite::stock(path) };
                db.busy_timeout(PATIENT).unwrap();
                let mut last = 0;
                while !done.load(Ordering::SeqCst) {
                    run(&db, "BEGIN; SELECT count(*), max(length(hex(x))) FROM big");
                    let now = sum(&db);
                    // A stock connection may lag by one commit (T12).
                    assert!(now >= last - 1, "{now} after {last}");
                    last = last.max(now);
                    run(&db, "COMMIT");
                }
            });
        }
        for _ in 0..100 {
            run(&db, "UPDATE t SET v = v + 1 WHERE id = 1");
        }
        assert_eq!(stat(&db, "commits"), 100);
        done.store(true, Ordering::SeqCst);
    });
    drop(db);
    assert_eq!(sum(&at_rest(&path)), 100);
}
