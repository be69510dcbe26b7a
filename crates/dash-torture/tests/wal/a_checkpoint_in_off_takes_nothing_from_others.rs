//! WAL-12: under `synchronous=OFF` a checkpoint asks for no flush at all. What others have
//! committed in FULL is to survive it all the same.

use crate::common::Tale;

fn off_does(sql: &[&str], same_process: bool) {
    let (tale, db) = Tale::begun();
    let off = if same_process { db.another() } else { tale.open() };
    off.synchronous("OFF");
    for _ in 0..2 {
        db.put();
        // Pages that no record holds, and others that some hold.
        off.scribble(3).unwrap();
        off.put_in_it();
        tale.watch();
        for sql in sql {
            off.ok(sql);
        }
        off.put();
        db.put();
        tale.done();
        tale.survives_all();
    }
    tale.watch();
    db.close();
    off.close();
    tale.done();
    tale.survives_all();
}

#[test]
pub(crate) fn passive() {
    off_does(&["PRAGMA wal_checkpoint(PASSIVE)"], false);
    off_does(&["PRAGMA wal_checkpoint(PASSIVE)"], true);
}

#[test]
pub(crate) fn restart() {
    off_does(&["PRAGMA wal_checkpoint(RESTART)"], false);
}

#[test]
pub(crate) fn truncate() {
    off_does(&["PRAGMA wal_checkpoint(TRUNCATE)"], false);
}

/// The next header is another connection's, which knows nothing of pages that were not flushed.
#[test]
pub(crate) fn and_then_somebody_else_begins_anew() {
    let (tale, db) = Tale::begun();
    let off = tale.open();
    off.synchronous("OFF");
    for _ in 0..3 {
        db.put();
        off.checkpoint("PASSIVE");
        tale.watch();
        db.put();
        tale.done();
        tale.survives_all();
    }
}

/// What was committed through a journal, before WAL mode was entered again, is in the database
/// only.
#[test]
pub(crate) fn after_commits_in_a_rollback_mode() {
    let tale = Tale::new();
    let db = tale.open();
    db.synchronous("EXTRA");
    assert_eq!(db.value::<String>("PRAGMA journal_mode=DELETE").unwrap(), "delete");
    db.put();
    assert_eq!(db.value::<String>("PRAGMA journal_mode=WAL").unwrap(), "wal");
    let off = tale.open();
    off.synchronous("OFF");
    for _ in 0..2 {
        off.scribble(3).unwrap();
        off.put_in_it();
        off.checkpoint("PASSIVE");
        tale.watch();
        db.put();
        tale.done();
        tale.survives_all();
    }
}

/// Who has the database exclusively takes no lock that tells where a checkpoint begins. The flush
/// of a new header was taken for the barrier of the next checkpoint.
#[test]
pub(crate) fn alone_and_without_locks() {
    let (tale, db) = Tale::begun();
    db.ok("PRAGMA locking_mode=EXCLUSIVE");
    db.put();
    db.restart();
    db.synchronous("OFF");
    db.scribble(3).unwrap();
    db.put_in_it();
    tale.watch();
    db.checkpoint("PASSIVE");
    tale.done();
    tale.survives_all();
}
