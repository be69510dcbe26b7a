//! A file may keep the connection that opened it, and ask it within its callbacks, and within those
//! of a log that shares its door.

use crate::common::Database;

fn others(database: &Database) -> Vec<String> {
    let mut seen = database.probe.take("others");
    seen.dedup();
    seen
}

#[test]
fn a_file_is_told_whether_its_transaction_writes_another_one() {
    for mode in ["WAL", "DELETE"] {
        let (database, second) = (Database::new(), Database::new());
        let db = database.open("").unwrap();
        let attach = format!("ATTACH '{}' AS \"se\"\"cond\"", second.path.display());
        db.execute_batch(&attach).unwrap();
        let set = format!("PRAGMA journal_mode={mode}; PRAGMA synchronous=FULL; CREATE TABLE t(x)");
        db.execute_batch(&set).unwrap();
        db.execute_batch("CREATE TABLE \"se\"\"cond\".u(x); CREATE TEMP TABLE v(x)").unwrap();
        others(&database);

        db.execute_batch("INSERT INTO t VALUES (1)").unwrap();
        assert_eq!(others(&database), ["others Some(false)"], "{mode}");
        let read = "BEGIN; SELECT * FROM u; INSERT INTO v VALUES (1); INSERT INTO t VALUES (2)";
        db.execute_batch(read).unwrap();
        db.execute_batch("COMMIT").unwrap();
        assert_eq!(others(&database), ["others Some(false)"], "{mode}");
        others(&second);
        let both = "BEGIN; INSERT INTO t VALUES (3); INSERT INTO u VALUES (3); COMMIT";
        db.execute_batch(both).unwrap();
        assert_eq!(others(&database), ["others Some(true)"], "{mode}");
        db.execute_batch("INSERT INTO u VALUES (4)").unwrap();
        assert_eq!(others(&second), ["others Some(true)", "others Some(false)"], "{mode}");
        assert!(others(&database).is_empty());
    }
}

#[test]
fn a_connection_is_asked_within_callbacks_of_its_file_only() {
    let database = Database::new();
    let db = database.open("").unwrap();
    db.execute_batch("CREATE TABLE t(x)").unwrap();
    let kept = database.probe.kept.lock().unwrap();
    assert_eq!(kept.as_ref().unwrap().visit(|_| ()), None);
}
