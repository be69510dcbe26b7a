//! WAL-53: with `dash_stock=checkpoint` stock SQLite also checkpoints, and begins `-wal` anew,
//! while a session of the log lasts. In FULL and NORMAL it takes nothing from anybody.

use dash_simulated::Machine;
use dash_storage::LockKind::Exclusive;
use dash_torture::sim::Stock;

use crate::common::{Db, Tale, is_fenced};

const LEVELS: [&str; 2] = ["FULL", "NORMAL"];
const MODES: [&str; 3] = ["PASSIVE", "RESTART", "TRUNCATE"];

/// A complete checkpoint of stock SQLite.
fn checkpoint(stock: &Stock, level: &str, mode: &str) {
    stock.db.execute_batch(&format!("PRAGMA synchronous={level}")).unwrap();
    let row = |row: &rusqlite::Row<'_>| Ok([row.get::<_, i64>(0)?, row.get(1)?, row.get(2)?]);
    let sql = format!("PRAGMA wal_checkpoint({mode})");
    let [busy, frames, copied] = stock.db.query_row(&sql, [], row).unwrap();
    assert_eq!((busy, frames), (0, copied), "{mode} in {level}");
}

fn checkpoints() -> impl Iterator<Item = (&'static str, &'static str)> {
    LEVELS.into_iter().flat_map(|level| MODES.map(|mode| (level, mode)))
}

/// The salts of `-wal`, as bytes.
fn salts(machine: &Machine) -> Vec<u8> {
    machine.file_view("/app.db-wal").unwrap()[16..24].to_vec()
}

/// Between commits of dash and its own, and the power goes in any moment.
#[test]
pub(crate) fn in_a_session() {
    for (level, mode) in checkpoints() {
        let tale = Tale::of("checkpointed");
        let (db, other, stock) = (tale.open(), tale.open(), tale.open_stock());
        db.put();
        db.put();
        assert!(is_fenced(&tale.machine));
        tale.watch();
        for _ in 0..2 {
            other.put();
            checkpoint(&stock, level, mode);
            tale.put_stock_at(&stock, level).unwrap();
            other.put();
            tale.put_stock_at(&stock, level).unwrap();
            checkpoint(&stock, level, mode);
            db.put();
            other.put();
            // Another one begins `-wal` anew than has copied it.
            other.checkpoint("PASSIVE");
            tale.put_stock_at(&stock, level).unwrap();
            db.put();
        }
        assert!(is_fenced(&tale.machine));
        tale.done();
        tale.survives_all();
    }
}

/// Sessions begin, end and are left behind around it.
#[test]
pub(crate) fn from_one_session_to_the_next() {
    let ends: [fn(Db); 3] = [Db::close, Db::kill, |db| db.ok("PRAGMA rests")];
    for ((level, mode), end) in checkpoints().zip(ends.iter().cycle()) {
        let tale = Tale::of("checkpointed");
        let (stock, stays) = (tale.open_stock(), tale.open());
        for _ in 0..3 {
            let db = tale.open();
            tale.watch();
            for _ in 0..3 {
                db.put();
                tale.put_stock_at(&stock, level).unwrap();
            }
            checkpoint(&stock, level, mode);
            tale.put_stock_at(&stock, level).unwrap();
            end(db);
            tale.put_stock_at(&stock, level).unwrap();
            checkpoint(&stock, level, mode);
            tale.done();
            tale.survives_all();
            stays.put();
        }
        tale.survives_all();
    }
}

/// What its checkpoint has copied under OFF is on no device. Where all of that was durable in the
/// log, a connection that begins `-wal` anew flushes it first.
#[test]
pub(crate) fn and_dash_flushes_what_it_copied_in_off() {
    let tale = Tale::of("checkpointed");
    let (db, stock) = (tale.open(), tale.open_stock());
    for _ in 0..3 {
        for _ in 0..20 {
            db.put();
        }
        checkpoint(&stock, "OFF", "PASSIVE");
        tale.survives_all();
        for _ in 0..2 {
            db.put();
            tale.survives_all();
        }
    }
}

/// A connection of dash in OFF copies everything, and stock SQLite begins `-wal` anew on top.
#[test]
pub(crate) fn and_begins_anew_what_dash_has_copied_in_off() {
    let tale = Tale::of("checkpointed");
    let (db, lazy, stock) = (tale.open(), tale.open(), tale.open_stock());
    lazy.synchronous("OFF");
    for _ in 0..3 {
        for _ in 0..20 {
            db.put();
        }
        lazy.checkpoint("PASSIVE");
        tale.survives_all();
        tale.put_stock(&stock).unwrap();
        tale.survives_all();
    }
}

/// `dash_read=durable`: a reader is the first of dash that sees a generation of stock SQLite.
#[test]
pub(crate) fn and_a_reader_that_waits_sees_what_is_durable() {
    let tale = Tale::of("checkpointed");
    let (db, reader, stock) = (tale.open(), tale.open(), tale.open_stock());
    reader.ok("PRAGMA dash_read=durable");
    for mode in MODES {
        db.put();
        db.put();
        checkpoint(&stock, "NORMAL", mode);
        tale.put_stock_at(&stock, "NORMAL").unwrap();
        assert_eq!(reader.content(), tale.tried());
        tale.all_counts();
        tale.survives_all();
    }
}

/// A checkpoint of SQLite before 3.51.3 has to find the generation that it has read of: dash
/// appends meanwhile.
#[test]
pub(crate) fn and_dash_begins_anew_beside_none_of_its_checkpoints() {
    let tale = Tale::of("checkpointed");
    let (db, stock) = (tale.open(), tale.open_stock());
    db.put();
    db.put();
    let before = salts(&tale.machine);
    checkpoint(&stock, "FULL", "PASSIVE");
    let checkpointer = tale.machine.open_stock("/app.db-shm").unwrap();
    assert!(checkpointer.lock(121..122, Exclusive));
    db.put();
    assert_eq!(salts(&tale.machine), before);
    checkpointer.unlock();
    checkpoint(&stock, "FULL", "PASSIVE");
    db.put();
    assert_ne!(salts(&tale.machine), before);
    tale.survives_all();
}
