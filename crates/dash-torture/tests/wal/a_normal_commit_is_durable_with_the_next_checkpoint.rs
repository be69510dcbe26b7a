//! WAL-14: a checkpoint's flush is the first after a commit in NORMAL, whose own flush was never
//! asked for. It is a barrier all the same, and what the checkpoint copies is in the log.

use crate::common::{Db, Tale};

/// A commit in NORMAL, and then `act`, whatever is lost at every step.
fn normal_then(act: impl Fn(&Tale, &Db)) {
    let (tale, db) = Tale::begun();
    db.synchronous("NORMAL");
    db.put();
    tale.watch();
    act(&tale, &db);
    tale.done();
    tale.survives_all();
}

#[test]
pub(crate) fn in_the_same_connection() {
    normal_then(|tale, db| {
        db.checkpoint("PASSIVE");
        tale.all_counts();
    });
}

#[test]
pub(crate) fn in_another_one() {
    normal_then(|tale, _| {
        let other = tale.open();
        other.checkpoint("PASSIVE");
        tale.all_counts();
        other.kill();
    });
}

#[test]
pub(crate) fn whatever_its_kind() {
    for kind in ["FULL", "RESTART", "TRUNCATE"] {
        normal_then(|tale, db| {
            db.checkpoint(kind);
            tale.all_counts();
            db.put();
            db.put();
        });
    }
}

/// And a commit in FULL takes those along that were made in NORMAL before it.
#[test]
pub(crate) fn or_with_the_next_commit_in_full() {
    normal_then(|tale, db| {
        let other = tale.open();
        db.put();
        other.put();
        other.kill();
    });
}

/// The one acknowledged in FULL is durable when it is acknowledged, with one flush of the log.
#[test]
pub(crate) fn and_a_full_one_at_once() {
    let (tale, db) = Tale::begun();
    let [log, wal] = ["-dashlog", "-wal"].map(|ending| tale.flushes(ending));
    for _ in 0..5 {
        db.put();
        tale.survives_all();
    }
    assert_eq!(tale.flushes("-dashlog"), log + 5);
    assert_eq!(tale.flushes("-wal"), wal);
}

/// A commit that failed after its last frame is none: the flush that comes next is a barrier.
#[test]
pub(crate) fn after_a_commit_that_failed() {
    let (tale, db) = Tale::begun();
    db.synchronous("NORMAL");
    db.fails_late();
    let other = tale.open();
    other.synchronous("NORMAL");
    other.put();
    db.checkpoint("PASSIVE");
    tale.all_counts();
    tale.survives_all();
}
