//! WAL-10: who finds a header of `-wal` in the page cache knows that the record of its generation
//! is durable. A writer that dies between the two leaves a record without a header.

use dash_storage::simulated::{Operation, OperationKind};

use crate::common::{Db, Fate, Left, Tale};

/// The next header of `-wal`.
fn header(tale: &Tale) -> impl FnMut(&Operation) -> bool + Send + use<> {
    let wal = tale.inode("-wal");
    move |operation| {
        operation.kind == OperationKind::Write
            && operation.inode == wal
            && operation.range == Some(0..32)
    }
}

/// A writer that dies at a header, and another process that lives.
fn dead_at_header(after: bool) -> (Tale, Db) {
    let (tale, db) = Tale::begun();
    db.put();
    let other = tale.open();
    db.checkpoint("RESTART");
    let died = other.dies(after, header(&tale), |other| {
        drop(other.scribble(3).and_then(|()| other.run("COMMIT")))
    });
    assert!(died);
    (tale, db)
}

#[test]
pub(crate) fn and_whoever_lives_goes_on() {
    for after in [false, true] {
        let (tale, db) = dead_at_header(after);
        tale.survives_all();
        db.put();
        tale.survives_all();
        db.put();
        db.restart();
        tale.survives_all();
    }
}

/// Everybody is dead. The next one has no index, and goes on where the log says.
#[test]
pub(crate) fn and_whoever_comes_next_goes_on() {
    for after in [false, true] {
        let (tale, db) = dead_at_header(after);
        db.kill();
        tale.survives_all();
        let next = tale.open();
        tale.survives_all();
        for _ in 0..4 {
            next.put();
            tale.survives_all();
        }
        next.checkpoint("PASSIVE");
        tale.survives_all();
    }
}

/// The header and the frames behind it reach the device, and the log's record only if it was
/// flushed.
#[test]
pub(crate) fn whatever_is_lost_between_the_two() {
    let (tale, db) = Tale::begun();
    for _ in 0..3 {
        db.put();
        db.checkpoint("RESTART");
        tale.watch();
        // Its frames may get to the device with no flush of the log behind them.
        db.synchronous("NORMAL");
        db.put();
        db.scribble(5).unwrap();
        db.ok("COMMIT");
        tale.done();
        let mut fate = Fate { wal: Left::Newest, ..Fate::nothing() }.of(&tale.machine);
        tale.survives(&tale.machine.power_loss(&mut fate)).unwrap();
        tale.survives_all();
        db.synchronous("FULL");
        db.put();
        tale.survives_all();
    }
}
