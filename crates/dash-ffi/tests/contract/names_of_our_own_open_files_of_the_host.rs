//! `HostVfs::open_path` lays a name out as SQLite does: the host's file works with it in every
//! mode.

use crate::common::Database;

#[test]
fn names_of_our_own_open_files_of_the_host() {
    for mode in ["DELETE", "WAL"] {
        let database = Database::new();
        let db = database.open("&own=1").unwrap();
        let sql =
            format!("PRAGMA journal_mode={mode}; CREATE TABLE t(x); INSERT INTO t VALUES (1)");
        db.execute_batch(&sql).unwrap();
        let second = database.open("&own=1").unwrap();
        let rows: i64 = second.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 1, "{mode}");
    }
}
