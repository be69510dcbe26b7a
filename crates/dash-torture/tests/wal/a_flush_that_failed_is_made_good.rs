//! WAL-9: after a flush of the log that failed nobody knows what of it is on the device. `-wal` is
//! flushed instead, the window ends, and the number is not used again. If that fails, too, nothing
//! is written any more.

use dash_simulated::{Effect, Fault, OperationKind};

use crate::common::{Db, Fate, Tale};

/// EIO, and the pages are clean.
const LOST: Effect = Effect::LostFlush(libc::EIO);

fn lost(inode: u64) -> Fault {
    Fault::new(LOST).on(OperationKind::Flush).of_inode(inode)
}

/// The log's next flush fails, wherever in the ring it is.
#[test]
pub(crate) fn by_a_flush_of_wal() {
    for commits in 0..14 {
        let (tale, db) = Tale::begun();
        for _ in 0..commits {
            db.put();
        }
        let wal = tale.flushes("-wal");
        tale.machine.fail(lost(tale.inode("-dashlog")));
        db.put();
        tale.machine.stop_failing();
        assert_eq!(tale.flushes("-wal"), wal + 1);
        tale.survives_all();
        for _ in 0..3 {
            db.put();
            tale.survives_all();
        }
        db.restart();
        tale.survives_all();
    }
}

#[test]
pub(crate) fn by_flushes_of_wal_for_ever() {
    let (tale, db) = Tale::begun();
    tale.machine.fail(lost(tale.inode("-dashlog")).forever());
    for _ in 0..6 {
        db.put();
        tale.survives_all();
    }
    db.checkpoint("PASSIVE");
    tale.survives_all();
}

/// A recovery's flush fails: what it wrote is in the cache, clean. Whoever comes next writes it
/// again, though it looks as if it were there.
#[test]
pub(crate) fn by_the_next_recovery() {
    let (tale, db) = Tale::begun();
    for _ in 0..3 {
        db.put();
    }
    let tale = tale.after(tale.machine.power_loss(&mut Fate::nothing()));
    tale.machine.fail(lost(tale.inode("-wal")));
    tale.try_open().map(drop).expect_err("its flush fails");
    tale.machine.stop_failing();
    let next = tale.open();
    tale.survives_all();
    next.put();
    tale.survives_all();
}

/// A checkpoint's flush fails, and its process is killed: the header that it has copied into the
/// database is in the cache alone. What the next session says of the database is true of the
/// device.
#[test]
pub(crate) fn before_the_next_session() {
    let (tale, db) = Tale::begun();
    db.scribble(9).unwrap();
    db.ok("COMMIT");
    tale.machine.fail(lost(tale.inode("")));
    db.value::<i64>("PRAGMA wal_checkpoint(PASSIVE)").expect_err("its flush fails");
    tale.machine.stop_failing();
    db.kill();
    tale.watch();
    let next = tale.open();
    for _ in 0..3 {
        next.put();
    }
    tale.done();
    tale.survives_all();
}

/// Also where the write fails, whole or in part.
#[test]
pub(crate) fn also_where_the_write_fails() {
    for effect in [Effect::Error(libc::EIO), Effect::ShortWrite(700, libc::EIO)] {
        let (tale, db) = Tale::begun();
        for _ in 0..3 {
            let log = tale.inode("-dashlog");
            tale.machine.fail(Fault::new(effect).on(OperationKind::Write).of_inode(log));
            db.put();
            tale.machine.stop_failing();
            tale.survives_all();
            db.put();
            tale.survives_all();
        }
    }
}

/// The record of a new generation can't be flushed, or written: then that generation begins in
/// stock fashion.
#[test]
pub(crate) fn also_where_a_generation_begins() {
    for kind in [OperationKind::Flush, OperationKind::Write] {
        let (tale, db) = Tale::begun();
        for _ in 0..3 {
            db.put();
            db.checkpoint("RESTART");
            let effect = if kind == OperationKind::Flush { LOST } else { Effect::Error(libc::EIO) };
            let log = tale.inode("-dashlog");
            tale.machine.fail(Fault::new(effect).on(kind).of_inode(log));
            tale.watch();
            db.put();
            tale.done();
            tale.machine.stop_failing();
            tale.survives_all();
            db.put();
            tale.survives_all();
        }
    }
}

