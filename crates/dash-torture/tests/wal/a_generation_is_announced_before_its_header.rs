//! WAL-10: who finds a header of `-wal` in the page cache knows that the record of its generation
//! is durable. A writer that dies between the two leaves a record without a header.

use dash_simulated::{Effect, Fault, Operation, OperationKind};

use crate::common::{Db, Fate, Left, Tale};

/// The next header of `-wal`.
fn header(tale: &Tale) -> impl FnMut(&Operation) -> bool + Send + use<> {
    let wal = tale.inode("-wal");
    move |operation| {
        matches!(operation.kind, OperationKind::Write | OperationKind::WriteDurable)
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

/// A header is durable before frames of its generation are in the log, so an older one beside them
/// is another `-wal`'s.
#[test]
pub(crate) fn and_on_the_device_before_its_frames() {
    let (tale, db) = Tale::begun();
    for _ in 0..3 {
        db.restart();
        let after = tale.machine.power_loss(&mut Fate::nothing());
        assert_eq!(
            after.file_view("/app.db-wal").unwrap()[..32],
            tale.machine.file_view("/app.db-wal").unwrap()[..32]
        );
        tale.survives_all();
    }
}

/// The checkpoint sequence belongs to a connection: another one's may be lower.
#[test]
pub(crate) fn whichever_connection_announced_it() {
    let (tale, db) = Tale::begun();
    let other = tale.open();
    other.restart();
    for _ in 0..3 {
        db.restart();
    }
    // A part of `-wal` is durable, which is older than the database then.
    let log = tale.inode("-dashlog");
    let lost = Fault::new(Effect::LostFlush(libc::EIO)).on(OperationKind::Flush);
    tale.machine.fail(lost.of_inode(log));
    db.put();
    tale.machine.stop_failing();
    db.put();
    db.checkpoint("RESTART");
    let died = other.dies(false, header(&tale), |other| {
        drop(other.scribble(3).and_then(|()| other.run("COMMIT")))
    });
    assert!(died);
    tale.survives_all();
    db.put();
    tale.survives_all();
}

/// A writer of dash has begun a generation, and is killed before its commit: the header that a
/// stock writer puts there has another number of checkpoints, and counts.
#[test]
pub(crate) fn and_a_stock_writer_goes_on_with_it() {
    for level in ["FULL", "NORMAL", "OFF"] {
        let (tale, db) = Tale::begun_beside();
        let stock = tale.open_stock();
        // A connection that has begun none yet draws other salts.
        db.ok("PRAGMA rests");
        stock.db.execute_batch("PRAGMA wal_checkpoint").unwrap();
        tale.put_stock(&stock).unwrap();
        let other = tale.open();
        for _ in 0..3 {
            db.put();
            db.restart();
        }
        db.put();
        db.checkpoint("PASSIVE");
        let wal = tale.inode("-wal");
        let died = db.dies(
            true,
            move |operation| {
                operation.kind == OperationKind::WriteDurable && operation.inode == wal
            },
            |db| drop(db.scribble(3).and_then(|()| db.run("COMMIT"))),
        );
        assert!(died);
        tale.put_stock_at(&stock, level).unwrap();
        tale.survives_all();
        tale.watch();
        other.put();
        tale.put_stock_at(&stock, level).unwrap();
        tale.done();
        tale.survives_all();
    }
}
