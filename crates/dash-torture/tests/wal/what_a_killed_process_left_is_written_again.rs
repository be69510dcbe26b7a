//! WAL-11: the page cache of a killed process looks like the disk. What recovery acts upon, and
//! what it leaves, is written again and flushed, or the next power loss takes it. What nobody could
//! see of it yet will be written over, and counts for nothing (WAL-44).

use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use dash_simulated::OperationKind;
use dash_storage::{Directory, File, OpenMode, Storage};

use crate::common::{DB, PAGE, Tale, changes, losses};

/// Everybody is killed before each step of `act`; the next one opens, does something, and the power
/// goes.
fn killed_in(begin: impl Fn() -> (Tale, crate::common::Db), act: impl Fn(&crate::common::Db)) {
    let (tale, db) = begin();
    let images: Arc<Mutex<Vec<Tale>>> = Arc::default();
    let (kept, history) = (Arc::clone(&images), tale.clone());
    tale.machine.watch(move |machine, operation| {
        if changes(operation.kind) {
            kept.lock().unwrap().push(history.after(machine.killed()));
        }
    });
    act(&db);
    tale.machine.watch(|_, _| {});
    tale.survives(&tale.machine.killed()).unwrap();
    let images = std::mem::take(&mut *images.lock().unwrap());
    assert!(images.len() > 2);
    for image in images {
        goes_on(image);
    }
}

/// The next opener, cut at every step.
fn goes_on(tale: Tale) {
    // The state in the log's head.
    let in_use = tale.machine.file_view("/app.db-dashlog").is_some_and(|log| log[24] == 1);
    tale.watch();
    let next = tale.open();
    let found = next.content();
    tale.done();
    let tale = tale.with(found);
    if in_use {
        // What was recovered from a log is durable; without one it is stock SQLite's to say.
        tale.all_counts();
    }
    for (fate, after) in losses(&tale.machine, 2) {
        tale.survives(&after).unwrap_or_else(|what| panic!("opened, {fate}: {what}"));
    }
    let next = next.of(&tale);
    tale.watch();
    next.put();
    next.checkpoint("PASSIVE");
    next.restart();
    next.close();
    tale.done();
    tale.survives_all();
}

#[test]
pub(crate) fn in_a_commit() {
    killed_in(Tale::begun, |db| db.put());
}

#[test]
pub(crate) fn in_the_first_commits() {
    killed_in(
        || {
            let tale = Tale::new();
            let db = tale.open();
            (tale, db)
        },
        |db| {
            db.put();
            db.put();
        },
    );
}

#[test]
pub(crate) fn in_a_checkpoint_and_a_new_generation() {
    killed_in(Tale::begun, |db| {
        db.put();
        db.restart();
        db.put();
    });
}

#[test]
pub(crate) fn in_a_truncation() {
    killed_in(Tale::begun, |db| {
        db.checkpoint("TRUNCATE");
        db.put();
    });
}

/// A file may be long, and empty behind its frames: nobody reads all of it and fills it with
/// zeros. SEC S2-12
#[test]
pub(crate) fn and_nothing_behind_its_frames() {
    const LONG: u64 = 64 << 20;
    let (tale, db) = Tale::begun();
    db.put();
    db.kill();
    let tale = tale.after(tale.machine.killed());
    let wal = tale.machine.open_stock(format!("{DB}-wal")).unwrap();
    let inode = wal.inode();
    tale.machine
        .process()
        .open_directory(Path::new("/"))
        .and_then(|folder| {
            folder.open(OsStr::new("app.db-wal"), OpenMode::ReadWrite)?.set_len(LONG)
        })
        .unwrap();
    let moved = Arc::new(Mutex::new((0, 0)));
    let counted = Arc::clone(&moved);
    tale.machine.watch(move |_, operation| {
        let bytes = operation.range.as_ref().map_or(0, |range| range.end - range.start);
        let mut counted = counted.lock().unwrap();
        match operation.kind {
            OperationKind::Write if operation.inode == inode => counted.0 += bytes,
            OperationKind::Read if operation.inode == inode => counted.1 += bytes,
            _ => {}
        }
    });
    let next = tale.open();
    next.content();
    tale.machine.watch(|_, _| {});
    let (written, read) = *moved.lock().unwrap();
    assert!(written > 2 * PAGE as u64, "its frames are written again: {written}");
    assert!(written < 1 << 20, "{written} bytes written");
    assert!(read < 16 << 20, "{read} bytes read");
    tale.survives_all();
}

/// And killed again in the recovery.
#[test]
pub(crate) fn in_the_recovery_of_a_killed_process() {
    let (tale, db) = Tale::begun();
    db.synchronous("NORMAL");
    db.put();
    db.synchronous("FULL");
    db.put();
    db.kill();
    killed_in(
        || {
            let tale = tale.after(tale.machine.killed());
            let db = tale.open();
            (tale, db)
        },
        |db| db.put(),
    );
    let steps: Arc<Mutex<Vec<Tale>>> = Arc::default();
    let (kept, history) = (Arc::clone(&steps), tale.clone());
    tale.machine.watch(move |machine, operation| {
        if changes(operation.kind) {
            kept.lock().unwrap().push(history.after(machine.killed()));
        }
    });
    tale.open().kill();
    tale.machine.watch(|_, _| {});
    for image in std::mem::take(&mut *steps.lock().unwrap()) {
        goes_on(image);
    }
}

/// A process is killed at each operation of `act`, while a stock connection keeps the wal-index;
/// what the next one commits is durable.
fn killed_beside_stock(commits: usize, after: bool, act: fn(&crate::common::Db)) {
    for last in 0.. {
        let tale = Tale::new();
        let db = tale.open();
        let stock = tale.open_stock();
        (0..commits).for_each(|_| db.put());
        let died = db.dies_at(after, last, act);
        let next = tale.open();
        for _ in 0..2 {
            next.put();
            tale.survives_all();
        }
        next.restart();
        tale.survives_all();
        drop(stock);
        if !died {
            assert!(last > 10, "{last} operations");
            break;
        }
    }
}

/// The next transaction takes the places of frames that were never visible.
#[test]
pub(crate) fn but_for_frames_that_nobody_could_see() {
    for (commits, after) in [(0, true), (1, true), (3, true), (3, false)] {
        killed_beside_stock(commits, after, |db| {
            drop(db.scribble(20).and_then(|()| db.run("COMMIT")));
        });
    }
}

/// The wal-index shows another generation than `-wal` has the header of.
#[test]
pub(crate) fn or_behind_a_header_that_was_not_written() {
    for (commits, after) in [(1, true), (3, false)] {
        killed_beside_stock(commits, after, |db| {
            let checkpointed = db.run("PRAGMA wal_checkpoint(RESTART)");
            drop(checkpointed.and_then(|()| db.scribble(2)).and_then(|()| db.run("COMMIT")));
        });
        killed_beside_stock(commits, after, |db| {
            let checkpointed = db.run("PRAGMA wal_checkpoint(TRUNCATE)");
            drop(checkpointed.and_then(|()| db.scribble(2)).and_then(|()| db.run("COMMIT")));
        });
    }
}
