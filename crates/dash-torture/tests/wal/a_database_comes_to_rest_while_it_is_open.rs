//! WAL-30: the session of the log ends though connections stay, and stock SQLite finds a plain
//! database once they are killed. Whatever is lost on the way, and whoever is killed, no commit is.

use std::sync::{Arc, Mutex};

use dash_simulated::{Effect, Fault, OperationKind};
use dash_storage::Storage;

use crate::common::{Db, Tale, changes, is_fenced};

/// Nobody is fenced off, though a connection is open; and when all were killed stock SQLite has all
/// commits, makes another one, and so does the engine after it.
fn is_plain(tale: &Tale) {
    assert!(!is_fenced(&tale.machine), "the fence stands");
    tale.all_counts();
    tale.survives_all();
    let left = tale.after(tale.machine.killed());
    let stock = left.open_stock();
    left.put_stock(&stock).unwrap();
    left.machine.kill(&stock.process);
    drop(stock);
    left.survives_all();
}

fn rests(db: &Db) {
    db.ok("PRAGMA rests");
}

#[test]
pub(crate) fn and_is_plain_whatever_is_lost() {
    for level in ["FULL", "NORMAL", "OFF"] {
        let (tale, db) = Tale::begun();
        db.put();
        db.synchronous(level);
        for mode in ["", "PASSIVE", "TRUNCATE"] {
            db.put();
            db.put();
            if !mode.is_empty() {
                db.checkpoint(mode);
            }
            tale.watch();
            rests(&db);
            tale.done();
            is_plain(&tale);
            // It goes on, and a session begins anew.
            db.synchronous("FULL");
            tale.watch();
            for _ in 0..5 {
                db.put();
            }
            tale.done();
            tale.survives_all();
            assert!(is_fenced(&tale.machine), "no session has begun again");
            db.synchronous(level);
        }
        db.close();
        tale.survives_all();
    }
}

/// A reader's snapshot is not in the way, nor an idle connection of another process; a writer is.
#[test]
pub(crate) fn beside_readers_and_no_writer() {
    let (tale, db) = Tale::begun();
    let reader = tale.open();
    reader.ok("BEGIN");
    let seen = reader.content();
    db.put();
    db.begin().unwrap();
    rests(&reader);
    rests(&db);
    assert!(is_fenced(&tale.machine), "somebody writes");
    db.commit().unwrap();
    // The snapshot is older: it tells nothing of what is newest, and need not.
    rests(&reader);
    is_plain(&tale);
    assert_eq!(reader.content(), seen);
    reader.ok("COMMIT");
    assert_eq!(reader.content(), tale.tried());
    reader.put();
    tale.survives_all();
}

/// The last commit's process is killed; an idle one tidies up.
#[test]
pub(crate) fn where_others_were_killed() {
    let (tale, db) = Tale::begun();
    let idle = tale.open();
    assert_eq!(idle.content(), tale.tried());
    db.put();
    db.kill();
    tale.watch();
    rests(&idle);
    tale.done();
    is_plain(&tale);
}

/// Commits that come one by one never begin a session: each costs what it costs in stock SQLite.
#[test]
pub(crate) fn and_single_commits_leave_it_there() {
    let tale = Tale::new();
    let db = tale.open();
    let logged = tale.flushes("-dashlog");
    for number in 0..12 {
        let before = tale.flushes("-wal");
        db.put();
        rests(&db);
        assert_eq!(tale.flushes("-wal") - before, 1, "commit {number}");
        assert_eq!(tale.flushes("-dashlog"), logged, "commit {number}");
        is_plain(&tale);
    }
}

/// Killed at each step, beside a process that goes on committing.
#[test]
pub(crate) fn also_where_who_does_it_is_killed() {
    killed_in_it(|tale, db| {
        for _ in 0..5 {
            db.put();
            tale.survives_all();
        }
        db.restart();
        tale.survives_all();
    });
}

/// The same, beside one that goes on with that.
#[test]
pub(crate) fn and_somebody_else_goes_on_with_it() {
    killed_in_it(|_, _| {});
}

fn killed_in_it(then: fn(&Tale, &Db)) {
    for after in [false, true] {
        for step in 0.. {
            let (tale, db) = Tale::begun();
            let victim = tale.open();
            assert_eq!(victim.content(), tale.tried());
            db.put();
            let mut seen = 0;
            let died = victim.dies(
                after,
                move |operation| {
                    seen += usize::from(changes(operation.kind));
                    seen == step + 1
                },
                |db| drop(db.run("PRAGMA rests")),
            );
            tale.survives_all();
            then(&tale, &db);
            rests(&db);
            is_plain(&tale);
            if !died {
                break;
            }
        }
    }
}

/// Another connection commits right after `-wal` was flushed.
#[test]
pub(crate) fn unless_somebody_commits_meanwhile() {
    let (tale, db) = Tale::begun();
    db.put();
    let other = Arc::new(Mutex::new(Some(tale.open())));
    let (wal, late, mut is_flushed) = (tale.inode("-wal"), Arc::clone(&other), false);
    tale.machine.watch(move |_, operation| {
        if is_flushed && let Some(other) = late.lock().unwrap().take() {
            other.put();
            other.kill();
        }
        is_flushed = operation.kind == OperationKind::Flush && operation.inode == wal;
    });
    rests(&db);
    assert!(other.lock().unwrap().is_none(), "nobody has committed");
    tale.done();
    tale.survives_all();
    rests(&db);
    is_plain(&tale);
}

