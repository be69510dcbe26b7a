//! `PRAGMA synchronous`: in mode shadow every commit is durable from NORMAL up, with one flush
//! (three under `paper`), also where the host prefers less; OFF flushes nothing, and is counted as
//! that. In mode wal NORMAL flushes nothing, either. A kill takes no commit at any level.

mod suite;

use rusqlite::Connection;
use suite::peers::{Part, Session};
use suite::sql::{at_rest, run, stat};

/// Commits small enough to stay within regions that are covered already.
const COMMITS: i64 = 50;

fn opened(path: &std::path::Path, protocol: &str) -> Connection {
    suite::load();
    let db =
        Connection::open(suite::uri(path, &format!("&dash_commit={protocol}"))).expect("opens");
    run(&db, "CREATE TABLE IF NOT EXISTS t(id INTEGER PRIMARY KEY, v)");
    // The first commits make the shadow, and learn the regions.
    for _ in 0..5 {
        run(&db, "INSERT INTO t(v) VALUES (0)");
    }
    db
}

/// Flushes, unflushed commits and directory flushes of `COMMITS` commits.
fn cost(db: &Connection) -> [i64; 3] {
    let names = ["flushes", "unflushed_commits", "directory_flushes"];
    let before = names.map(|name| stat(db, name));
    let commits = stat(db, "commits");
    for number in 0..COMMITS {
        run(db, &format!("INSERT INTO t(v) VALUES ({number})"));
    }
    assert_eq!(stat(db, "commits") - commits, COMMITS);
    let after = names.map(|name| stat(db, name));
    [0, 1, 2].map(|which| after[which] - before[which])
}

#[test]
fn normal_full_and_extra_flush_once_and_off_never() {
    for (protocol, flushes) in [("single", 1), ("exclusive", 2), ("paper", 3)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        let db = opened(&path, protocol);
        for level in ["NORMAL", "FULL", "EXTRA"] {
            run(&db, &format!("PRAGMA synchronous = {level}"));
            // The paper's directory flush is one more a commit (F9).
            let [flushed, unflushed, _] = cost(&db);
            assert_eq!((flushed, unflushed), (COMMITS * flushes, 0), "{protocol} {level}");
        }
        run(&db, "PRAGMA synchronous = OFF");
        let [flushed, unflushed, _] = cost(&db);
        assert_eq!(unflushed, COMMITS, "{protocol} OFF");
        assert!(flushed <= COMMITS * (flushes - 1), "{protocol} OFF: {flushed}");
        drop(db);
        assert_eq!(suite::one::<i64>(&at_rest(&path), "SELECT count(*) FROM t"), 5 + 4 * COMMITS);
    }
}

/// The steady state of `single` asks nothing of the directory.
#[test]
fn one_flush_a_commit_is_all() {
    let folder = tempfile::tempdir().unwrap();
    let db = opened(&folder.path().join("app.db"), "single");
    assert_eq!(cost(&db), [COMMITS, 0, 0]);
    // A transaction that changes nothing costs nothing.
    let before = stat(&db, "flushes");
    run(
        &db,
        "BEGIN IMMEDIATE; COMMIT; UPDATE t SET v = 1 WHERE id < 0; BEGIN; SELECT * FROM t; COMMIT",
    );
    run(&db, "BEGIN; UPDATE t SET v = v + 1; ROLLBACK");
    assert_eq!(stat(&db, "flushes"), before);
}

/// A commit on top of ones that were never flushed makes them durable with it: its shadow carries
/// them.
#[test]
fn going_back_from_off_to_full() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = opened(&path, "single");
    for round in 0..6 {
        run(&db, "PRAGMA synchronous = OFF");
        cost(&db);
        run(&db, "PRAGMA synchronous = FULL");
        run(&db, &format!("UPDATE t SET v = {round} WHERE id % 3 = 0"));
        suite::check(&suite::open(&path));
    }
    drop(db);
    assert_eq!(
        suite::one::<i64>(&at_rest(&path), "SELECT count(*) FROM t WHERE v = 5 AND id % 3 = 0"),
        (5 + 6 * COMMITS) / 3
    );
}

/// Flushes of the log and of `-wal` that `COMMITS` commits of mode wal make.
fn cost_in_wal(db: &Connection) -> i64 {
    let flushes = || stat(db, "log_flushes") + stat(db, "wal_flushes");
    let before = flushes();
    for number in 0..COMMITS {
        run(db, &format!("INSERT INTO t(v) VALUES ({number})"));
    }
    flushes() - before
}

#[test]
fn in_mode_wal_full_and_extra_flush_once_and_normal_and_off_never() {
    suite::load();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = Connection::open(suite::uri(&path, "&journal_mode=wal")).expect("opens");
    run(&db, "PRAGMA wal_autocheckpoint = 0; CREATE TABLE t(id INTEGER PRIMARY KEY, v)");
    cost_in_wal(&db);
    for (level, durability, flushes) in [
        ("FULL", "host", 1),
        ("EXTRA", "host", 1),
        ("NORMAL", "host", 0),
        ("OFF", "host", 0),
        ("NORMAL", "full", 1),
        ("OFF", "full", 1),
        ("NORMAL", "none", 0),
    ] {
        run(&db, &format!("PRAGMA synchronous = {level}"));
        suite::one::<String>(&db, &format!("PRAGMA dash_durability = {durability}"));
        assert_eq!(cost_in_wal(&db), COMMITS * flushes, "{level}, {durability}");
    }
}

/// The page cache outlives the process.
#[test]
fn no_level_loses_a_commit_to_a_kill() {
    for mode in ["wal", "shadow"] {
        for level in ["OFF", "NORMAL", "FULL", "EXTRA"] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("app.db");
            let parameters = format!("&journal_mode={mode}");
            let part = Part { parameters: &parameters, ..Part::default() };
            let mut db = Session::dash(&path, part).expect("opens");
            db.must("CREATE TABLE t(id INTEGER PRIMARY KEY, v)");
            db.must(&format!("PRAGMA synchronous = {level}"));
            for number in 0..COMMITS {
                db.must(&format!("INSERT INTO t(v) VALUES ({number})"));
            }
            db.kill();
            let db = suite::open(&path);
            assert_eq!(suite::one::<i64>(&db, "SELECT count(*) FROM t"), COMMITS, "{mode} {level}");
            suite::check(&db);
        }
    }
}
