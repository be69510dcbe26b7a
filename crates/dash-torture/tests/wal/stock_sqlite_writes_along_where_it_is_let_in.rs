//! WAL-50, WAL-51: with `dash_stock=write` stock SQLite writes while dash has the database
//! open, at any level of `synchronous`, and checkpoints where no session of the log lasts. Neither
//! loses what it has promised.

use dash_storage::LockKind;
use dash_torture::sim::Stock;

use crate::common::{DB, Db, Tale, losses};

const LEVELS: [&str; 3] = ["FULL", "NORMAL", "OFF"];

/// Levels at which a checkpoint of stock SQLite may be cut off: under OFF, and at rest, where dash
/// keeps nothing, it takes what it takes without dash.
const FLUSHING: [&str; 2] = ["FULL", "NORMAL"];

/// Whether all could be copied.
fn checkpoint(stock: &Stock, mode: &str) -> bool {
    let sql = format!("PRAGMA wal_checkpoint({mode})");
    let column = |row: &rusqlite::Row<'_>, at| row.get::<_, i64>(at);
    let done =
        |row: &rusqlite::Row<'_>| Ok(column(row, 0)? == 0 && column(row, 1)? == column(row, 2)?);
    stock.db.query_row(&sql, [], done).unwrap_or(false)
}

fn level(stock: &Stock, level: &str) {
    stock.db.execute_batch(&format!("PRAGMA synchronous={level}")).unwrap();
}

#[test]
pub(crate) fn whatever_is_lost() {
    for level in LEVELS {
        let (tale, db) = Tale::begun_beside();
        let (stock, other) = (tale.open_stock(), tale.open());
        tale.watch();
        for _ in 0..2 {
            tale.put_stock_at(&stock, level).unwrap();
            db.put();
            other.put();
            tale.put_stock_at(&stock, level).unwrap();
            other.restart();
        }
        db.close();
        other.close();
        tale.done();
        tale.survives_all();
    }
}

/// A session begins and ends beside it.
#[test]
pub(crate) fn from_the_first_commit_on() {
    for level in LEVELS {
        let tale = Tale::beside();
        let (stock, db) = (tale.open_stock(), tale.open());
        for _ in 0..2 {
            tale.watch();
            for _ in 0..4 {
                tale.put_stock_at(&stock, level).unwrap();
                db.put();
            }
            tale.put_stock_at(&stock, level).unwrap();
            db.ok("PRAGMA rests");
            tale.done();
            tale.survives_all();
        }
    }
}

#[test]
pub(crate) fn and_checkpoints_at_rest_alone() {
    for level in FLUSHING {
        let (tale, db) = Tale::begun_beside();
        let (stock, other) = (tale.open_stock(), tale.open());
        other.put();
        tale.put_stock_at(&stock, level).unwrap();
        for mode in ["PASSIVE", "RESTART", "TRUNCATE"] {
            assert!(!checkpoint(&stock, mode), "{mode} in a session");
        }
        for db in [&db, &other] {
            db.ok("PRAGMA rests");
        }
        for mode in ["PASSIVE", "RESTART", "TRUNCATE"] {
            assert!(checkpoint(&stock, mode), "{mode} at rest");
            tale.put_stock_at(&stock, level).unwrap();
            tale.survives_all();
        }
        db.put();
        other.put();
        tale.survives_all();
    }
}

/// A connection that has only read keeps it out, too: the one that has begun the session may be
/// killed.
#[test]
pub(crate) fn nor_where_the_one_that_began_the_session_was_killed() {
    for reads in [false, true] {
        for level in FLUSHING {
            let tale = Tale::beside();
            let (db, other, stock) = (tale.open(), tale.open(), tale.open_stock());
            for _ in 0..20 {
                db.put();
            }
            if reads {
                other.content();
            }
            db.kill();
            for _ in 0..2 {
                assert_eq!(checkpoint(&stock, "RESTART"), !reads);
                tale.survives_all();
                tale.put_stock_at(&stock, level).unwrap();
                tale.survives_all();
            }
            other.put();
            assert!(!checkpoint(&stock, "PASSIVE"));
            tale.survives_all();
            other.put();
            tale.survives_all();
            other.close();
            tale.survives_all();
        }
    }
}

