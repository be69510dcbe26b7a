//! FTS5, R-Tree and incremental blob I/O, each against the same on stock SQLite.

mod suite;

use std::io::{Read, Seek, SeekFrom, Write};

use rusqlite::{Connection, MAIN_DB, blob::ZeroBlob};
use suite::sql::{at_rest, content, refused, run};

#[test]
fn full_text_search_finds_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let (dash, plain) = (suite::open(&path), Connection::open_in_memory().unwrap());
    let query = "SELECT rowid, rank, snippet(text, 0, '<', '>', '', 3) FROM text WHERE text MATCH 'beta AND w7*' ORDER BY rank, rowid";
    for db in [&dash, &plain] {
        run(
            db,
            "CREATE VIRTUAL TABLE text USING fts5(body, prefix = '2 3');
             WITH n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
             INSERT INTO text SELECT printf('alpha w%d beta w%d gamma w%d', i % 97, i % 89, i % 83) FROM n;",
        );
        for round in 0..5 {
            run(
                db,
                &format!(
                    "BEGIN; UPDATE text SET body = body || ' beta' WHERE rowid % 7 = {round};
                     SAVEPOINT s; DELETE FROM text WHERE rowid > 100; ROLLBACK TO s;
                     DELETE FROM text WHERE rowid % 50 = {round}; COMMIT"
                ),
            );
        }
        run(db, "BEGIN; DELETE FROM text; ROLLBACK; INSERT INTO text(text) VALUES ('optimize')");
        run(db, "INSERT INTO text(text) VALUES ('integrity-check')");
    }
    assert!(
        suite::one::<i64>(&dash, "SELECT count(*) FROM text WHERE text MATCH 'beta AND w7*'") > 10
    );
    assert_eq!(content(&dash, query), content(&plain, query));
    suite::check(&dash);
    drop(dash);
    assert_eq!(content(&at_rest(&path), query), content(&plain, query));
}

#[test]
fn spatial_search_finds_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let (dash, plain) = (suite::open(&path), Connection::open_in_memory().unwrap());
    let query = "SELECT * FROM boxes WHERE x0 >= 100 AND x1 <= 300 AND y1 > 50 ORDER BY id";
    for db in [&dash, &plain] {
        run(
            db,
            "CREATE VIRTUAL TABLE boxes USING rtree(id, x0, x1, y0, y1, +label);
             WITH n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
             INSERT INTO boxes SELECT i, i * 37 % 500, i * 37 % 500 + 3, i * 91 % 400, i * 91 % 400 + 9, 'box ' || i FROM n;
             DELETE FROM boxes WHERE id % 11 = 3;
             UPDATE boxes SET x0 = x0 + 1, x1 = x1 + 40 WHERE id % 5 = 0;
             BEGIN; DELETE FROM boxes WHERE id > 20; ROLLBACK;
             SAVEPOINT s; UPDATE boxes SET y1 = y1 + 1000; ROLLBACK TO s; RELEASE s;",
        );
        assert_eq!(suite::one::<String>(db, "SELECT rtreecheck('boxes')"), "ok");
    }
    assert!(
        suite::one::<i64>(
            &dash,
            "SELECT count(*) FROM boxes WHERE x0 >= 100 AND x1 <= 300 AND y1 > 50"
        ) > 100
    );
    assert_eq!(content(&dash, query), content(&plain, query));
    drop(dash);
    assert_eq!(content(&at_rest(&path), query), content(&plain, query));
}

#[test]
fn blob_handles_read_and_write_in_place() {
    const SIZE: usize = 300_000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let (db, other) = (suite::open(&path), suite::open(&path));
    run(&db, "CREATE TABLE files(id INTEGER PRIMARY KEY, data)");
    let zeros = ZeroBlob(SIZE as u64);
    db.execute("INSERT INTO files VALUES (1, ?)", [zeros]).unwrap();
    let mut expected = vec![0; SIZE];
    let mut blob = db.blob_open(MAIN_DB, c"files", c"data", 1, false).unwrap();
    for (round, at) in [0, 4000, 123_456, 299_000].into_iter().enumerate() {
        let piece = vec![u8::try_from(round + 1).unwrap(); 1000];
        blob.seek(SeekFrom::Start(at)).unwrap();
        blob.write_all(&piece).unwrap();
        let at = usize::try_from(at).unwrap();
        expected[at..at + 1000].copy_from_slice(&piece);
    }
    // A write handle is a write transaction: another reads the state before.
    assert_eq!(
        suite::one::<i64>(&other, "SELECT count(*) FROM files WHERE data = zeroblob(300000)"),
        1
    );
    blob.close().unwrap();
    let mut seen = Vec::new();
    let mut reading = other.blob_open(MAIN_DB, c"files", c"data", 1, true).unwrap();
    reading.read_to_end(&mut seen).unwrap();
    assert!(seen == expected, "the other connection reads something else");
    // Its snapshot holds while others write, and it expires with its row (here: none of its
    // connection's).
    run(&db, "UPDATE files SET data = zeroblob(300000)");
    reading.seek(SeekFrom::Start(0)).unwrap();
    seen.clear();
    reading.read_to_end(&mut seen).unwrap();
    assert!(seen == expected, "the snapshot of an open handle changed");
    reading.close().unwrap();
    assert_eq!(
        suite::one::<i64>(&other, "SELECT count(*) FROM files WHERE data = zeroblob(300000)"),
        1
    );
    // Rolled back with its transaction.
    run(&db, "BEGIN");
    let mut blob = db.blob_open(MAIN_DB, c"files", c"data", 1, false).unwrap();
    blob.write_all(&[9; 200_000]).unwrap();
    blob.close().unwrap();
    run(&db, "ROLLBACK");
    assert_eq!(
        suite::one::<i64>(&db, "SELECT count(*) FROM files WHERE data = zeroblob(300000)"),
        1
    );
    assert_eq!(refused(&db, "SELECT zeroblob(-1), abs(-9223372036854775808)").0 & 0xff, 1);
    suite::check(&other);
    drop((db, other));
    at_rest(&path);
}
