//! WAL-2, WAL-14: what `dash_durability` and `dash_read` say counts, whatever `synchronous` says:
//! many a host sets NORMAL, and then asks for no flush at all.

use crate::common::Tale;

#[test]
pub(crate) fn in_full_under_normal() {
    for durability in ["full", "device"] {
        for level in ["NORMAL", "OFF"] {
            let (tale, db) = Tale::begun();
            db.synchronous(level);
            db.ok(&format!("PRAGMA dash_durability={durability}"));
            tale.watch();
            for _ in 0..3 {
                db.put();
                tale.all_counts();
            }
            db.restart();
            tale.all_counts();
            tale.done();
            tale.survives_all();
        }
    }
}

/// What was left in the device's cache is flushed with the next barrier, and with the next commit
/// that asks for more.
#[test]
pub(crate) fn in_none_by_the_next_flush() {
    let (tale, db) = Tale::begun();
    let other = tale.open();
    for flush in ["PRAGMA wal_checkpoint(PASSIVE)", "PRAGMA wal_checkpoint(RESTART)"] {
        db.ok("PRAGMA dash_durability=none");
        db.synchronous("NORMAL");
        db.put();
        db.put();
        tale.survives_all();
        other.put();
        tale.survives_all();
        db.put();
        other.ok(flush);
        tale.all_counts();
        tale.survives_all();
    }
}

#[test]
pub(crate) fn to_a_reader_that_wants_it_durable() {
    let (tale, db) = Tale::begun();
    let reader = tale.open();
    reader.ok("PRAGMA dash_read=durable");
    db.synchronous("NORMAL");
    for _ in 0..3 {
        db.put();
        db.put();
        assert_eq!(reader.content(), tale.tried());
        tale.all_counts();
        tale.survives_all();
    }
}

/// `dash_barrier=wal`: the checkpoint flushes `-wal`, and the log is no part of the database then.
#[test]
pub(crate) fn with_the_other_barrier() {
    let (tale, db) = Tale::begun();
    db.ok("PRAGMA dash_barrier=wal");
    tale.watch();
    for _ in 0..2 {
        db.synchronous("NORMAL");
        db.put();
        db.checkpoint("PASSIVE");
        tale.all_counts();
        db.synchronous("FULL");
        db.put();
        db.restart();
        db.put();
    }
    db.ok("PRAGMA dash_barrier=log");
    db.put();
    db.restart();
    db.close();
    tale.done();
    tale.survives_all();
}
