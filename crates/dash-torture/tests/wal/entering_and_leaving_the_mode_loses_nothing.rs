//! WAL-1, WAL-6: WAL mode is entered and left in a transaction with a rollback journal, whose name
//! is that of the fence.

use crate::common::Tale;

#[test]
pub(crate) fn there_and_back() {
    for mode in ["DELETE", "TRUNCATE", "PERSIST"] {
        let (tale, db) = Tale::begun();
        tale.watch();
        for _ in 0..2 {
            db.synchronous("EXTRA");
            let left: String = db.value(&format!("PRAGMA journal_mode={mode}")).unwrap();
            assert_eq!(left.to_uppercase(), mode);
            db.put();
            let entered: String = db.value("PRAGMA journal_mode=WAL").unwrap();
            assert_eq!(entered, "wal");
            db.synchronous("FULL");
            for _ in 0..3 {
                db.put();
            }
        }
        db.close();
        tale.done();
        tale.survives_all();
    }
}

/// One connection for itself, with and without shared memory.
#[test]
pub(crate) fn in_exclusive_mode() {
    let (tale, db) = Tale::begun();
    tale.watch();
    db.ok("PRAGMA locking_mode=EXCLUSIVE");
    for _ in 0..3 {
        db.put();
    }
    db.restart();
    db.checkpoint("TRUNCATE");
    db.put();
    tale.done();
    tale.survives_all();
    db.ok("PRAGMA locking_mode=NORMAL");
    db.put();
    tale.survives_all();
}
