//! `PRAGMA mmap_size`: mapped connections see what the others see, while the database grows,
//! shrinks and changes its page size under them (T21: a file cut under a mapping would be a
//! SIGBUS).

mod suite;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::Connection;
use suite::sql::{at_rest, content, run};

const ROWS: &str = "SELECT * FROM t ORDER BY id";

fn mapped(path: &Path, size: i64) -> Connection {
    let db = suite::open(path);
    assert_eq!(suite::one::<i64>(&db, &format!("PRAGMA mmap_size = {size}")), size);
    // Every page comes from the mapping again and again.
    run(&db, "PRAGMA cache_size = 5");
    db
}

fn made(path: &Path) {
    run(
        &suite::open(path),
        "CREATE TABLE t(id INTEGER PRIMARY KEY, v, data); CREATE INDEX t_v ON t(v);
         WITH n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
         INSERT INTO t SELECT i, 0, randomblob(500) FROM n",
    );
}

/// What a writer does to the size of the file.
const UPHEAVALS: [&str; 9] = [
    "INSERT INTO t(v, data) SELECT v, randomblob(600) FROM t WHERE id <= 1000",
    "UPDATE t SET v = v + 1, data = randomblob(500) WHERE id % 5 = 0",
    "DELETE FROM t WHERE id > 1000",
    "VACUUM",
    "BEGIN; UPDATE t SET data = randomblob(12000); ROLLBACK",
    "PRAGMA page_size = 1024; VACUUM",
    "SAVEPOINT s; DELETE FROM t; ROLLBACK TO s; UPDATE t SET v = v + 1 WHERE id < 50; RELEASE s",
    "PRAGMA page_size = 16384; VACUUM",
    "PRAGMA page_size = 4096; VACUUM",
];

#[test]
fn one_after_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    made(&path);
    let (writer, unmapped) = (mapped(&path, 1 << 28), suite::open(&path));
    // The second one maps the beginning only.
    let readers = [mapped(&path, 1 << 28), mapped(&path, 100_000)];
    for upheaval in UPHEAVALS.iter().cycle().take(3 * UPHEAVALS.len()) {
        run(&readers[0], "BEGIN");
        let before = content(&readers[0], ROWS);
        run(&writer, upheaval);
        assert_eq!(content(&readers[0], ROWS), before, "{upheaval}");
        run(&readers[0], "COMMIT");
        let now = content(&unmapped, ROWS);
        for db in [&writer, &readers[0], &readers[1]] {
            assert_eq!(content(db, ROWS), now, "{upheaval}");
            suite::check(db);
        }
    }
    let last = content(&unmapped, ROWS);
    drop((writer, unmapped, readers));
    assert_eq!(content(&at_rest(&path), ROWS), last);
}

#[test]
fn all_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    made(&path);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for size in [1 << 28, 1 << 28, 300_000] {
            let (path, done) = (&path, &done);
            scope.spawn(move || {
                let db = mapped(path, size);
                while !done.load(Ordering::SeqCst) {
                    run(&db, "BEGIN");
                    // All rows of a state, by the table and by the index.
                    let rows = suite::one::<i64>(
                        &db,
                        "SELECT count(*) + sum(length(data)) * 0 FROM t NOT INDEXED",
                    );
                    assert_eq!(suite::one::<i64>(&db, "SELECT count(*) FROM t WHERE v >= 0"), rows);
                    suite::check(&db);
                    run(&db, "COMMIT");
                }
            });
        }
        let writer = mapped(&path, 1 << 28);
        for upheaval in UPHEAVALS.iter().cycle().take(3 * UPHEAVALS.len()) {
            run(&writer, upheaval);
        }
        done.store(true, Ordering::SeqCst);
    });
    at_rest(&path);
}
