//! FT14: `VACUUM` of a large database gives disk space back: of both files of mode shadow, of
//! `app.db`, `-wal` and the log of mode wal, at the last close and where the database comes to
//! rest; while it is open as holes. Nobody who reads or maps an older state loses a page of it.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

mod suite;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dash_testing::names::beside;
use rusqlite::Connection;
use suite::sql::{at_rest, content, run, stat};

const ROWS: &str = "SELECT * FROM t ORDER BY id";
/// 50 MB.
const FILL: &str = "CREATE TABLE t(id INTEGER PRIMARY KEY, v, data); CREATE TABLE kept(v);
    INSERT INTO kept VALUES (1);
    WITH n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 12500)
    INSERT INTO t SELECT i, i * 31 % 600, zeroblob(3900) FROM n";
/// What two files of mode shadow may take of a database of ten pages.
const SMALL: u64 = 320 << 10;

fn both(path: &Path) -> [PathBuf; 2] {
    [path.to_path_buf(), beside(path, "-shadow")]
}

fn lens(path: &Path) -> [u64; 2] {
    both(path).map(|file| fs::metadata(file).unwrap().len())
}

/// Bytes on the disk.
fn blocks(path: &Path) -> [u64; 2] {
    both(path).map(|file| fs::metadata(file).unwrap().blocks() * 512)
}

fn are_small(lens: [u64; 2]) -> bool {
    lens.iter().all(|&len| len <= SMALL)
}

fn filled(path: &Path, parameters: &str) -> Connection {
    let db = suite::open_dash(path.as_os_str(), parameters).unwrap();
    run(&db, FILL);
    run(&db, "UPDATE kept SET v = 2");
    db
}

/// The same, which a single commit makes smaller: a reader keeps the next one waiting.
fn filled_at_once(path: &Path) -> Connection {
    run(&suite::open(path), "PRAGMA auto_vacuum = full; VACUUM");
    filled(path, "&dash_rest=off")
}

fn shrink_at_once(db: &Connection) {
    run(db, "DELETE FROM t WHERE id > 20");
    assert!(suite::one::<i64>(db, "PRAGMA page_count") < 30);
}

fn shrink(db: &Connection) {
    run(db, "DELETE FROM t WHERE id > 20; VACUUM");
    assert!(suite::one::<i64>(db, "PRAGMA page_count") < 30);
}

#[test]
fn at_the_last_close() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = filled(&path, "");
    assert!(lens(&path).iter().all(|&len| len > 50_000_000), "{:?}", lens(&path));
    shrink(&db);
    let rows = content(&db, ROWS);
    drop(db);
    assert!(are_small(lens(&path)), "{:?}", lens(&path));
    let rested = at_rest(&path);
    assert_eq!(content(&rested, ROWS), rows);
    drop(rested);
    // It goes on growing and shrinking.
    for _ in 0..2 {
        let db = suite::open(&path);
        assert_eq!(content(&db, ROWS), rows);
        run(&db, "INSERT INTO t(v, data) SELECT v, randomblob(40000) FROM t");
        suite::check(&db);
        run(&db, "DELETE FROM t WHERE id > 20; VACUUM");
        drop(db);
        assert!(are_small(lens(&path)), "{:?}", lens(&path));
        drop(at_rest(&path));
    }
}

#[test]
fn where_the_database_comes_to_rest() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = filled(&path, "&dash_rest=50");
    shrink(&db);
    let rows = content(&db, ROWS);
    let begun = Instant::now();
    while !are_small(lens(&path)) {
        assert!(begun.elapsed() < Duration::from_secs(120), "{:?}", lens(&path));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(content(&db, ROWS), rows);
    run(&db, "INSERT INTO t(v, data) SELECT v, randomblob(40000) FROM t");
    suite::check(&db);
}

/// A stock reader has the older state open and mapped, in the middle of a statement: no file that
/// it has open is cut. When it has left the next session's close gives all back.
#[test]
fn not_under_a_stock_reader() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = filled_at_once(&path);
    let rows = content(&db, ROWS);
    let stock = suite::stock(&path);
    assert!(suite::one::<i64>(&stock, "PRAGMA mmap_size = 1073741824") > 0);
    run(&stock, "PRAGMA cache_size = 5; BEGIN");
    assert_eq!(content(&stock, ROWS), rows);
    shrink_at_once(&db);
    let now = content(&db, ROWS);
    drop(db);
    assert_eq!(content(&stock, ROWS), rows, "after the close");
    let longest = lens(&path).into_iter().max().unwrap();
    assert!(longest > 50_000_000, "the file that is being read was cut: {longest}");
    run(&stock, "COMMIT");
    drop(stock);
    let db = suite::open(&path);
    assert_eq!(content(&db, ROWS), now);
    run(&db, "UPDATE kept SET v = v + 1");
    drop(db);
    assert!(are_small(lens(&path)), "{:?}", lens(&path));
    assert_eq!(content(&at_rest(&path), ROWS), now);
}

