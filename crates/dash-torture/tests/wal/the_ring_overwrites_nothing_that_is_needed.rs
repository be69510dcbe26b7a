//! WAL-8: the log goes round. A record overwrites neither the window that it belongs to nor, as
//! long as it is not durable itself, that of the generation before.

use crate::common::{Tale, remove};

/// Within a generation: `-wal` is flushed, then all of the log is free. The database gets newer
/// pages meanwhile, so that a `-wal` that lacks its newest frames is seen.
#[test]
pub(crate) fn within_a_generation() {
    for direct in [Some(512), Some(4096), None] {
        let tale = Tale::new();
        tale.machine.set_direct(direct);
        let db = tale.open();
        db.put();
        db.put();
        let before = tale.flushes("-wal");
        // As long as somebody reads no other generation begins.
        let read = || {
            let reader = tale.open();
            reader.ok("BEGIN; SELECT * FROM t");
            reader
        };
        let mut reader = read();
        for commit in 0..80 {
            db.put();
            if commit % 7 == 3 {
                let next = read();
                std::mem::replace(&mut reader, next).kill();
                db.checkpoint("PASSIVE");
            }
            tale.survives_all();
        }
        assert!(tale.flushes("-wal") > before, "{direct:?}: it went round");
    }
}

/// It grows, wherever in it the window begins, and `-wal` is flushed only where it can't.
#[test]
pub(crate) fn that_grows() {
    for generations in 0..4 {
        let tale = Tale::new();
        tale.machine.set_direct(Some(4096));
        // A new one begins with the ring.
        remove(&tale.machine, "-dashlog");
        let db = tale.open();
        db.put();
        db.put();
        for _ in 0..generations {
            db.restart();
        }
        let longest = dash_wal::Tuning::tiny().ring_max;
        let is_longest = || {
            let log = tale.machine.file_view("/app.db-dashlog").unwrap();
            log.len() as u64 > longest
        };
        let flushes = tale.flushes("-wal");
        let reader = tale.open();
        reader.ok("BEGIN; SELECT * FROM t");
        while tale.flushes("-wal") == flushes {
            db.put();
            tale.survives_all();
            assert!(is_longest() || tale.flushes("-wal") == flushes);
        }
        db.put();
        tale.survives_all();
    }
}

/// At the record of a new generation, wherever in the ring that falls.
#[test]
pub(crate) fn at_the_end_of_one() {
    for commits in 0..40 {
        let tale = Tale::new();
        tale.machine.set_direct(Some(4096));
        let db = tale.open();
        for _ in 0..commits {
            db.put();
        }
        db.checkpoint("RESTART");
        tale.watch();
        db.put();
        tale.done();
        tale.survives_all();
    }
}

/// Generations of one commit each: the ring is full of beginnings.
#[test]
pub(crate) fn through_many_short_ones() {
    let tale = Tale::new();
    tale.machine.set_direct(Some(4096));
    let db = tale.open();
    for _ in 0..24 {
        db.restart();
        tale.survives_all();
    }
}

/// A transaction that is too large for a record is made durable in `-wal`; so is what comes
/// before it, and what comes after goes into the log again.
#[test]
pub(crate) fn around_what_is_too_large() {
    let (tale, db) = Tale::begun();
    for _ in 0..3 {
        db.put();
        db.scribble(60).unwrap();
        db.put_in_it();
        tale.survives_all();
        db.checkpoint("PASSIVE");
        tale.survives_all();
        db.put();
        tale.survives_all();
    }
}
