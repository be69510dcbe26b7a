//! Deleting a journal makes its directory durable exactly when synchronous=EXTRA asks for it.

use crate::common::Database;

#[test]
fn x_delete_passes_sync_dir() {
    let database = Database::new();
    let db = database.open("").unwrap();
    db.execute_batch("CREATE TABLE t(x)").unwrap();
    for (level, sync_dir) in [("FULL", false), ("EXTRA", true)] {
        database.probe.take("");
        db.execute_batch(&format!("PRAGMA synchronous={level}; INSERT INTO t VALUES (1)")).unwrap();
        assert_eq!(database.probe.take("xDelete"), [format!("xDelete sync_dir={sync_dir}")]);
    }
}
