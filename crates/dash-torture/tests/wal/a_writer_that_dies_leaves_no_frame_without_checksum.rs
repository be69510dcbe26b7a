//! WAL-19: an older SQLite commits frames without checksums, and leaves another one in the
//! wal-index than the next transaction has to begin with. Its process may die, or be stopped,
//! before the engine has mended that, and others go on.

use std::sync::{Arc, Mutex};

use crate::common::{Db, Tale};

/// A connection of such a version, in a process of its own.
fn older(tale: &Tale, level: &str) -> Db {
    older_in(tale.open(), level)
}

fn older_in(db: Db, level: &str) -> Db {
    db.ok("PRAGMA older=1");
    db.synchronous(level);
    db
}

/// Before each operation of a transaction in turn a process dies, and what is then done by another
/// one holds.
fn dies_anywhere(level: &str, act: fn(&Tale, &Db)) {
    opened_so_dies_anywhere(|tale| older(tale, level), act);
}

fn opened_so_dies_anywhere(open: impl Fn(&Tale) -> Db, act: fn(&Tale, &Db)) {
    for last in 0.. {
        let (tale, db) = Tale::begun();
        let other = open(&tale);
        let died = other.dies_at(false, last, |other| {
            drop(other.scribble(2).and_then(|()| other.run("COMMIT")))
        });
        act(&tale, &db);
        if !died {
            assert!(last > 10, "a transaction of {last} operations");
            break;
        }
    }
}

#[test]
pub(crate) fn to_the_next_writer() {
    for level in ["FULL", "NORMAL"] {
        dies_anywhere(level, |tale, db| {
            db.put();
            tale.survives_all();
            tale.survives(&tale.machine.killed()).unwrap();
            db.put();
            tale.survives_all();
        });
    }
}

/// With `psow=0` SQLite flushes in the middle of a frame that pads a sector, and goes on behind it.
#[test]
pub(crate) fn nor_where_a_sector_is_padded() {
    let open = |tale: &Tale| older_in(tale.open_padding(), "FULL");
    opened_so_dies_anywhere(open, |tale, db| {
        db.put();
        tale.survives_all();
        tale.survives(&tale.machine.killed()).unwrap();
        db.put();
        tale.survives_all();
    });
    let tale = Tale::new();
    let db = open(&tale);
    for _ in 0..9 {
        db.put();
        tale.survives(&tale.machine.killed()).unwrap();
    }
    tale.survives_all();
    tale.all_counts();
}

/// All are dead, and nobody takes `-wal` for one that was cut since (WAL-56).
#[test]
pub(crate) fn nor_is_it_taken_for_one_that_was_cut() {
    for pads in [false, true] {
        let open = |tale: &Tale| {
            let db = if pads { tale.open_padding() } else { tale.open() };
            older_in(db, "FULL")
        };
        for last in 0.. {
            let (tale, db) = Tale::begun();
            db.kill();
            let died = open(&tale).dies_at(false, last, |db| {
                drop(db.scribble(4).and_then(|()| db.run("COMMIT; PRAGMA rests")));
            });
            let next = tale.try_open().unwrap_or_else(|why| panic!("killed at {last}: {why}"));
            assert_eq!(next.content(), tale.tried(), "killed at {last}");
            if !died {
                assert!(last > 10, "a transaction of {last} operations");
                break;
            }
        }
    }
}

#[test]
pub(crate) fn nor_to_a_checkpoint() {
    for level in ["FULL", "NORMAL"] {
        dies_anywhere(level, |tale, db| {
            db.checkpoint("PASSIVE");
            tale.survives_all();
            db.put();
            tale.survives_all();
        });
    }
}

/// Nobody of dash is left to know of it, and a stock connection keeps the wal-index.
#[test]
pub(crate) fn nor_to_who_opens_it_beside_a_stock_reader() {
    for (level, after) in [("NORMAL", false), ("NORMAL", true), ("FULL", false), ("FULL", true)] {
        for last in 0.. {
            let tale = Tale::new();
            let db = older(&tale, level);
            let stock = tale.open_stock();
            db.put();
            let died =
                db.dies_at(after, last, |db| drop(db.scribble(2).and_then(|()| db.run("COMMIT"))));
            for _ in 0..2 {
                let next = tale.open();
                next.put();
                tale.survives_all();
                tale.survives(&tale.machine.killed()).unwrap();
                next.kill();
            }
            drop(stock);
            if !died {
                assert!(last > 10, "a transaction of {last} operations");
                break;
            }
        }
    }
}

