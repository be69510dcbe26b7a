//! ROLLBACK gives the state before, whatever had already been written to the shadow: T2, T10, T14,
//! T18.

mod suite;

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use suite::sql::{at_rest, content, refused, run, stat};

const ROWS: &str = "SELECT * FROM t ORDER BY id";

/// 10 MiB, more than the engine gathers in memory: the shadow is written before the commit.
fn large(path: &Path, parameters: &str) -> Connection {
    suite::load();
    let db = Connection::open(suite::uri(path, parameters)).expect("opens");
    run(
        &db,
        "CREATE TABLE t(id INTEGER PRIMARY KEY, v, data);
         CREATE INDEX t_v ON t(v);
         WITH n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 3200)
         INSERT INTO t SELECT i, i * 7919 % 3200, randomblob(3000) FROM n;
         PRAGMA cache_size = 20;",
    );
    db
}

/// Everything that a large transaction can do to a file: change, shrink, grow, and both of its
/// lists.
const UPHEAVAL: &str = "BEGIN;
    UPDATE t SET v = v + 1, data = randomblob(3000);
    DELETE FROM t WHERE id % 3 = 0;
    INSERT INTO t SELECT id + 100000, v, randomblob(4500) FROM t WHERE id <= 2000;
    CREATE TABLE more(x); INSERT INTO more VALUES (zeroblob(3000000)); DROP TABLE more;";

/// T2, T10: such a rollback ends with FCNTL_SYNC and xSync, as a commit does; what it leaves in the
/// shadow is no state, and is mended before the shadow is used again.
#[test]
fn also_when_the_transaction_had_spilled_into_the_shadow() {
    for protocol in ["single", "paper", "exclusive"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        let db = large(&path, &format!("&dash_commit={protocol}"));
        let reader = suite::open(&path);
        let (before, sequence) = (content(&db, ROWS), stat(&db, "sequence"));
        run(&db, UPHEAVAL);
        assert_ne!(content(&db, ROWS), before);
        // T18: readers are not kept out, and see the state before.
        assert_eq!(content(&reader, ROWS), before, "{protocol}");
        run(&db, "ROLLBACK");
        assert!(stat(&db, "spills") > 0, "{protocol}: it did not spill");
        assert_eq!(stat(&db, "sequence"), sequence);
        for each in [&db, &reader] {
            assert_eq!(content(each, ROWS), before, "{protocol}");
            suite::check(each);
        }
        // What is committed next carries nothing of it, in either copy.
        for round in 0..2 {
            run(&db, "UPDATE t SET v = v + 1 WHERE id % 100 = 5");
            let now = content(&db, ROWS);
            assert_ne!(now, before);
            assert_eq!(content(&reader, ROWS), now, "{protocol}, commit {round}");
            suite::check(&reader);
        }
        let last = content(&db, ROWS);
        drop((db, reader));
        assert_eq!(content(&at_rest(&path), ROWS), last, "{protocol}");
    }
}

/// T2: an autocommit statement that fails after it has spilled is such a rollback, too.
#[test]
fn also_of_a_single_statement_that_fails_late() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = large(&path, "");
    run(&db, "CREATE UNIQUE INDEX t_id ON t(-id) WHERE id > 3200");
    let before = content(&db, ROWS);
    // The last row fails: twice the value of -id.
    let (code, message) = refused(
        &db,
        "INSERT INTO t SELECT 3200 + id, v, randomblob(3000) FROM t UNION ALL SELECT 6400, 0, 0",
    );
    assert_eq!(code & 0xff, 19, "{message}");
    assert!(stat(&db, "spills") > 0);
    assert_eq!(content(&db, ROWS), before);
    suite::check(&db);
    run(&db, "INSERT INTO t VALUES (-1, 2, 3)");
    let last = content(&db, ROWS);
    drop(db);
    assert_eq!(content(&at_rest(&path), ROWS), last);
}

#[test]
fn also_when_the_process_that_spilled_goes_on_or_closes_in_the_middle() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = large(&path, "");
    let before = content(&db, ROWS);
    run(&db, UPHEAVAL);
    drop(db);
    assert_eq!(content(&at_rest(&path), ROWS), before);
    let db = suite::open(&path);
    assert_eq!(content(&db, ROWS), before);
    run(&db, "PRAGMA cache_size = 20");
    for _ in 0..2 {
        run(&db, &format!("{UPHEAVAL} ROLLBACK"));
        assert_eq!(content(&db, ROWS), before);
    }
    run(&db, &format!("{UPHEAVAL} COMMIT"));
    let after = content(&db, ROWS);
    assert_ne!(after, before);
    suite::check(&db);
    drop(db);
    assert_eq!(content(&at_rest(&path), ROWS), after);
}

/// T14: before the first commit the file is empty, and a rollback leaves it so.
#[test]
fn and_an_empty_database_stays_empty() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = suite::open(&path);
    for data in ["1", "zeroblob(20000000)"] {
        run(
            &db,
            &format!(
                "PRAGMA cache_size = 20; BEGIN; CREATE TABLE t(x); INSERT INTO t VALUES ({data}); ROLLBACK"
            ),
        );
        assert_eq!(fs::metadata(&path).unwrap().len(), 0);
        let stock = suite::stock(&path);
        assert_eq!(suite::one::<i64>(&stock, "SELECT count(*) FROM sqlite_schema"), 0);
    }
    run(&db, "CREATE TABLE t(x); INSERT INTO t VALUES (1)");
    drop(db);
    assert_eq!(suite::one::<i64>(&at_rest(&path), "SELECT count(*) FROM t"), 1);
}
