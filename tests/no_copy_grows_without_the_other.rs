//! Mode shadow on a disk that becomes full: no copy grows to where the other one can't follow, so
//! what needs no space is possible there, as it is with stock SQLite.

mod suite;

use dash_testing::mounts::Mount;
use rusqlite::{Connection, ErrorCode};
use suite::peers::last_error;
use suite::uri;

/// Whether it was done; an error must be SQLITE_FULL.
fn fits(done: rusqlite::Result<()>) -> bool {
    match done {
        Ok(()) => true,
        Err(error) => {
            let code = error.sqlite_error_code();
            assert_eq!(code, Some(ErrorCode::DiskFull), "{error}: {}", last_error());
            false
        }
    }
}

/// Commits until there is no space. How many there were.
fn until_full(db: &Connection) -> i64 {
    let rows = "INSERT INTO t(v) VALUES (randomblob(8000)), (randomblob(8000)), (randomblob(8000))";
    let mut commits = 0;
    while fits(db.execute_batch(rows)) {
        commits += 1;
    }
    commits
}

/// What takes no space is possible on the full disk, as it is with stock SQLite: one copy never
/// grows to where the other one can't follow.
#[test]
fn a_database_that_grew_until_there_was_no_space_can_be_changed() {
    for size in 8..=16 {
        let Some(mount) = Mount::tmpfs(&format!("{size}m")) else { return };
        let path = mount.path().join("app.db");
        suite::load();
        let table = "CREATE TABLE t(id INTEGER PRIMARY KEY, v BLOB)";
        let db = Connection::open(uri(&path, "&journal_mode=shadow")).expect("opens");
        db.execute_batch(table).expect("there is space");
        let commits = until_full(&db);
        assert!(commits * 56 > size * 1024, "{size} MiB hold {commits} commits");
        let change = |db: &Connection, id: i64, sql: &str| {
            let changed = db.execute(sql, [id]);
            let changed = changed.unwrap_or_else(|error| {
                panic!("{size} MiB, {id}: {error}: {}", last_error());
            });
            assert_eq!(changed, 1);
        };
        change(&db, 3, "UPDATE t SET v = x'00' WHERE id = ?");
        change(&db, 5, "DELETE FROM t WHERE id = ?");
        // Nor does what was rolled back keep space.
        db.execute_batch("BEGIN").expect("begins");
        db.execute("UPDATE t SET v = zeroblob(7000) WHERE id = ?", [7]).expect("in memory");
        db.execute_batch("ROLLBACK").expect("needs no space");
        db.close().expect("closes");
        let db = Connection::open(uri(&path, "")).expect("opens");
        change(&db, 9, "DELETE FROM t WHERE id = ?");
        db.execute_batch("DELETE FROM t WHERE id > 10").expect("takes no space");
        suite::check(&db);
    }
}

/// A database of which no second copy can be made: that is said, with what to do.
#[test]
fn a_database_of_which_there_is_no_room_for_two() {
    let Some(mount) = Mount::tmpfs("4m") else { return };
    let path = mount.path().join("app.db");
    suite::load();
    let stock = suite::stock(&path);
    let tables = "CREATE TABLE t(id INTEGER PRIMARY KEY, v BLOB); CREATE TABLE s AS SELECT 1 AS n";
    stock.execute_batch(tables).expect("there is space");
    stock.execute("INSERT INTO t(v) VALUES (randomblob(2500000))", []).expect("there is space");
    stock.close().expect("closes");
    let db = Connection::open(uri(&path, "&journal_mode=shadow")).expect("opens");
    for _ in 0..2 {
        assert!(!fits(db.execute_batch("UPDATE s SET n = 2")));
        let why = last_error();
        assert!(why.contains("second copy") && why.contains("journal_mode=delete"), "{why}");
    }
    let mode = suite::one::<String>(&db, "PRAGMA journal_mode=delete");
    assert_eq!(mode, "delete", "{}", last_error());
    db.execute_batch("UPDATE s SET n = 2").expect("takes no space");
}
