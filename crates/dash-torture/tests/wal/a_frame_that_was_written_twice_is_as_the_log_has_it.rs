//! WAL-13: what was rolled back, or never became visible, leaves valid frames in `-wal`, and the
//! next transaction uses their numbers again. The device may keep the former ones.

use dash_simulated::OperationKind;

use crate::common::{PAGE, Tale};

/// Bytes of a frame, which is written at once.
const FRAME: u64 = 24 + PAGE as u64;

#[test]
pub(crate) fn after_a_transaction_that_spilled_was_rolled_back() {
    for (rows, written_back) in [(30, false), (30, true), (60, true), (200, true)] {
        let (tale, db) = Tale::begun();
        for _ in 0..3 {
            db.put();
            db.scribble(rows).unwrap();
            db.ok("ROLLBACK");
            if written_back {
                tale.machine.write_back();
            }
            tale.survives_all();
            db.put();
            tale.survives_all();
            db.put();
            tale.survives_all();
        }
    }
}

/// Frames that spilled, and were written again in place before the commit.
#[test]
pub(crate) fn after_a_transaction_that_spilled_was_committed() {
    let (tale, db) = Tale::begun();
    for _ in 0..3 {
        db.scribble(16).unwrap();
        db.ok("UPDATE big SET v = randomblob(390)");
        db.ok("SAVEPOINT s; UPDATE big SET v = randomblob(380); ROLLBACK TO s; RELEASE s");
        db.put_in_it();
        tale.survives_all();
        db.put();
        tale.survives_all();
    }
}

/// The last thing that SQLite writes of such a transaction is the commit frame's header, by itself.
/// Nothing else may be asked of `-wal` before the commit is to be durable.
#[test]
pub(crate) fn also_where_its_last_header_is_the_last_call() {
    for locking in ["NORMAL", "EXCLUSIVE"] {
        let (tale, db) = Tale::begun();
        db.ok("PRAGMA synchronous=NORMAL; PRAGMA dash_durability=full");
        db.ok(&format!("PRAGMA locking_mode={locking}"));
        db.put();
        for _ in 0..3 {
            db.scribble(16).unwrap();
            db.ok("UPDATE big SET v = randomblob(390)");
            db.put_in_it();
            tale.survives_all();
        }
    }
}

/// Others write in the place of what was rolled back, and whoever did that makes it durable.
#[test]
pub(crate) fn after_others_wrote_over_what_was_rolled_back() {
    let (tale, db) = Tale::begun();
    let other = tale.open();
    db.ok("PRAGMA cache_size=1");
    other.ok("PRAGMA synchronous=NORMAL");
    for spilled in 1..14 {
        db.ok("BEGIN IMMEDIATE");
        db.ok(&format!("INSERT INTO big VALUES (randomblob({spilled} * 1024))"));
        db.ok("ROLLBACK");
        other.put();
        db.checkpoint("PASSIVE");
        tale.survives_all();
        db.put();
        db.restart();
    }
}

/// What a savepoint took back is written over, also where the transaction ends at the same frame.
#[test]
pub(crate) fn after_a_savepoint_was_rolled_back() {
    let (tale, db) = Tale::begun();
    db.ok("PRAGMA cache_size=1");
    for (spilled, pages) in (2..20).flat_map(|spilled| [(spilled, 1), (spilled, 2)]) {
        db.ok("BEGIN IMMEDIATE; SAVEPOINT s");
        db.ok(&format!("INSERT INTO big VALUES (randomblob({spilled} * 1024))"));
        db.ok("ROLLBACK TO s; RELEASE s");
        db.ok(&format!("INSERT INTO big VALUES (randomblob({pages} * 1024))"));
        db.put_in_it();
        tale.survives_all();
        db.restart();
    }
}

/// A process dies with its commit frame in `-wal`, and before the index says so. Its frames are
/// valid, end at a commit, and were never visible.
#[test]
pub(crate) fn after_a_process_died_before_its_commit_was_visible() {
    for (after, written_back) in [(false, false), (true, false), (false, true), (true, true)] {
        for written in 0..8 {
            let (tale, db) = Tale::begun();
            db.put();
            let (wal, mut pages) = (tale.inode("-wal"), 0);
            let other = tale.open();
            other.dies(
                after,
                move |operation| {
                    let range = operation.range.clone().unwrap_or_default();
                    let is_page = operation.kind == OperationKind::Write
                        && operation.inode == wal
                        && range.end - range.start == FRAME;
                    pages += usize::from(is_page);
                    is_page && pages == written + 1
                },
                |other| drop(other.scribble(4).and_then(|()| other.run("COMMIT"))),
            );
            if written_back {
                tale.machine.write_back();
            }
            tale.survives_all();
            db.put();
            tale.survives_all();
            db.put();
            tale.survives_all();
        }
    }
}