/// One commit gives back what its own copy has behind the end, the next one what the other has.
#[test]
fn as_holes_while_it_is_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = filled(&path, "&dash_rest=off");
    let before = lens(&path);
    shrink(&db);
    run(&db, "UPDATE kept SET v = v + 1");
    assert!(are_small(blocks(&path)), "{:?}", blocks(&path));
    assert_eq!(lens(&path), before, "a file was cut while it was open");
    assert!(stat(&db, "given_back_bytes") > 90_000_000);
    run(&db, "INSERT INTO t(v, data) SELECT v, randomblob(40000) FROM t");
    run(&db, "UPDATE kept SET v = v + 1");
    suite::check(&db);
    let rows = content(&db, ROWS);
    drop(db);
    assert_eq!(content(&at_rest(&path), ROWS), rows);
}

/// Readers of dash, one that maps and one that does not, see their snapshot to its end.
#[test]
fn not_under_a_reader_of_dash() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = filled_at_once(&path);
    let rows = content(&db, ROWS);
    let readers = ["", "PRAGMA mmap_size = 1073741824;"].map(|pragma| {
        let reader = suite::open_dash(path.as_os_str(), "&dash_rest=off").unwrap();
        // `content` needs every row, the cache holds five pages.
        reader.query_row("SELECT 1", [], |_| Ok(())).unwrap();
        if !pragma.is_empty() {
            assert_eq!(suite::one::<i64>(&reader, pragma), 1 << 30);
        }
        run(&reader, "PRAGMA cache_size = 5; BEGIN");
        assert_eq!(content(&reader, ROWS), rows);
        reader
    });
    shrink_at_once(&db);
    for reader in &readers {
        assert_eq!(content(reader, ROWS), rows, "after the first commit");
    }
    run(&readers[1], "COMMIT");
    for _ in 0..3 {
        run(&db, "UPDATE kept SET v = v + 1");
        assert_eq!(content(&readers[0], ROWS), rows, "after more commits");
    }
    run(&readers[0], "COMMIT");
    for _ in 0..2 {
        run(&db, "UPDATE kept SET v = v + 1");
    }
    assert!(are_small(blocks(&path)), "{:?}", blocks(&path));
    let now = content(&db, ROWS);
    assert_eq!(content(&readers[0], ROWS), now);
    drop(readers);
    drop(db);
    assert!(are_small(lens(&path)), "{:?}", lens(&path));
    assert_eq!(content(&at_rest(&path), ROWS), now);
}

fn len(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |found| found.len())
}

/// A database in mode wal whose log has grown, and that was made small; and its log.
fn shrunk_in_mode_wal(path: &Path, parameters: &str) -> (Connection, PathBuf) {
    let log = beside(path, "-dashlog");
    let parameters = format!("&journal_mode=wal&dash_rest=50{parameters}");
    let db = suite::open_dash(path.as_os_str(), &parameters).unwrap();
    run(&db, "PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = FULL");
    run(&db, FILL);
    for from in (0..12_000).step_by(200) {
        let rows = format!("WHERE id BETWEEN {from} AND {from} + 190");
        run(&db, &format!("UPDATE t SET data = randomblob(3900) {rows}"));
    }
    assert!(len(&log) > 8 << 20, "{}", len(&log));
    shrink(&db);
    (db, log)
}

/// SQLite cuts `app.db` at a checkpoint and removes `-wal`; a log that has grown goes with it.
#[test]
fn in_mode_wal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let (db, log) = shrunk_in_mode_wal(&path, "");
    let rows = content(&db, ROWS);
    run(&db, "PRAGMA wal_checkpoint(TRUNCATE)");
    assert!(len(&path) <= SMALL, "{}", len(&path));
    assert_eq!(len(&beside(&path, "-wal")), 0);
    drop(db);
    assert_eq!((len(&log), beside(&path, "-wal").exists()), (0, false));
    assert!(len(&path) <= SMALL, "{}", len(&path));
    assert_eq!(content(&suite::stock(&path), ROWS), rows);
    let db = suite::open_dash(path.as_os_str(), "&journal_mode=wal").unwrap();
    for _ in 0..3 {
        run(&db, "UPDATE kept SET v = v + 1");
    }
    assert_eq!(content(&db, ROWS), rows);
    drop(db);
    assert!((1..=512 << 10).contains(&len(&log)), "{}", len(&log));
}

/// What commits ran is in the log.
#[test]
fn not_the_log_that_tells_of_statements() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let (db, log) = shrunk_in_mode_wal(&path, "&dash_statements=on");
    drop(db);
    assert!(len(&log) > 8 << 20, "{}", len(&log));
}
