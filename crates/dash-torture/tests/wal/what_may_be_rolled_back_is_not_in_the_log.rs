//! WAL-3: where other databases are written in the same transaction, a commit is made durable
//! before it is visible, and may still be rolled back then. The next transaction uses its frames'
//! numbers again, and is the one that counts.

use crate::common::Tale;

#[test]
pub(crate) fn where_it_is_committed_in_the_end() {
    let (tale, db) = Tale::begun();
    let log = tale.writes("-dashlog");
    tale.watch();
    db.ok("PRAGMA undeferred=1");
    for _ in 0..3 {
        db.put();
    }
    tale.done();
    assert_eq!(tale.writes("-dashlog"), log, "it writes no record");
    db.ok("PRAGMA undeferred=0");
    tale.watch();
    for _ in 0..3 {
        db.put();
    }
    tale.done();
    tale.survives_all();
}

/// The wal-index needs another region after the flush, and can't have it: an error that SQLite
/// rolls back at.
#[test]
pub(crate) fn where_it_is_rolled_back() {
    let (tale, db) = Tale::begun();
    db.ok("PRAGMA undeferred=1");
    db.fails_late();
    db.ok("PRAGMA undeferred=0");
    db.put();
    tale.survives_all();
    db.put();
    tale.survives_all();
}
