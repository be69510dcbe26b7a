//! `dash_linger`: the database stays open for a while after the last close, and gives way to
//! whoever needs it closed.

mod common;
use common::*;

use std::time::Duration;

use dash_testing::roles::{Role, role};

/// Longer than any test takes.
const LONG: &str = "&dash_linger=60000";
/// Beside a database that is open: the memory that its connections share.
const OPEN: &str = "app.db-dash";

fn insert(folder: &Folder, parameters: &str, value: i64) {
    let db = folder.try_open("app.db", parameters).expect("opens");
    db.execute_batch("CREATE TABLE IF NOT EXISTS t(x)").expect("commits");
    db.execute("INSERT INTO t VALUES (?)", [value]).expect("commits");
}

fn sum(db: &Connection) -> i64 {
    number(db, "SELECT ifnull(sum(x), 0) FROM t")
}

#[test]
fn without_it_a_closed_database_is_closed() {
    let folder = Folder::new();
    insert(&folder, "", 1);
    assert!(!folder.exists(OPEN));
    folder.stock("app.db").execute_batch("INSERT INTO t VALUES (2)").expect("commits");
}

#[test]
fn while_it_lingers_a_change_makes_one_flush_and_stock_writers_wait() {
    let folder = Folder::new();
    insert(&folder, LONG, 1);
    assert!(folder.exists(OPEN));
    for value in 2..5 {
        let db = folder.try_open("app.db", LONG).expect("opens");
        db.execute("INSERT INTO t VALUES (?)", [value]).expect("commits");
        let flushes =
            "SELECT sum(value) FROM dash_stats WHERE name IN ('flushes', 'directory_flushes')";
        let flushes = number(&db, flushes);
        assert!(flushes == 1 || value == 2, "{flushes} flushes");
    }
    let stock = folder.stock("app.db");
    assert_eq!(sum(&stock), 10);
    assert_eq!(code(stock.execute_batch("INSERT INTO t VALUES (9)")), ErrorCode::DatabaseBusy);
    drop(stock);
    // Leaving is for a database that nobody else has open: what lingers is nobody.
    let db = folder.try_open("app.db", LONG).expect("opens");
    assert_eq!(text(&db, "PRAGMA journal_mode=delete"), "delete");
    drop(db);
    assert!(!folder.exists(OPEN) && !folder.exists("app.db-shadow"));
    assert_eq!(sum(&folder.stock("app.db")), 10);
}

#[test]
fn it_ends_by_itself() {
    let folder = Folder::new();
    insert(&folder, "&dash_linger=20", 1);
    for _ in 0..3000 {
        if !folder.exists(OPEN) {
            folder.stock("app.db").execute_batch("INSERT INTO t VALUES (2)").expect("commits");
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it lingers for ever");
}

#[test]
fn a_connection_as_a_plain_file_ends_it() {
    let folder = Folder::new();
    insert(&folder, LONG, 1);
    let db = folder.try_open("app.db", "&journal_mode=delete").expect("opens");
    assert!(!folder.exists(OPEN));
    db.execute_batch("INSERT INTO t VALUES (2)").expect("commits");
    drop(db);
    assert_eq!(sum(&folder.open("app.db")), 3);
}

#[test]
fn a_file_that_was_replaced_meanwhile_is_taken_as_it_is() {
    let folder = Folder::new();
    insert(&folder, "", 1);
    std::fs::copy(folder.path("app.db"), folder.path("backup.db")).expect("copies");
    for way in ["copied over it", "moved there"] {
        insert(&folder, LONG, 5);
        assert_eq!(sum(&folder.try_open("app.db", LONG).expect("opens")), 6);
        assert!(folder.exists(OPEN));
        if way == "moved there" {
            std::fs::rename(folder.path("backup.db"), folder.path("app.db")).expect("renames");
        } else {
            std::fs::copy(folder.path("backup.db"), folder.path("app.db")).expect("copies");
        }
        let db = folder.try_open("app.db", LONG).expect("opens");
        assert_eq!(sum(&db), 1, "{way}");
        whole(&db);
        db.execute_batch("INSERT INTO t VALUES (0)").expect("commits");
    }
    // Removed with all that belongs to it, it is a new database.
    for name in ["app.db", "app.db-shadow"] {
        std::fs::remove_file(folder.path(name)).expect("removes");
    }
    let db = folder.try_open("app.db", LONG).expect("opens");
    assert_eq!(number(&db, "SELECT count(*) FROM sqlite_schema"), 0);
}

#[test]
#[ignore = "a role of the test below"]
fn a_process_that_ends_while_it_lingers() {
    let Some(folder) = role("a_process_that_ends_while_it_lingers") else { return };
    register();
    let path = std::path::Path::new(&folder).join("app.db");
    let db = Connection::open(uri(&path, "dash", LONG)).expect("opens");
    for value in 0..4 {
        db.execute_batch(&format!(
            "CREATE TABLE IF NOT EXISTS t(x); INSERT INTO t VALUES ({value})"
        ))
        .expect("commits");
    }
}

#[test]
fn it_ends_with_the_process() {
    let folder = Folder::new();
    Role::start("a_process_that_ends_while_it_lingers", folder.path(".")).finish();
    assert!(!folder.exists(OPEN) && !folder.exists("app.db-journal"));
    let stock = folder.stock("app.db");
    stock.execute_batch("INSERT INTO t VALUES (4)").expect("commits");
    assert_eq!(sum(&stock), 10);
}