/// Somebody begins to write, or to checkpoint, while the locks are held: they wait, without a busy
/// handler, and are not refused.
#[test]
pub(crate) fn and_refuses_nobody() {
    for sql in ["BEGIN IMMEDIATE; COMMIT", "PRAGMA wal_checkpoint(PASSIVE)"] {
        let (tale, db) = Tale::begun();
        db.put();
        let other = tale.open();
        assert_eq!(other.content(), tale.tried());
        let (late, begun) = (Arc::new(Mutex::new(Some(other))), Arc::new(Mutex::new(None)));
        let (thread, log) = (Arc::clone(&begun), tale.inode("-dashlog"));
        tale.machine.watch(move |_, operation| {
            if operation.kind != OperationKind::Flush || operation.inode != log {
                return;
            }
            if let Some(other) = late.lock().unwrap().take() {
                let work = move || match sql.starts_with("BEGIN") {
                    true => other.run(sql),
                    false => match other.value::<i64>(sql)? {
                        0 => Ok(()),
                        _ => Err("busy".to_owned()),
                    },
                };
                *thread.lock().unwrap() = Some(std::thread::spawn(work));
                // Long enough for it to meet the locks.
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        });
        rests(&db);
        let begun = begun.lock().unwrap().take().unwrap();
        assert_eq!(begun.join().unwrap(), Ok(()), "{sql}");
        tale.done();
        is_plain(&tale);
    }
}

/// Its process is stopped in the middle of it. That is waited for once, however often a busy
/// handler tries.
#[test]
pub(crate) fn but_who_is_stopped_in_it_is_waited_for_once() {
    let (tale, db) = Tale::begun();
    db.put();
    let other = tale.open();
    assert_eq!(other.content(), tale.tried());
    let (late, waited) = (Arc::new(Mutex::new(Some(other))), Arc::new(Mutex::new(Vec::new())));
    let (kept, log) = (Arc::clone(&waited), tale.inode("-dashlog"));
    tale.machine.watch(move |machine, operation| {
        if operation.kind != OperationKind::Flush || operation.inode != log {
            return;
        }
        let clock = machine.process();
        let Some(other) = late.lock().unwrap().take() else { return };
        for _ in 0..3 {
            let begun = clock.monotonic_nanos();
            let busy = other.run("BEGIN IMMEDIATE").unwrap_err();
            assert!(busy.contains("locked"), "{busy}");
            kept.lock().unwrap().push((clock.monotonic_nanos() - begun) / 1_000_000_000);
        }
    });
    rests(&db);
    assert_eq!(*waited.lock().unwrap(), [10, 0, 0], "in seconds");
    tale.done();
    is_plain(&tale);
}

/// A flush of the log fails: it goes on behind the fence, and comes to rest the next time.
#[test]
pub(crate) fn or_goes_on_where_its_flush_fails() {
    let (tale, db) = Tale::begun();
    db.put();
    let fault = Fault::new(Effect::Error(libc::EIO)).on(OperationKind::Flush);
    tale.machine.fail(fault.of_inode(tale.inode("-dashlog")));
    db.run("PRAGMA rests").unwrap_err();
    tale.machine.stop_failing();
    assert!(is_fenced(&tale.machine), "the log may count");
    tale.survives_all();
    for _ in 0..3 {
        db.put();
        tale.survives_all();
    }
    rests(&db);
    is_plain(&tale);
    for _ in 0..5 {
        db.put();
    }
    tale.survives_all();
    db.close();
    tale.survives_all();
}

/// Whatever call of it fails, and in whatever way: no commit is lost, and it comes to rest the next
/// time, unless nobody knows any more what is durable.
#[test]
pub(crate) fn or_goes_on_whatever_fails() {
    for effect in [Effect::LostFlush(libc::EIO), Effect::ShortWrite(700, libc::ENOSPC)] {
        for forever in [false, true] {
            let mut number = 0;
            while fails(effect, forever, number) {
                number += 1;
            }
            assert!(number > 10, "{number} calls");
        }
    }
}

/// One call of it fails, or all from there on; whether there was one.
fn fails(effect: Effect, forever: bool, number: u64) -> bool {
    let (tale, db) = Tale::begun();
    let idle = tale.open();
    assert_eq!(idle.content(), tale.tried());
    db.put();
    let (before, fault) = (tale.machine.steps(), Fault::new(effect).after(number));
    tale.machine.fail(if forever { fault.forever() } else { fault });
    drop(idle.run("PRAGMA rests"));
    let is_met = tale.machine.steps() - before > number;
    tale.machine.stop_failing();
    tale.survives_all();
    let mut put = db.try_put();
    if put.as_ref().is_err_and(|told| is_met && told.starts_with("database is locked")) {
        // A lock could not be given back: it is, the next time.
        drop(idle.run("PRAGMA rests"));
        put = db.try_put();
    }
    match put {
        Ok(()) => {
            idle.ok("PRAGMA rests");
            is_plain(&tale);
        }
        Err(told) => {
            assert!(is_met && told.contains("not known"), "{effect:?} {forever} {number}: {told}");
            assert_eq!(told.matches("an I/O error left").count(), 1, "{told}");
            assert!(is_fenced(&tale.machine), "{effect:?} {forever} {number}");
            tale.survives_all();
        }
    }
    is_met
}
