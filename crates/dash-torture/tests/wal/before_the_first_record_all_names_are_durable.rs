//! WAL-1: from the first record on the log is part of the database, and a power loss may leave
//! `-wal` behind it. So before it stock SQLite is kept out, durably, and no name can vanish.

use std::sync::{Arc, Mutex};

use dash_simulated::OperationKind;

use crate::common::{Fate, Tale, is_fenced};

#[test]
pub(crate) fn at_its_first_byte() {
    let tale = Tale::new();
    let db = tale.open();
    db.put();
    let seen = Arc::new(Mutex::new(None));
    let kept = Arc::clone(&seen);
    tale.machine.watch(move |machine, operation| {
        let log = machine.open_stock("/app.db-dashlog").map_or(0, |file| file.inode());
        let ring = operation.range.as_ref().is_some_and(|range| range.start >= 4096);
        let first = operation.kind == OperationKind::Write && operation.inode == log && ring;
        let mut seen = kept.lock().unwrap();
        if first && seen.is_none() {
            let after = machine.power_loss(&mut Fate::nothing());
            let header = after.file_view("/app.db-wal").is_some_and(|wal| wal.len() >= 32);
            *seen = Some((is_fenced(&after), after.exists("/app.db-dashlog"), header));
        }
    });
    db.put();
    tale.machine.watch(|_, _| {});
    assert_eq!(*seen.lock().unwrap(), Some((true, true, true)), "fence, log, -wal's header");
}

/// Whatever is lost at any step of it, nobody sees less than what was acknowledged.
#[test]
pub(crate) fn whatever_is_lost_meanwhile() {
    let tale = Tale::new();
    tale.watch();
    let db = tale.open();
    for _ in 0..4 {
        db.put();
    }
    tale.done();
    tale.survives_all();
}

/// What is in `-wal` by then may be stock SQLite's, and not be durable.
#[test]
pub(crate) fn also_where_stock_sqlite_was_killed_before() {
    for restarts in 0..3 {
        let tale = Tale::new();
        let stock = tale.open_stock();
        for _ in 0..=restarts {
            stock.db.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(())).unwrap();
            tale.put_stock(&stock).unwrap();
            stock.db.execute_batch("PRAGMA synchronous=OFF; INSERT INTO big VALUES(1)").unwrap();
        }
        tale.machine.kill(&stock.process);
        drop(stock);
        tale.watch();
        let db = tale.open();
        for _ in 0..3 {
            db.put();
        }
        db.restart();
        tale.done();
        tale.survives_all();
    }
}

/// And where the log of a session before was removed at rest.
#[test]
pub(crate) fn also_where_the_log_was_removed_at_rest() {
    let (tale, db) = Tale::begun();
    db.close();
    crate::common::remove(&tale.machine, "-dashlog");
    tale.machine.write_back();
    tale.survives_all();
    tale.watch();
    let db = tale.open();
    for _ in 0..3 {
        db.put();
    }
    tale.done();
    tale.survives_all();
}