/// What stock SQLite is left alone with it copies, and may be cut off in that.
#[test]
pub(crate) fn nor_does_the_last_one_to_close_leave_one() {
    for after in [false, true] {
        for last in 0.. {
            let tale = Tale::new();
            let (idle, stock) = (tale.open(), tale.open_stock());
            idle.put();
            let db = older(&tale, "NORMAL");
            let died =
                db.dies_at(after, last, |db| drop(db.scribble(20).and_then(|()| db.run("COMMIT"))));
            idle.close();
            tale.watch();
            stock.db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).unwrap();
            tale.done();
            tale.survives_all();
            if !died {
                assert!(last > 10, "a transaction of {last} operations");
                break;
            }
        }
    }
}

/// The first attempt to come to rest may have to sum up, and the second one rests.
#[test]
pub(crate) fn nor_to_who_comes_to_rest() {
    dies_anywhere("NORMAL", |tale, db| {
        for _ in 0..2 {
            db.ok("PRAGMA rests");
            tale.survives_all();
        }
        tale.survives(&tale.machine.killed()).unwrap();
        db.put();
        tale.survives_all();
    });
}

/// What is not there yet is not copied, nor does anybody rely on it.
#[test]
pub(crate) fn while_it_stands_still() {
    for last in 0.. {
        let (tale, db) = Tale::begun();
        let other = older(&tale, "NORMAL");
        let (seen, mut count, acting) = (tale.clone(), 0, Arc::new(Mutex::new(db)));
        let (db, reached) = (Arc::clone(&acting), Arc::new(Mutex::new(false)));
        let stood = Arc::clone(&reached);
        tale.machine.watch(move |_, _| {
            count += 1;
            if count == last + 1 {
                *stood.lock().unwrap() = true;
                let db = db.lock().unwrap();
                let busy = db.value::<i64>("PRAGMA wal_checkpoint(PASSIVE)");
                assert!(!matches!(busy, Err(error) if !error.contains("locked")));
                seen.survives_all();
            }
        });
        other.scribble(2).and_then(|()| other.run("COMMIT")).unwrap();
        tale.machine.watch(|_, _| {});
        tale.survives_all();
        let db = acting.lock().unwrap();
        db.put();
        tale.survives_all();
        if !*reached.lock().unwrap() {
            assert!(last > 10, "a transaction of {last} operations");
            break;
        }
    }
}

/// By one connection alone, which never gives WRITER up.
#[test]
pub(crate) fn nor_does_one_that_has_the_database_for_itself() {
    for level in ["FULL", "NORMAL"] {
        let (tale, db) = Tale::begun();
        db.close();
        let db = older(&tale, level);
        db.put();
        db.ok("PRAGMA locking_mode=EXCLUSIVE");
        for _ in 0..3 {
            db.put();
            tale.survives_all();
        }
        tale.all_counts();
        tale.survives(&tale.machine.killed()).unwrap();
    }
}

/// Under `locking_mode=EXCLUSIVE` nobody is told where a transaction begins, nor that it was rolled
/// back: a checkpoint waits for no frame of one that is gone, and the close behind it loses
/// nothing.
#[test]
pub(crate) fn nor_is_one_waited_for_that_was_rolled_back() {
    let (tale, first) = Tale::begun();
    first.close();
    let db = older(&tale, "FULL");
    db.content();
    db.ok("PRAGMA locking_mode=EXCLUSIVE");
    for _ in 0..3 {
        db.put();
    }
    db.scribble(60).unwrap();
    db.ok("ROLLBACK");
    db.checkpoint("PASSIVE");
    db.put();
    db.scribble(60).unwrap();
    db.ok("ROLLBACK");
    db.close();
    let stock = dash_torture::sim::Stock::open_sharing(tale.machine.killed().process()).unwrap();
    assert_eq!(crate::common::content(&stock.db).unwrap(), tale.tried());
}
