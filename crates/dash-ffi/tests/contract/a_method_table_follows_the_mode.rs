//! Whether a file has shared memory may change with a PRAGMA: WAL mode is possible when it has.

use crate::common::Database;

#[test]
fn a_pragma_may_give_a_file_shared_memory_and_take_it_away() {
    let database = Database::new();
    let db = database.open("").unwrap();
    let ask = |sql: &str| db.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
    db.execute_batch("CREATE TABLE t(x); PRAGMA pass_shm=off").unwrap();
    assert_eq!(ask("PRAGMA journal_mode=WAL"), "delete");
    db.execute_batch("PRAGMA pass_shm=on").unwrap();
    assert_eq!(ask("PRAGMA journal_mode=WAL"), "wal");
    db.execute_batch("INSERT INTO t VALUES (1)").unwrap();
    assert_eq!(ask("PRAGMA journal_mode=DELETE"), "delete");
    db.execute_batch("PRAGMA pass_shm=off; INSERT INTO t VALUES (2)").unwrap();
    assert_eq!(ask("PRAGMA journal_mode=WAL"), "delete");
}
