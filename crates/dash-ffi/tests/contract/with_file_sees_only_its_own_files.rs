//! A function reaches the files of its own VFS, attached ones too, and no others.

use crate::common::Database;
use rusqlite::Connection;

#[test]
fn with_file_sees_only_its_own_files() {
    let (ours, stock) = (Database::new(), Database::new());
    let db = ours.open("").unwrap();
    db.execute_batch(&format!(
        "CREATE TEMP TABLE t(x);
         ATTACH 'file:{}?vfs=unix' AS stock; ATTACH ':memory:' AS memory;
         ATTACH 'file:{}2?vfs=pass' AS \"odd name\";",
        stock.path.display(),
        ours.path.display(),
    ))
    .unwrap();
    let kind = |db: &Connection, schema: &str| {
        db.query_row("SELECT pass_kind(?1)", [schema], |row| row.get::<_, String>(0)).unwrap()
    };
    assert_eq!(kind(&db, "main"), "pass");
    assert_eq!(kind(&db, "odd name"), "pass");
    for other in ["stock", "memory", "temp", "no such schema", "zero\0byte"] {
        assert_eq!(kind(&db, other), "none", "{other}");
    }
    let memory = Connection::open_in_memory().unwrap();
    assert_eq!(kind(&memory, "main"), "none");
    let plain = Connection::open(&stock.path).unwrap();
    assert_eq!(kind(&plain, "main"), "none");
}

#[test]
fn a_file_is_visited_once_at_a_time() {
    let database = Database::new();
    let db = database.open("").unwrap();
    let twice: i64 = db.query_row("SELECT pass_twice()", [], |row| row.get(0)).unwrap();
    assert_eq!(twice, 0);
    db.execute_batch("CREATE TABLE t(x)").unwrap();
}
