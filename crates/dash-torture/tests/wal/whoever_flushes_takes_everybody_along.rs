//! WAL-5: a commit stands on those before it. Whoever flushes takes along what others have left:
//! in NORMAL, or because they were killed before their own flush.

use dash_simulated::OperationKind;

use crate::common::Tale;

#[test]
pub(crate) fn what_was_committed_in_normal() {
    let (tale, db) = Tale::begun();
    let other = tale.open();
    other.synchronous("NORMAL");
    for count in 1..4 {
        for _ in 0..count {
            other.put();
        }
        db.put();
        tale.survives_all();
    }
}

#[test]
pub(crate) fn what_a_killed_process_had_not_flushed() {
    for kind in [OperationKind::Write, OperationKind::Flush] {
        for after in [false, true] {
            let (tale, db) = Tale::begun();
            let log = tale.inode("-dashlog");
            let other = tale.open();
            let died = other.dies(
                after,
                move |operation| operation.kind == kind && operation.inode == log,
                |other| assert!(other.try_put().is_err()),
            );
            assert!(died);
            assert_eq!(db.content(), tale.tried(), "its commit is visible");
            db.put();
            tale.survives_all();
            db.put();
            tale.survives_all();
        }
    }
}

/// A transaction of several frames, and one frame of another's.
#[test]
pub(crate) fn every_frame_of_a_large_one() {
    let (tale, db) = Tale::begun();
    let other = tale.open();
    other.synchronous("NORMAL");
    other.scribble(9).unwrap();
    other.put_in_it();
    db.ok("BEGIN IMMEDIATE; INSERT INTO big VALUES(7); COMMIT");
    tale.all_counts();
    tale.survives_all();
}
