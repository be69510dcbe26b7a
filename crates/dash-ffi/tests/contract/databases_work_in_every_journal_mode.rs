//! A pass-through VFS is invisible: data written through it are there, whole, for stock SQLite.

use crate::common::Database;
use rusqlite::Connection;

#[test]
fn databases_work_in_every_journal_mode() {
    for mode in ["DELETE", "TRUNCATE", "PERSIST", "MEMORY", "WAL", "OFF"] {
        let database = Database::new();
        let writer = database.open("").unwrap();
        let answer: String =
            writer.query_row(&format!("PRAGMA journal_mode={mode}"), [], |row| row.get(0)).unwrap();
        assert_eq!(answer, mode.to_lowercase());
        writer.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").unwrap();

        let reader = database.open("").unwrap();
        for n in 2..20 {
            writer.execute("INSERT INTO t VALUES (?1)", [n]).unwrap();
            let sum: i64 = reader.query_row("SELECT sum(x) FROM t", [], |row| row.get(0)).unwrap();
            assert_eq!(sum, n * (n + 1) / 2, "{mode}");
        }
        drop((writer, reader));

        let stock = Connection::open(&database.path).unwrap();
        let check: String =
            stock.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(check, "ok", "{mode}");
    }
}

#[test]
fn temporary_files_have_no_name_and_work() {
    let database = Database::new();
    let db = database.open("").unwrap();
    db.execute_batch(
        "PRAGMA temp_store=FILE; PRAGMA cache_size=5;
         CREATE TEMP TABLE t AS
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
             SELECT i, randomblob(200) AS b FROM n;
         CREATE INDEX temp.t_b ON t(b);",
    )
    .unwrap();
    let rows: i64 = db.query_row("SELECT count(*) FROM temp.t", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 5000);
}

#[test]
fn a_transaction_over_two_files_names_its_super_journal() {
    let (one, two) = (Database::new(), Database::new());
    let db = one.open("").unwrap();
    let attach = format!("ATTACH 'file:{}?vfs=pass' AS two", two.path.display());
    db.execute_batch(&format!("{attach}; CREATE TABLE t(x); CREATE TABLE two.t(x);")).unwrap();
    one.probe.take("");
    db.execute_batch("BEGIN; INSERT INTO main.t VALUES (1); INSERT INTO two.t VALUES (1); COMMIT;")
        .unwrap();
    let synced = one.probe.take("xFileControl Sync");
    assert_eq!(synced.len(), 1);
    assert!(synced[0].contains("app.db-mj"), "{synced:?}");
}