/// With readers of four older states of it no slot is left, and dash flushes `-wal` instead.
#[test]
pub(crate) fn where_it_can_not_be_kept_out_of_checkpoints_the_log_is_not_begun() {
    let tale = Tale::beside();
    let (db, writer) = (tale.open(), tale.open_stock());
    let readers: Vec<_> = (0..5)
        .map(|_| {
            tale.put_stock(&writer).unwrap();
            let stock = tale.open_stock();
            stock.db.execute_batch("BEGIN; SELECT count(*) FROM u").unwrap();
            stock
        })
        .collect();
    let before = (tale.flushes("-dashlog"), tale.flushes("-wal"));
    for _ in 0..3 {
        db.put();
        tale.survives_all();
    }
    assert_eq!(tale.flushes("-dashlog"), before.0);
    assert!(tale.flushes("-wal") >= before.1 + 3);
    drop(readers);
    for _ in 0..3 {
        db.put();
        tale.survives_all();
    }
    assert!(tale.flushes("-dashlog") > before.0);
}

/// Stock SQLite begins `-wal` anew at rest, in one way or the other, and dash goes on with it.
#[test]
pub(crate) fn and_its_generations_are_gone_on_with() {
    for (at, mode) in FLUSHING.iter().flat_map(|at| [(*at, "RESTART"), (*at, "TRUNCATE")]) {
        let (tale, db) = Tale::begun_beside();
        let stock = tale.open_stock();
        for number in 0..3 {
            db.ok("PRAGMA rests");
            tale.put_stock_at(&stock, at).unwrap();
            level(&stock, at);
            assert!(checkpoint(&stock, mode));
            if number > 0 {
                tale.put_stock_at(&stock, at).unwrap();
            }
            tale.watch();
            for _ in 0..12 {
                db.put();
            }
            tale.put_stock_at(&stock, at).unwrap();
            db.restart();
            tale.done();
            tale.survives_all();
        }
    }
}

/// Under OFF stock SQLite may lose all of that at a power loss, and nothing once dash has committed
/// in FULL.
#[test]
pub(crate) fn also_those_that_are_on_no_device() {
    for truncates in [false, true] {
        let tale = Tale::beside();
        let (db, stock) = (tale.open(), tale.open_stock());
        for _ in 0..2 {
            for _ in 0..20 {
                db.put();
            }
            db.ok("PRAGMA rests");
            for _ in 0..2 {
                tale.put_stock_at(&stock, "OFF").unwrap();
                assert!(checkpoint(&stock, if truncates { "TRUNCATE" } else { "RESTART" }));
            }
            tale.put_stock_at(&stock, "OFF").unwrap();
            db.put();
            tale.survives_all();
        }
    }
}

/// Under OFF it copies pages that are on no device then, and flushes nothing. A connection that
/// begins `-wal` anew flushes the database, though nobody of dash has written there.
#[test]
pub(crate) fn and_a_checkpoint_of_it_in_off_takes_nothing() {
    for rests in [false, true] {
        let tale = Tale::beside();
        let (db, stock) = (tale.open(), tale.open_stock());
        for _ in 0..if rests { 20 } else { 1 } {
            db.put();
        }
        db.synchronous("NORMAL");
        for _ in 0..20 {
            db.put();
        }
        db.synchronous("FULL");
        db.put();
        if rests {
            db.ok("PRAGMA rests");
        }
        level(&stock, "OFF");
        if checkpoint(&stock, "PASSIVE") {
            for _ in 0..9 {
                db.put();
                tale.survives_all();
            }
        } else {
            assert!(!rests);
        }
    }
}

/// Its commits in FULL survive what a connection of dash in OFF does, where no other one of dash
/// has committed.
#[test]
pub(crate) fn nor_from_itself() {
    let tale = Tale::beside();
    let (db, stock) = (tale.open(), tale.open_stock());
    for _ in 0..20 {
        tale.put_stock(&stock).unwrap();
    }
    db.synchronous("OFF");
    db.checkpoint("PASSIVE");
    tale.survives_all();
    // Frames over older ones, and nobody asks for a flush of the header before them.
    for _ in 0..8 {
        db.put();
        for (fate, after) in losses(&tale.machine, 24) {
            let found = tale.after(after).open().content();
            assert!((20..=tale.tried()).contains(&found), "{fate}: {found} commits");
        }
    }
}

