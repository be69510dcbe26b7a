//! The contract with stock SQLite, first row: a database that was closed cleanly is a plain SQLite
//! file. Whatever stock SQLite makes of it is what dash goes on with; the shadow is made anew.

mod suite;

use std::path::Path;

use dash_testing::machine::has_sqlite3;
use dash_testing::names::{beside, exists, names};
use suite::damage::shadow;
use suite::peers::{Session, sqlite3};
use suite::{check, one, open};

/// A database with ten rows, closed; several commits, so that both copies were used.
fn made(path: &Path) {
    let db = open(path);
    db.execute_batch("CREATE TABLE t(a)").expect("commits");
    for row in 1..=10 {
        db.execute("INSERT INTO t VALUES (?)", [row]).expect("commits");
    }
    db.close().expect("closes");
}

/// Rows through dash, which then commits often enough to have used both copies.
fn dash_goes_on(path: &Path, rows: i64, what: &str) {
    let db = open(path);
    assert_eq!(one::<i64>(&db, "SELECT count(*) FROM t"), rows, "{what}");
    for more in 1..=3 {
        db.execute_batch("INSERT INTO t(a) VALUES ('dash')")
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(one::<i64>(&db, "SELECT count(*) FROM t"), rows + more, "{what}");
    }
    check(&db);
    db.close().expect("closes");
    let mut stock = Session::stock(path);
    assert_eq!(stock.must("SELECT count(*) FROM t"), (rows + 3).to_string(), "{what}");
    assert_eq!(stock.must("PRAGMA integrity_check"), "ok", "{what}");
}

#[test]
fn stock_sqlite_reads_the_newest_state_of_a_plain_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    made(&path);
    assert_eq!(names(folder.path()), ["app.db", "app.db-shadow"]);
    let mut stock = Session::stock(&path);
    assert_eq!(stock.must("SELECT count(*), sum(a) FROM t"), "10,55");
    assert_eq!(stock.must("PRAGMA integrity_check"), "ok");
    assert_eq!(stock.must("PRAGMA journal_mode"), "delete");
    if has_sqlite3() {
        let answer = sqlite3(&path, "SELECT count(*) FROM t; PRAGMA integrity_check");
        assert_eq!(answer.unwrap(), "10\nok");
    }
}

#[test]
fn whatever_stock_sqlite_writes_dash_goes_on_with() {
    let writes: [(&str, &[&str], i64); 9] = [
        ("an insert", &["INSERT INTO t VALUES ('stock')"], 11),
        ("a delete of everything", &["DELETE FROM t"], 0),
        ("growth", &["INSERT INTO t SELECT zeroblob(3000) FROM t, t AS u"], 110),
        ("a vacuum", &["DELETE FROM t WHERE a > 5", "VACUUM"], 5),
        ("another page size", &["PRAGMA page_size=512", "VACUUM"], 10),
        (
            "WAL mode and back",
            &["PRAGMA journal_mode=WAL", "INSERT INTO t VALUES (0)", "PRAGMA journal_mode=DELETE"],
            11,
        ),
        ("WAL mode", &["PRAGMA journal_mode=WAL", "INSERT INTO t VALUES (0)"], 11),
        ("a journal that stays", &["PRAGMA journal_mode=PERSIST", "INSERT INTO t VALUES (0)"], 11),
        ("a schema change", &["ALTER TABLE t ADD COLUMN b", "CREATE INDEX i ON t(b)"], 10),
    ];
    for (what, statements, rows) in writes {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        made(&path);
        let mut stock = Session::stock(&path);
        for statement in statements {
            stock.must(statement);
        }
        stock.close();
        dash_goes_on(&path, rows, what);
    }
}

#[test]
fn a_write_that_leaves_the_change_counter_as_it_was_is_noticed() {
    // Two writers that never met can reach the same counter; here one goes back to it by hand.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    made(&path);
    let before = std::fs::read(&path).unwrap();
    let mut stock = Session::stock(&path);
    stock.must("UPDATE t SET a = a + 100 WHERE a = 10");
    stock.close();
    for range in [24..28, 92..96] {
        suite::damage::put(&path, range.start as u64, &before[range]);
    }
    let db = open(&path);
    assert_eq!(one::<i64>(&db, "SELECT max(a) FROM t"), 110);
    for _ in 0..2 {
        db.execute_batch("UPDATE t SET a = a + 1 WHERE a > 100").unwrap();
    }
    assert_eq!(one::<i64>(&db, "SELECT sum(a) FROM t"), 45 + 112);
    check(&db);
}

#[test]
fn neither_reading_nor_writing_at_rest_touches_the_shadow_or_leaves_a_fence() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    made(&path);
    let before = std::fs::read(shadow(&path)).unwrap();
    let mut stock = Session::stock(&path);
    stock.must("SELECT count(*) FROM t");
    stock.must("INSERT INTO t VALUES (11)");
    stock.close();
    assert!(std::fs::read(shadow(&path)).unwrap() == before);
    assert!(!exists(&beside(&path, "-journal")) && !exists(&beside(&path, "-dash")));
    dash_goes_on(&path, 11, "afterwards");
}
