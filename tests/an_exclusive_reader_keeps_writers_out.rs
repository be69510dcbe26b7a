//! FT20: under `locking_mode=EXCLUSIVE` a connection keeps its read lock, and SQLite trusts its
//! pages by it. One that had only read kept nobody out, showed an old state from then on, and could
//! never write.

mod suite;

use std::path::Path;

use rusqlite::Connection;
use suite::peers::{Part, Session};
use suite::sql::{at_rest, run};

fn open(path: &Path, more: &str) -> Connection {
    suite::load();
    Connection::open(suite::uri(path, more)).expect("opens")
}

fn count(db: &Connection) -> i64 {
    suite::one(db, "SELECT count(*) FROM t")
}

#[test]
fn of_this_process_and_of_others_and_writes_whenever_it_likes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let reader = suite::open(&path);
    run(&reader, "CREATE TABLE t(x); INSERT INTO t VALUES (1)");
    let other = suite::open(&path);
    let mut third = Session::dash(&path, Part::default()).expect("opens");
    other.busy_timeout(std::time::Duration::ZERO).unwrap();
    third.must("PRAGMA busy_timeout = 0");
    run(&reader, "PRAGMA locking_mode = EXCLUSIVE");
    run(&other, "INSERT INTO t VALUES (2)");
    assert_eq!(count(&reader), 2);
    for _ in 0..3 {
        assert!(other.execute_batch("INSERT INTO t VALUES (0)").is_err(), "wrote beside it");
        let refused = third.sql("INSERT INTO t VALUES (0)");
        assert_eq!(refused, Err("database is locked".to_owned()));
        // Reading, they share.
        assert_eq!((count(&reader), count(&other)), (2, 2));
        assert_eq!(third.must("SELECT count(*) FROM t"), "2");
    }
    run(&reader, "INSERT INTO t VALUES (3)");
    assert_eq!((count(&reader), count(&other)), (3, 3));
    assert!(other.execute_batch("INSERT INTO t VALUES (0)").is_err(), "wrote beside it");
    // And lets go as soon as SQLite does: at the next read.
    run(&reader, "PRAGMA locking_mode = NORMAL");
    assert_eq!(count(&reader), 3);
    run(&other, "INSERT INTO t VALUES (4)");
    third.must("INSERT INTO t VALUES (5)");
    assert_eq!(count(&reader), 5);
    third.close();
    drop((reader, other));
    assert_eq!(count(&at_rest(&path)), 5);
}

/// As SHARED locks do with a rollback journal.
#[test]
fn but_no_other_such_reader() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let first = suite::open(&path);
    run(&first, "CREATE TABLE t(x); INSERT INTO t VALUES (1)");
    let second = suite::open(&path);
    for db in [&first, &second] {
        db.busy_timeout(std::time::Duration::ZERO).unwrap();
        run(db, "PRAGMA locking_mode = EXCLUSIVE");
        assert_eq!(count(db), 1);
    }
    for db in [&first, &second] {
        assert!(db.execute_batch("INSERT INTO t VALUES (2)").is_err(), "wrote beside the other");
        assert_eq!(count(db), 1);
    }
    drop(second);
    run(&first, "INSERT INTO t VALUES (2)");
    assert_eq!(count(&first), 2);
    drop(first);
    assert_eq!(count(&at_rest(&path)), 2);
}

/// Somebody is writing when it begins to read: it waits for that, as its timeout says, and reads
/// what was written.
#[test]
fn once_whoever_is_writing_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let writer = suite::open(&path);
    run(&writer, "CREATE TABLE t(x); INSERT INTO t VALUES (1)");
    let reader = suite::open(&path);
    reader.busy_timeout(std::time::Duration::ZERO).unwrap();
    run(&reader, "PRAGMA locking_mode = EXCLUSIVE");
    run(&writer, "BEGIN IMMEDIATE; INSERT INTO t VALUES (2)");
    assert!(reader.prepare("SELECT count(*) FROM t").is_err(), "read beside a writer");
    reader.busy_timeout(std::time::Duration::from_secs(60)).unwrap();
    let reading = std::thread::spawn(move || (count(&reader), reader));
    std::thread::sleep(std::time::Duration::from_millis(50));
    run(&writer, "COMMIT");
    let (seen, reader) = reading.join().unwrap();
    assert_eq!(seen, 2);
    run(&reader, "INSERT INTO t VALUES (3)");
    assert_eq!(count(&reader), 3);
}

/// Said while SQLite had the file in a mode of its own.
#[test]
fn also_where_that_was_said_before_the_mode() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    run(&suite::stock(&path), "CREATE TABLE t(x); INSERT INTO t VALUES (1)");
    let reader = open(&path, "&journal_mode=delete");
    run(&reader, "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = shadow");
    assert_eq!(count(&reader), 1);
    let other = suite::open(&path);
    other.busy_timeout(std::time::Duration::ZERO).unwrap();
    assert!(other.execute_batch("INSERT INTO t VALUES (0)").is_err(), "wrote beside it");
    run(&reader, "INSERT INTO t VALUES (2)");
    assert_eq!(count(&reader), 2);
}

/// SQLite tells a file of the busy handler once, when it is opened; here the mode comes later.
#[test]
fn and_waits_as_busy_timeout_says_whenever_its_mode_was_chosen() {
    for more in ["", "&journal_mode=shadow", "&journal_mode=delete"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        run(&suite::stock(&path), "CREATE TABLE t(x); INSERT INTO t VALUES (1)");
        let writer = open(&path, more);
        run(&writer, "PRAGMA journal_mode = shadow; INSERT INTO t VALUES (2)");
        writer.busy_timeout(std::time::Duration::from_secs(60)).unwrap();
        let stock = suite::stock(&path);
        run(&stock, "BEGIN");
        assert_eq!(count(&stock), 2);
        run(&writer, "PRAGMA locking_mode = EXCLUSIVE");
        let reads = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(500));
            run(&stock, "COMMIT");
        });
        for n in 3..6 {
            run(&writer, &format!("INSERT INTO t VALUES ({n})"));
        }
        assert_eq!(count(&writer), 5);
        reads.join().unwrap();
    }
}
