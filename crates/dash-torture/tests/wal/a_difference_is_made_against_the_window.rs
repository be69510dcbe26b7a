//! WAL-15: recovery rebuilds a page from the images of the window alone. What was before the window
//! began, and the database's page, are not there for it.

use dash_simulated::{Effect, Fault, OperationKind};

use crate::common::{Fate, Tale};

/// Whatever ends the window, the next record stands on itself.
fn survives_after(end: impl Fn(&Tale, &crate::common::Db)) {
    for others in [false, true] {
        let (tale, db) = Tale::begun();
        let other = tale.open();
        for _ in 0..3 {
            for _ in 0..3 {
                db.put();
            }
            end(&tale, &db);
            let next = if others { &other } else { &db };
            for _ in 0..3 {
                next.put();
                tale.survives(&tale.machine.power_loss(&mut Fate::nothing())).unwrap();
                tale.survives_all();
            }
        }
    }
}

#[test]
pub(crate) fn after_a_failed_flush() {
    survives_after(|tale, db| {
        let log = tale.inode("-dashlog");
        let fault = Fault::new(Effect::LostFlush(libc::EIO)).on(OperationKind::Flush);
        tale.machine.fail(fault.of_inode(log));
        db.put();
        tale.machine.stop_failing();
    });
}

#[test]
pub(crate) fn after_a_large_transaction() {
    survives_after(|_, db| {
        db.scribble(60).unwrap();
        db.ok("COMMIT");
    });
}

#[test]
pub(crate) fn after_a_new_generation() {
    survives_after(|_, db| db.restart());
}

#[test]
pub(crate) fn after_a_transaction_over_several_databases() {
    survives_after(|_, db| {
        db.ok("PRAGMA undeferred=1");
        db.put();
        db.ok("PRAGMA undeferred=0");
    });
}

/// The pages of the database are newer by then, and older by the power loss.
#[test]
pub(crate) fn after_a_checkpoint() {
    survives_after(|_, db| db.checkpoint("PASSIVE"));
}

#[test]
pub(crate) fn after_a_kill() {
    let (tale, db) = Tale::begun();
    db.put();
    db.kill();
    for _ in 0..3 {
        let db = tale.open();
        db.put();
        tale.survives_all();
        db.put();
        tale.survives_all();
        db.kill();
    }
}

/// Whoever flushes next learns from the index which pages their frames hold.
#[test]
pub(crate) fn after_others_wrote_several_pages() {
    let (tale, one) = Tale::begun();
    let other = tale.open();
    for rows in 2..8 {
        for db in [&one, &other] {
            db.scribble(rows).unwrap();
            db.ok("COMMIT");
            db.put();
            tale.survives(&tale.machine.power_loss(&mut Fate::nothing())).unwrap();
            tale.survives_all();
        }
    }
}
