//! The next session of a log begins where the head says, so whoever opens a log at rest need not
//! read it (LOG-12). After a short session the log is begun later.

use dash_storage::simulated::{Effect, Fault, OperationKind};

use crate::common::Tale;

/// Commits of a session that is not short.
const LONG: usize = 6;

/// A database whose last session was of so many commits, a while ago.
fn after(commits: usize) -> Tale {
    let (tale, db) = Tale::begun();
    for _ in 2..commits {
        db.put();
    }
    db.close();
    tale.machine.write_back();
    tale
}

/// Also where the ring's end is near, or a record does not fit before it.
#[test]
pub(crate) fn and_what_comes_next_is_found() {
    for commits in (LONG..30).step_by(3) {
        let tale = after(commits);
        let db = tale.open();
        tale.watch();
        for _ in 0..3 {
            db.put();
        }
        tale.done();
        tale.survives_all();
    }
}

/// The first record's number is skipped, and its place is used again; the head may be the one that
/// says that the log is at rest.
#[test]
pub(crate) fn after_flushes_that_failed_too() {
    for effect in [Effect::LostFlush(libc::EIO), Effect::Error(libc::EIO)] {
        for failures in 1..4 {
            let tale = after(LONG);
            let db = tale.open();
            db.put();
            for _ in 0..failures {
                let flush = Fault::new(effect).on(OperationKind::Flush);
                tale.machine.fail(flush.of_inode(tale.inode("-dashlog")));
                db.put();
                tale.machine.stop_failing();
                tale.survives_all();
            }
            for _ in 0..3 {
                db.put();
                tale.survives_all();
            }
        }
    }
}

#[test]
pub(crate) fn a_short_session_is_followed_by_one_that_begins_it_later() {
    for (before, logged) in [(2, 0), (LONG, 2)] {
        let tale = after(before);
        let db = tale.open();
        let flushes = tale.flushes("-dashlog");
        for _ in 0..3 {
            db.put();
        }
        assert_eq!(tale.flushes("-dashlog") - flushes, logged, "after {before} commits");
        db.put();
        assert!(tale.flushes("-dashlog") > flushes, "it is begun in the end");
        tale.survives_all();
    }
}
