//! WAL-4: frames of `-wal` are not flushed between two turns of the ring, so that the device may
//! have any of them behind a header, or none. SQLite's own numbers don't tell which came first.

use crate::common::Tale;

#[test]
pub(crate) fn however_many_were_lost() {
    let (tale, db) = Tale::begun();
    for _ in 0..4 {
        db.restart();
        tale.survives_all();
        db.put();
        tale.survives_all();
    }
}

/// The checkpoint sequence belongs to a connection: another one begins at 1 again.
#[test]
pub(crate) fn whichever_connection_wrote_them() {
    let (tale, db) = Tale::begun();
    let other = tale.open();
    for _ in 0..2 {
        for _ in 0..3 {
            db.restart();
            tale.survives_all();
        }
        tale.machine.write_back();
        other.checkpoint("RESTART");
        other.put();
        tale.survives_all();
        other.put();
        tale.survives_all();
    }
}

/// After a TRUNCATE a fresh connection draws salts, and its sequence is 0.
#[test]
pub(crate) fn whatever_salts_they_have() {
    let (tale, db) = Tale::begun();
    for _ in 0..3 {
        db.restart();
        db.checkpoint("TRUNCATE");
        tale.survives_all();
        let fresh = tale.open();
        fresh.put();
        tale.survives_all();
        fresh.restart();
        tale.survives_all();
        fresh.kill();
        db.put();
        tale.survives_all();
    }
}

/// Some are durable, and some are not.
#[test]
pub(crate) fn whichever_was_written_back() {
    for written_back in 0..4 {
        let (tale, db) = Tale::begun();
        for generation in 0..4 {
            if generation == written_back {
                tale.machine.write_back();
            }
            db.restart();
            db.put();
            tale.survives_all();
        }
    }
}
