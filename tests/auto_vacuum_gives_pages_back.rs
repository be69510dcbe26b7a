//! `auto_vacuum` full and incremental: the sizes that stock SQLite has, with the same contents
//! (T21).

mod suite;

use std::path::Path;

use rusqlite::Connection;
use suite::sql::{at_rest, content, run};

const ROWS: &str = "SELECT * FROM t ORDER BY id";

fn pages(db: &Connection) -> (i64, i64) {
    (suite::one(db, "PRAGMA page_count"), suite::one(db, "PRAGMA freelist_count"))
}

/// The same on dash and on stock SQLite.
fn pair(dash: &Path, plain: &Path, settings: &str) -> [Connection; 2] {
    let pair = [suite::open(dash), suite::stock(plain)];
    for db in &pair {
        run(
            db,
            &format!(
                "{settings}
                 CREATE TABLE t(id INTEGER PRIMARY KEY, v, data); CREATE INDEX t_v ON t(v);
                 CREATE TABLE gone(x); INSERT INTO gone VALUES (zeroblob(300000));
                 WITH n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 600)
                 INSERT INTO t SELECT i, i * 31 % 600, printf('%0' || (i * 5) || 'd', i) FROM n;"
            ),
        );
    }
    pair
}

fn agree(folder: &Path, settings: &str, steps: &[&str]) {
    let (path, plain) = (folder.join("app.db"), folder.join("plain.db"));
    let [dash, stock] = pair(&path, &plain, settings);
    let other = suite::open(&path);
    let largest = pages(&dash).0;
    for step in steps {
        run(&dash, step);
        run(&stock, step);
        assert_eq!(pages(&dash), pages(&stock), "{settings} {step}");
        assert_eq!(pages(&other), pages(&stock), "{settings} {step}");
        assert_eq!(content(&other, ROWS), content(&stock, ROWS), "{settings} {step}");
        suite::check(&other);
    }
    let last = pages(&stock);
    assert!(last.0 < largest, "{settings}: {last:?} pages of {largest}");
    let rows = content(&stock, ROWS);
    drop((dash, other));
    let rested = at_rest(&path);
    assert_eq!(pages(&rested), last);
    assert_eq!(content(&rested, ROWS), rows);
}

#[test]
fn full_after_every_commit() {
    for page_size in [512, 4096, 65536] {
        let folder = tempfile::tempdir().unwrap();
        agree(
            folder.path(),
            &format!("PRAGMA page_size = {page_size}; PRAGMA auto_vacuum = full;"),
            &[
                "DROP TABLE gone",
                "DELETE FROM t WHERE id % 3 = 0",
                "BEGIN; DELETE FROM t WHERE id > 100; ROLLBACK",
                "BEGIN; INSERT INTO t(v, data) SELECT v, data FROM t; DELETE FROM t WHERE id < 200; COMMIT",
                "SAVEPOINT s; DELETE FROM t; ROLLBACK TO s; RELEASE s",
                "UPDATE t SET data = v",
                "DELETE FROM t WHERE id > 300",
            ],
        );
    }
}

#[test]
fn incrementally_when_asked() {
    for page_size in [512, 4096, 65536] {
        let folder = tempfile::tempdir().unwrap();
        agree(
            folder.path(),
            &format!("PRAGMA page_size = {page_size}; PRAGMA auto_vacuum = incremental;"),
            &[
                "DROP TABLE gone",
                "PRAGMA incremental_vacuum(1)",
                "PRAGMA incremental_vacuum(7)",
                "DELETE FROM t WHERE id % 3 = 0",
                "BEGIN; PRAGMA incremental_vacuum(20); ROLLBACK",
                "BEGIN; PRAGMA incremental_vacuum(20); INSERT INTO t(v, data) VALUES (1, zeroblob(40000)); COMMIT",
                "DELETE FROM t WHERE id > 300",
                "PRAGMA incremental_vacuum",
            ],
        );
    }
}

#[test]
fn and_it_is_switched_on_and_off_by_vacuum() {
    let folder = tempfile::tempdir().unwrap();
    agree(
        folder.path(),
        "",
        &[
            "PRAGMA auto_vacuum = full; VACUUM",
            "DROP TABLE gone",
            "PRAGMA auto_vacuum = none; PRAGMA page_size = 1024; VACUUM",
            "DELETE FROM t WHERE id > 50",
            "PRAGMA auto_vacuum = incremental; PRAGMA page_size = 8192; VACUUM",
            "DELETE FROM t WHERE id > 20; PRAGMA incremental_vacuum",
        ],
    );
}
