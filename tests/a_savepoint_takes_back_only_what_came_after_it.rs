//! Savepoints and statement rollback, in small and in spilled transactions, agree with stock
//! SQLite.

mod suite;

use rusqlite::Connection;
use suite::sql::{at_rest, content, refused, run, stat};

const ROWS: &str = "SELECT * FROM t ORDER BY id";

/// The same start for dash and for stock; no randomness, so that both can be compared.
fn start(db: &Connection, cache: i64) {
    run(
        db,
        &format!(
            "CREATE TABLE t(id INTEGER PRIMARY KEY, v UNIQUE, data);
             WITH n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
             INSERT INTO t SELECT i, i, printf('%03500d', i) FROM n;
             PRAGMA cache_size = {cache};"
        ),
    );
}

/// Each part ends inside or outside a transaction; what both databases then hold is compared.
const PARTS: [&str; 12] = [
    "SAVEPOINT a; UPDATE t SET data = printf('%03501d', id)",
    "SAVEPOINT b; DELETE FROM t WHERE id % 2; SAVEPOINT c; UPDATE t SET v = -v",
    "ROLLBACK TO c; INSERT INTO t VALUES (-1, -1, 'c'); RELEASE c",
    "ROLLBACK TO b",
    "INSERT INTO t SELECT id + 9000, v + 9000, data FROM t; ROLLBACK TO b; RELEASE b",
    "UPDATE t SET data = data || 'x' WHERE id % 10 = 3",
    "RELEASE a",
    "BEGIN; UPDATE t SET data = '' WHERE id > 1500; SAVEPOINT a; CREATE TABLE u(x); INSERT INTO u VALUES (1)",
    "ROLLBACK TO a; UPDATE t SET data = printf('%04700d', id) WHERE id > 1500",
    "RELEASE a; COMMIT",
    "SAVEPOINT a; DROP TABLE t; ROLLBACK TO a; RELEASE a",
    "SAVEPOINT a; SAVEPOINT b; DELETE FROM t WHERE id > 2700; RELEASE b; ROLLBACK TO a; UPDATE t SET v = v + 30000; RELEASE a",
];

#[test]
fn with_and_without_a_cache_that_spills() {
    for cache in [10, -64000] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        let (dash, plain) = (suite::open(&path), Connection::open_in_memory().unwrap());
        start(&dash, cache);
        start(&plain, cache);
        let reader = suite::open(&path);
        let mut committed = content(&reader, ROWS);
        for part in PARTS {
            run(&dash, part);
            run(&plain, part);
            let now = content(&plain, ROWS);
            assert_eq!(content(&dash, ROWS), now, "cache {cache}: {part}");
            if dash.is_autocommit() {
                committed = now;
                suite::check(&dash);
            }
            assert_eq!(content(&reader, ROWS), committed, "cache {cache}: {part}");
        }
        assert!(stat(&dash, "spills") > 0, "cache {cache}");
        drop((dash, reader));
        assert_eq!(content(&at_rest(&path), ROWS), committed);
    }
}

#[test]
fn and_a_failed_statement_takes_back_only_itself() {
    for cache in [10, -64000] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        let (dash, plain) = (suite::open(&path), Connection::open_in_memory().unwrap());
        start(&dash, cache);
        start(&plain, cache);
        for db in [&dash, &plain] {
            run(db, "BEGIN; UPDATE t SET data = data || 'first'");
            let kept = content(db, ROWS);
            // Fails at its last row, after it has changed all the others.
            for failing in [
                "UPDATE t SET v = CASE id WHEN 3000 THEN 9001 ELSE v + 9000 END",
                "INSERT INTO t SELECT id + 3000, v + 3000, data FROM t UNION ALL SELECT 1, 1, 1",
                "INSERT OR ABORT INTO t SELECT id + 3000, v + 3000, data FROM t UNION ALL SELECT 1, 1, 1",
            ] {
                assert_eq!(refused(db, failing).0 & 0xff, 19, "{failing}");
                assert_eq!(content(db, ROWS), kept, "cache {cache}: {failing}");
            }
            // OR FAIL keeps what came before the failure.
            let partly = "INSERT OR FAIL INTO t SELECT id + 3000, v + 3000, data FROM t WHERE id <= 10 UNION ALL SELECT 1, 1, 1";
            assert_eq!(refused(db, partly).0 & 0xff, 19);
            assert!(!db.is_autocommit());
            run(db, "COMMIT; UPDATE t SET data = data || 'after' WHERE id < 100");
            // OR ROLLBACK ends the transaction.
            run(db, "BEGIN; DELETE FROM t");
            assert_eq!(
                refused(db, "INSERT OR ROLLBACK INTO t VALUES (1, 1, 1), (1, 1, 1)").0 & 0xff,
                19
            );
            assert!(db.is_autocommit());
        }
        assert_eq!(content(&dash, ROWS), content(&plain, ROWS), "cache {cache}");
        suite::check(&dash);
        drop(dash);
        assert_eq!(content(&at_rest(&path), ROWS), content(&plain, ROWS));
    }
}