/// A connection of dash in OFF copies everything, and stock SQLite begins `-wal` anew on top.
#[test]
pub(crate) fn nor_from_a_checkpoint_of_dash_in_off() {
    let tale = Tale::beside();
    let (db, lazy, stock) = (tale.open(), tale.open(), tale.open_stock());
    lazy.synchronous("OFF");
    for _ in 0..3 {
        for _ in 0..20 {
            db.put();
        }
        db.ok("PRAGMA rests");
        lazy.checkpoint("PASSIVE");
        tale.survives_all();
        tale.put_stock(&stock).unwrap();
        tale.survives_all();
    }
}

/// One before 3.51.3 goes by the header that it has read, whatever becomes of `-wal` (WAL-47).
#[test]
pub(crate) fn and_nothing_is_begun_anew_beside_its_checkpoint() {
    let tale = Tale::beside();
    let (db, stock) = (tale.open(), tale.open_stock());
    let salts = || tale.machine.file_view(format!("{DB}-wal")).unwrap()[16..24].to_vec();
    for _ in 0..20 {
        db.put();
    }
    db.ok("PRAGMA rests");
    assert!(checkpoint(&stock, "PASSIVE"));
    let before = salts();
    let interrupted = tale.machine.open_stock(format!("{DB}-shm")).unwrap();
    assert!(interrupted.lock(121..122, LockKind::Exclusive), "it has CKPT");
    db.put();
    assert_eq!(salts(), before, "dash appends");
    drop(interrupted);
    db.ok("PRAGMA rests");
    assert!(checkpoint(&stock, "PASSIVE"));
    db.put();
    assert_ne!(salts(), before);
    db.ok("PRAGMA rests");
    assert!(checkpoint(&stock, "PASSIVE"), "nothing is left of what kept it out");
    tale.survives_all();
}

/// A checkpoint that drains `-wal` has WRITER until it ends: for so long a busy timeout waits.
#[test]
pub(crate) fn it_waits_for_a_checkpoint_that_drains_and_no_longer() {
    let (tale, db) = Tale::begun_beside();
    let stock = tale.open_stock();
    for _ in 0..20 {
        db.put();
    }
    db.ok("PRAGMA checkpoint=begins");
    assert!(tale.put_stock(&stock).unwrap_err().contains("locked"));
    db.ok("PRAGMA checkpoint=ends");
    tale.put_stock(&stock).unwrap();
    tale.survives_all();
}

/// A writer of dash dies between the record of a generation and its header, and a stock writer
/// writes that header, and flushes nothing.
#[test]
pub(crate) fn also_where_it_writes_the_header_that_a_dead_writer_announced() {
    for last in 0.. {
        let tale = Tale::beside();
        let (stock, db, other) = (tale.open_stock(), tale.open(), tale.open());
        // It has begun a generation itself: else it would draw other salts.
        tale.put_stock(&stock).unwrap();
        assert!(checkpoint(&stock, "RESTART"));
        tale.put_stock(&stock).unwrap();
        for _ in 0..3 {
            db.put();
        }
        db.checkpoint("RESTART");
        let died =
            db.dies_at(false, last, |db| drop(db.scribble(1).and_then(|()| db.run("COMMIT"))));
        tale.put_stock_at(&stock, "OFF").unwrap();
        for _ in 0..2 {
            other.put();
            tale.survives_all();
        }
        if !died {
            assert!(last > 10, "a transaction of {last} operations");
            break;
        }
    }
}

/// dash is closed, and comes again, beside a stock process that goes on.
#[test]
pub(crate) fn while_connections_of_dash_come_and_go() {
    let open: [fn(&Tale) -> Db; 2] = [Tale::open, Tale::open_padding];
    for (open, level) in open.iter().flat_map(|open| LEVELS.map(|level| (open, level))) {
        let tale = Tale::beside();
        let stock = tale.open_stock();
        for number in 0..4 {
            tale.put_stock_at(&stock, level).unwrap();
            let db = open(&tale);
            tale.watch();
            for _ in 0..3 {
                db.put();
                tale.put_stock_at(&stock, level).unwrap();
            }
            if number % 2 == 0 {
                db.close()
            } else {
                db.kill()
            }
            tale.done();
            tale.survives_all();
        }
    }
}
