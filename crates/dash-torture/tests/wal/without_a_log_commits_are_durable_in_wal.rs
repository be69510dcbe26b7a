//! WAL-9, and where there is no room for a log, no direct I/O, or other blocks: a commit is as
//! durable as ever.

use dash_simulated::{Effect, Fault, Machine, OperationKind};

use crate::common::{Db, Tale};

#[test]
pub(crate) fn where_there_is_no_room_for_it() {
    for errno in [libc::ENOSPC, libc::EDQUOT, libc::EFBIG] {
        let tale = Tale::new();
        let db = tale.open();
        let fault = Fault::new(Effect::Error(errno)).on(OperationKind::Initialize);
        tale.machine.fail(fault.forever());
        tale.watch();
        for _ in 0..4 {
            db.put();
        }
        db.restart();
        db.put();
        tale.done();
        tale.survives_all();
        tale.watch();
        db.close();
        tale.done();
        tale.survives_all();
        tale.machine.stop_failing();
        let next = tale.open();
        tale.watch();
        for _ in 0..3 {
            next.put();
        }
        tale.done();
        tale.survives_all();
    }
}

#[test]
pub(crate) fn where_it_can_not_be_longer() {
    let (tale, db) = Tale::begun();
    let fault = Fault::new(Effect::Error(libc::ENOSPC)).on(OperationKind::Initialize);
    tale.machine.fail(fault.forever());
    for _ in 0..40 {
        db.put();
        tale.survives_all();
    }
}

/// The log is written through the page cache, or in larger blocks.
#[test]
pub(crate) fn whatever_its_blocks() {
    for direct in [None, Some(4096)] {
        let machine = Machine::new(1);
        machine.set_direct(direct);
        let tale = Tale::on(machine);
        let db = tale.open();
        tale.watch();
        for _ in 0..3 {
            db.put();
        }
        db.restart();
        tale.done();
        tale.survives_all();
        // Whoever comes next may have others.
        db.kill();
        tale.machine.set_direct(Some(512));
        let next = tale.open();
        tale.watch();
        for _ in 0..3 {
            next.put();
        }
        next.close();
        tale.done();
        tale.survives_all();
    }
}

/// WAL-41: a disk that fails where the log is made, opened or begun is no reason for an error
/// either, as the commit is visible by then.
#[test]
pub(crate) fn where_it_can_not_be_begun() {
    use OperationKind::{CreateDirectory, Flush, Initialize, MakeDirect, Metadata, Read, Write};
    for (kind, is_of_log) in [
        (Read, true),
        (Write, true),
        (Flush, true),
        (Metadata, true),
        (MakeDirect, true),
        (Initialize, false),
        (CreateDirectory, false),
    ] {
        let tale = Tale::new();
        let db = tale.open();
        let mut fault = Fault::new(Effect::Error(libc::EIO)).on(kind);
        let db = match is_of_log {
            false => db,
            true => {
                (0..3).for_each(|_| db.put());
                db.close();
                fault = fault.of_inode(tale.inode("-dashlog"));
                tale.open()
            }
        };
        tale.machine.fail(fault.forever());
        tale.watch();
        (0..3).for_each(|_| db.put());
        tale.done();
        tale.survives_all();
        tale.machine.stop_failing();
        db.close();
        tale.open().put();
        tale.survives_all();
    }
}

/// WAL-41: behind a checkpoint that cut `-wal` the log calls that void, and a failure as it takes
/// that back is none of the commit's.
#[test]
fn where_one_call_fails_as_it_takes_back_that_it_is_void() {
    let calls = [
        (OperationKind::Write, Effect::Error(libc::EIO)),
        (OperationKind::Flush, Effect::LostFlush(libc::EIO)),
    ];
    let begun: [fn() -> (Tale, Db); 2] = [Tale::begun, Tale::begun_alone];
    for ((kind, effect), begin) in calls.into_iter().flat_map(|call| begun.map(|it| (call, it))) {
        let (tale, db) = begin();
        db.put();
        db.ok("PRAGMA wal_checkpoint(TRUNCATE)");
        tale.machine.fail(Fault::new(effect).on(kind).of_inode(tale.inode("-dashlog")));
        tale.watch();
        (0..3).for_each(|_| db.put());
        tale.done();
        tale.survives_all();
        tale.machine.stop_failing();
        db.close();
        tale.open().put();
        tale.survives_all();
    }
}

/// WAL-41: whichever call fails, once, a commit that answers an error is not there; or it says that
/// it may be.
#[test]
pub(crate) fn nor_is_any_other_call_a_reason() {
    let begun: [fn() -> (Tale, Db); 3] = [Tale::begun, Tale::begun_alone, || {
        let tale = Tale::new();
        let db = tale.open();
        (tale, db)
    }];
    let rows = |db: &Db| db.value::<i64>("SELECT count(*) FROM big").unwrap();
    for begin in begun {
        for number in 0..80 {
            let (tale, db) = begin();
            // What recovery and the first transaction do once.
            let before = rows(&db);
            let fault = Fault::new(Effect::Error(libc::EIO));
            tale.machine.fail(fault.after(number));
            let done = db.run("INSERT INTO big VALUES(1)");
            tale.machine.stop_failing();
            let expected = match &done {
                Ok(()) => before + 1,
                Err(what) if what.contains("not known") => continue,
                Err(_) => before,
            };
            assert_eq!(rows(&db), expected, "call {number}: {done:?}");
        }
    }
}
