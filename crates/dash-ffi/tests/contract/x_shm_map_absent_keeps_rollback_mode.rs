//! A file without shared memory keeps its journal mode when WAL is asked for, without an error.

use crate::common::Database;

#[test]
fn x_shm_map_absent_keeps_rollback_mode() {
    let database = Database::new();
    let ask = |parameters: &str, sql: &str| -> String {
        let db = database.open(parameters).unwrap();
        db.execute_batch("CREATE TABLE IF NOT EXISTS t(x)").unwrap();
        db.query_row(sql, [], |row| row.get(0)).unwrap()
    };
    assert_eq!(ask("&shm=no", "PRAGMA journal_mode=WAL"), "delete");
    assert_eq!(ask("", "PRAGMA journal_mode=WAL"), "wal");
    let db = database.open("&shm=no").unwrap();
    assert!(db.execute_batch("SELECT * FROM t").is_err(), "a file in WAL mode can't be read then");
}
