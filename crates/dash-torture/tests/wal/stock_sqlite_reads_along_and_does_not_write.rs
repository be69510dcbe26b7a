//! WAL-17: as long as dash has the database open, stock SQLite reads it, and finds it locked when
//! it wants to write or to checkpoint.

use crate::common::{Tale, content};

#[test]
pub(crate) fn whenever_it_came() {
    for before in [false, true] {
        let tale = Tale::new();
        let early = before.then(|| tale.open_stock());
        let db = tale.open();
        db.put();
        let stock = early.unwrap_or_else(|| tale.open_stock());
        for _ in 0..4 {
            db.put();
            assert_eq!(content(&stock.db), Ok(tale.tried()));
            let told = tale.put_stock(&stock).unwrap_err();
            assert!(told.contains("locked"), "{told}");
            drop(stock.db.execute_batch("ROLLBACK"));
            let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
            let busy = stock.db.query_row(checkpoint, [], |row| row.get::<_, i64>(0));
            assert_ne!(busy.unwrap_or(1), 0, "stock SQLite checkpoints beside dash");
            let left =
                stock.db.query_row("PRAGMA journal_mode=DELETE", [], |row| row.get::<_, String>(0));
            assert_ne!(left.as_deref(), Ok("delete"), "stock SQLite leaves the mode beside dash");
            tale.survives_all();
        }
        // With the last of dash's connections the locks go, and the fence.
        db.close();
        tale.put_stock(&stock).unwrap();
        tale.survives_all();
    }
}

/// Its snapshot holds while dash commits, checkpoints and begins anew.
#[test]
pub(crate) fn from_one_snapshot() {
    let (tale, db) = Tale::begun();
    let stock = tale.open_stock();
    stock.db.execute_batch("BEGIN").unwrap();
    let seen = content(&stock.db).unwrap();
    for _ in 0..4 {
        db.put();
        drop(db.run("PRAGMA wal_checkpoint(PASSIVE)"));
        assert_eq!(content(&stock.db), Ok(seen));
    }
    tale.survives_all();
    stock.db.execute_batch("COMMIT").unwrap();
    assert_eq!(content(&stock.db), Ok(tale.tried()));
    db.restart();
    assert_eq!(content(&stock.db), Ok(tale.tried()));
}

/// After a kill the fence keeps new ones out, until dash has been there.
#[test]
pub(crate) fn nor_comes_in_after_a_kill() {
    let (tale, db) = Tale::begun();
    db.kill();
    let opened = dash_torture::sim::Stock::open_sharing(tale.machine.process());
    let read = opened.map_err(|error| error.to_string()).and_then(|stock| content(&stock.db));
    assert!(read.is_err(), "stock SQLite reads {read:?} where the fence stands");
    tale.open().close();
    let stock = tale.open_stock();
    tale.put_stock(&stock).unwrap();
    tale.survives_all();
}

/// Who has opened the database, and read nothing, holds nothing. So the last one to go that has
/// read leaves no session behind: a stock program that goes on writes a plain database.
#[test]
pub(crate) fn beside_those_that_have_not_read_it_finds_a_plain_database() {
    for (tale, db) in [Tale::begun(), Tale::begun_in_memory()] {
        let (other, has_read) = (tale.open(), tale.open());
        other.put();
        other.close();
        let early = tale.open_stock();
        assert!(tale.put_stock(&early).unwrap_err().contains("locked"));
        drop(early);
        has_read.close();
        let stock = tale.open_stock();
        let idle = [db.opened_only(), tale.opened_only()];
        db.put();
        db.close();
        tale.survives_all();
        tale.put_stock(&tale.open_stock()).unwrap();
        tale.put_stock(&stock).unwrap();
        tale.survives_all();
        stock.db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        tale.put_stock(&stock).unwrap();
        tale.survives_all();
        for idle in &idle {
            assert_eq!(content(idle), Ok(tale.tried()));
        }
        assert!(tale.put_stock(&stock).unwrap_err().contains("locked"));
        drop(stock.db.execute_batch("ROLLBACK"));
        let next = tale.open();
        next.put();
        next.put();
        tale.survives_all();
    }
}
