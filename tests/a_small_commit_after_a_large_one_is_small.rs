//! After a large transaction the other copy is settled in the background: the next commit does
//! not carry all of it (F7).

mod suite;

use std::time::Duration;

use rusqlite::Connection;

fn carried(connection: &Connection) -> i64 {
    suite::one(connection, "SELECT value FROM dash_stats WHERE name = 'carried_bytes'")
}

#[test]
fn the_pages_of_the_large_one_are_not_carried() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = suite::open(&path);
    db.execute_batch("CREATE TABLE t(a INTEGER PRIMARY KEY, b)").unwrap();
    let mut smallest = i64::MAX;
    for round in 0..5 {
        db.execute_batch(&format!(
            "INSERT OR REPLACE INTO t SELECT value, zeroblob(3000 + {round}) FROM
             (WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n LIMIT 3000) SELECT value FROM n)"
        ))
        .unwrap();
        // The thread needs a moment; on a busy machine more than one try.
        std::thread::sleep(Duration::from_millis(300 << round));
        let before = carried(&db);
        db.execute_batch("UPDATE t SET b = 1 WHERE a = 1").unwrap();
        smallest = smallest.min(carried(&db) - before);
        if smallest < 100_000 {
            break;
        }
    }
    assert!(smallest < 100_000, "{smallest} bytes carried");
    suite::check(&db);
    drop(db);
    suite::check(&suite::stock(&path));
}

#[test]
fn a_process_that_closes_leaves_a_plain_file_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = suite::open(&path);
    db.execute_batch(
        "CREATE TABLE t(b); INSERT INTO t VALUES (zeroblob(20000000)); INSERT INTO t VALUES (1)",
    )
    .unwrap();
    drop(db);
    assert!(!path.with_extension("db-dash").exists());
    assert!(!path.with_extension("db-journal").exists());
    suite::check(&suite::stock(&path));
}