/// A log that is never flushed again takes no transaction with it, and no commit.
#[test]
pub(crate) fn through_generations_without_end() {
    for lives in [true, false] {
        let (tale, db) = Tale::begun();
        db.put();
        tale.machine.fail(lost(tale.inode("-dashlog")).forever());
        tale.watch();
        for _ in 0..3 {
            db.checkpoint("RESTART");
            db.put();
            db.put();
            // The header of the database changes, and its counter does not.
            db.scribble(4).unwrap();
            db.ok("COMMIT");
            db.checkpoint("PASSIVE");
        }
        tale.done();
        if lives {
            tale.machine.stop_failing();
            db.put();
            tale.survives_all();
            db.restart();
        }
        tale.survives_all();
    }
}

/// Both fail: the commit is visible, and nobody knows whether it is durable.
fn poisoned() -> (Tale, Db) {
    let (tale, db) = Tale::begun();
    db.put();
    for ending in ["-dashlog", "-wal"] {
        tale.machine.fail(lost(tale.inode(ending)));
    }
    let told = db.try_put().unwrap_err();
    assert!(told.contains("not known"), "{told}");
    assert_eq!(told.matches("an I/O error left").count(), 1, "{told}");
    tale.machine.stop_failing();
    (tale, db)
}

#[test]
pub(crate) fn or_nothing_is_written_any_more() {
    let (tale, db) = poisoned();
    let seen = tale.tried();
    assert_eq!(db.content(), seen, "it is visible");
    tale.survives_all();
    let other = tale.open();
    for connection in [&db, &other] {
        assert!(connection.scribble(1).is_err(), "it goes on writing");
        drop(connection.run("ROLLBACK"));
        let copied = connection.value::<i64>("PRAGMA wal_checkpoint(PASSIVE)");
        assert_ne!(copied, Ok(0), "it copies what is durable nowhere");
        assert_eq!(connection.content(), seen, "it still reads");
    }
    tale.survives_all();
}

/// And the next opener doesn't believe a flush of pages that are clean.
#[test]
pub(crate) fn and_the_next_opener_believes_nothing() {
    for closes in [false, true] {
        let (tale, db) = poisoned();
        if closes {
            drop(db.db.close());
        } else {
            db.kill();
        }
        tale.survives_all();
        let next = tale.open();
        assert_eq!(next.content(), tale.tried(), "the caches still have it");
        tale.all_counts();
        tale.survives_all();
        tale.watch();
        next.checkpoint("PASSIVE");
        next.put();
        next.checkpoint("RESTART");
        next.put();
        next.close();
        tale.done();
        tale.survives_all();
    }
}

/// A head that nobody knows to be on the device is written again before a fence says that there is
/// a log, also by a process that opened the database after all had closed it (WAL-20).
#[test]
pub(crate) fn and_the_next_session_takes_no_head_for_durable() {
    for (skip, alone) in (0..8).flat_map(|skip| [(skip, false), (skip, true)]) {
        let tale = if alone { Tale::alone() } else { Tale::new() };
        crate::common::remove(&tale.machine, "-dashlog");
        let db = tale.open();
        tale.machine.fail(Fault::new(LOST).on(OperationKind::Flush).after(skip));
        for _ in 0..3 {
            drop(db.try_put());
        }
        tale.machine.stop_failing();
        drop(db.db.close());
        let db = tale.open();
        let tale = tale.with(db.content());
        let db = db.of(&tale);
        tale.watch();
        for _ in 0..3 {
            db.put();
        }
        tale.done();
        tale.survives_all();
        db.close();
    }
}

/// What a checkpoint copied is in the cache, clean, and on no device. The log of the next session
/// is not to say that the database is like that (WAL-18).
#[test]
pub(crate) fn and_the_next_session_writes_what_was_copied_again() {
    let (tale, db) = Tale::begun();
    // The database gets a header that is not like the one on the device.
    db.scribble(60).unwrap();
    db.ok("COMMIT");
    tale.machine.fail(lost(tale.inode("")));
    drop(db.db.close());
    tale.machine.stop_failing();
    let db = tale.open();
    assert_eq!(db.content(), tale.acknowledged());
    tale.watch();
    for _ in 0..3 {
        db.put();
    }
    tale.done();
    tale.survives_all();
    db.close();
    tale.survives_all();
    assert!(!tale.machine.exists(format!("{}-dash", crate::common::DB)), "it is plain");
}
