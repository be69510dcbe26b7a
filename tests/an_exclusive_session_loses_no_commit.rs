//! `locking_mode=EXCLUSIVE`: SQLite commits again and again without a lock call in between (T5) and
//! leaves page 1 out of all commits but the first (T6). Readers still see every commit, and after
//! NORMAL everybody writes.

mod suite;

use std::time::Duration;

use dash_testing::roles::{Role, role, say, while_nobody_starts};
use rusqlite::Connection;
use suite::sql::{at_rest, content, refused, run, stat};

const ROWS: &str = "SELECT * FROM t ORDER BY id";

fn opened(path: &std::path::Path, protocol: &str) -> Connection {
    suite::load();
    let db =
        Connection::open(suite::uri(path, &format!("&dash_commit={protocol}"))).expect("opens");
    run(&db, "CREATE TABLE IF NOT EXISTS t(id INTEGER PRIMARY KEY, v)");
    db
}

#[test]
fn with_readers_around_it() {
    for protocol in ["single", "paper", "exclusive"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        let db = opened(&path, protocol);
        let (reader, stock) = (suite::open(&path), suite::stock(&path));
        stock.busy_timeout(Duration::ZERO).unwrap();
        run(&db, "PRAGMA locking_mode = exclusive");
        let commits = stat(&db, "commits");
        for number in 1..=40 {
            run(&db, &format!("INSERT INTO t(v) VALUES ({number})"));
            // T6: the reader keeps its cache between two commits if the counter doesn't move.
            assert_eq!(suite::one::<i64>(&reader, "SELECT max(v) FROM t"), number, "{protocol}");
            // A stock reader is shut out, or sees a commit: this one, or one before.
            match stock.query_row("SELECT max(v) FROM t", [], |row| row.get::<_, Option<i64>>(0)) {
                Ok(seen) => assert!(seen.is_none_or(|seen| seen <= number), "{seen:?}"),
                Err(error) => assert!(
                    error.to_string().contains("locked")
                        || error.to_string().contains("not a database"),
                    "{error}"
                ),
            }
            if number % 10 == 0 {
                suite::check(&reader);
                run(&db, "BEGIN; DELETE FROM t; ROLLBACK");
            }
        }
        assert_eq!(stat(&db, "commits") - commits, 40, "{protocol}");
        reader.busy_timeout(Duration::ZERO).unwrap();
        assert_eq!(
            refused(&reader, "INSERT INTO t(v) VALUES (-1)").0 & 0xff,
            5,
            "{protocol}: busy"
        );
        // NORMAL takes hold with the next access.
        run(&db, "PRAGMA locking_mode = normal; SELECT * FROM t");
        for number in 41..=44 {
            run(&reader, &format!("INSERT INTO t(v) VALUES ({number})"));
            assert_eq!(suite::one::<i64>(&db, "SELECT max(v) FROM t"), number);
        }
        let last = content(&db, ROWS);
        while_nobody_starts(|| drop((db, reader, stock)));
        assert_eq!(content(&at_rest(&path), ROWS), last, "{protocol}");
    }
}

/// T5: a reader's snapshot is never overwritten, and what was answered OK is there: a commit that
/// can't be made fails, waits or goes around.
#[test]
fn with_a_reader_that_holds_its_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = opened(&path, "single");
    let reader = suite::open(&path);
    db.busy_timeout(Duration::ZERO).unwrap();
    run(
        &db,
        "INSERT INTO t(v) VALUES (0); PRAGMA locking_mode = exclusive; INSERT INTO t(v) VALUES (0)",
    );
    let mut expected = 2;
    for round in 0..6 {
        run(&reader, "BEGIN");
        let snapshot = content(&reader, ROWS);
        for _ in 0..4 {
            // A refused commit may surface at the statement or at COMMIT, and takes nothing along.
            if db.execute_batch("INSERT INTO t(v) VALUES (1)").is_ok() {
                expected += 1;
            }
            assert_eq!(suite::one::<i64>(&db, "SELECT count(*) FROM t"), expected, "round {round}");
            assert_eq!(content(&reader, ROWS), snapshot, "round {round}: the snapshot changed");
            suite::check(&reader);
        }
        run(&reader, "COMMIT");
        run(&db, "INSERT INTO t(v) VALUES (2)");
        expected += 1;
        assert_eq!(suite::one::<i64>(&reader, "SELECT count(*) FROM t"), expected);
    }
    while_nobody_starts(|| drop((db, reader)));
    assert_eq!(suite::one::<i64>(&at_rest(&path), "SELECT count(*) FROM t"), expected);
}

#[test]
fn with_spills_and_rollbacks_and_vacuum() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = opened(&path, "single");
    let reader = suite::open(&path);
    run(&db, "PRAGMA locking_mode = exclusive; PRAGMA cache_size = 10");
    for round in 0..4 {
        run(&db, "INSERT INTO t(v) VALUES (zeroblob(9000000))");
        let before = content(&db, ROWS);
        run(&db, "BEGIN; UPDATE t SET v = zeroblob(9500000) WHERE length(v) > 100; ROLLBACK");
        assert_eq!(content(&reader, ROWS), before, "{round}");
        run(&db, "DELETE FROM t WHERE length(v) > 100; INSERT INTO t(v) VALUES (1); VACUUM");
        assert_eq!(content(&reader, ROWS), content(&db, ROWS), "{round}");
    }
    assert!(stat(&db, "spills") > 0);
    let last = content(&db, ROWS);
    while_nobody_starts(|| drop((db, reader)));
    assert_eq!(content(&at_rest(&path), ROWS), last);
}

/// A session killed in the middle keeps nobody out, and every commit it was told of is there.
#[test]
fn when_its_process_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    drop(opened(&path, "single"));
    let mut least = 0;
    for _ in 0..4 {
        let mut child = Role::start("a_process_with_an_exclusive_session", &path);
        for _ in 0..20 {
            least = child.hear("acknowledged").parse().expect("a number");
        }
        child.kill();
        let db = suite::open(&path);
        let found = suite::one::<i64>(&db, "SELECT count(*) FROM t");
        assert!(found >= least, "{found} rows, {least} acknowledged");
        run(&db, "INSERT INTO t(v) VALUES (0)");
        suite::check(&db);
    }
    at_rest(&path);
}

#[test]
#[ignore = "a role of the test above"]
fn a_process_with_an_exclusive_session() {
    let Some(path) = role("a_process_with_an_exclusive_session") else { return };
    let db = suite::open(path.as_ref());
    run(&db, "PRAGMA locking_mode = exclusive");
    loop {
        run(&db, "INSERT INTO t(v) VALUES (1)");
        say("acknowledged", suite::one::<i64>(&db, "SELECT count(*) FROM t"));
    }
}
