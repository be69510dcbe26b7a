//! WAL-4, WAL-16: a stock connection that was open before never looks at the name fence. After dash
//! was killed it writes, checkpoints, begins anew, and deletes `-wal`; the log is older than all of
//! that.

use dash_torture::sim::Stock;

use crate::common::{Db, Tale};

fn survivor_does(act: impl Fn(&Tale, &Stock), left: impl Fn(&Db)) {
    let (tale, db) = Tale::begun();
    db.put();
    leave_a_page(&db);
    left(&db);
    let stock = tale.open_stock();
    db.kill();
    tale.watch();
    act(&tale, &stock);
    tale.done();
    tale.survives_all();
    tale.machine.kill(&stock.process);
    drop(stock);
    tale.survives(&tale.machine.killed()).unwrap();
    tale.survives_all();
    tale.watch();
    let next = tale.open();
    next.put();
    next.put();
    next.restart();
    next.close();
    tale.done();
    tale.survives_all();
}

/// One that the survivor leaves as it is: what it does can be told from a deletion by hand.
fn leave_a_page(db: &Db) {
    db.ok("INSERT INTO big VALUES ('a')");
}

fn checkpoint(stock: &Stock, kind: &str) {
    let sql = format!("PRAGMA wal_checkpoint({kind})");
    let busy: i64 = stock.db.query_row(&sql, [], |row| row.get(0)).unwrap();
    assert_eq!(busy, 0);
}

/// Nothing, a commit in NORMAL, or pages that are in the database already.
const LEFT: [fn(&Db); 3] = [
    |_| {},
    |db| {
        db.synchronous("NORMAL");
        db.put();
    },
    |db| {
        db.checkpoint("PASSIVE");
        db.put();
        leave_a_page(db);
    },
];

#[test]
pub(crate) fn that_it_appends() {
    for left in LEFT {
        survivor_does(
            |tale, stock| {
                for _ in 0..3 {
                    tale.put_stock(stock).unwrap();
                }
            },
            left,
        );
    }
}

#[test]
pub(crate) fn that_it_copies_into_the_database() {
    for left in LEFT {
        survivor_does(
            |tale, stock| {
                tale.put_stock(stock).unwrap();
                checkpoint(stock, "PASSIVE");
                tale.put_stock(stock).unwrap();
            },
            left,
        );
    }
}

#[test]
pub(crate) fn that_it_writes_under_another_header() {
    for left in LEFT {
        survivor_does(
            |tale, stock| {
                for _ in 0..3 {
                    checkpoint(stock, "RESTART");
                    tale.put_stock(stock).unwrap();
                }
            },
            left,
        );
    }
}

#[test]
pub(crate) fn that_it_writes_after_a_truncation() {
    for left in LEFT {
        survivor_does(
            |tale, stock| {
                tale.put_stock(stock).unwrap();
                checkpoint(stock, "TRUNCATE");
                tale.put_stock(stock).unwrap();
            },
            left,
        );
    }
}

/// Under `locking_mode=EXCLUSIVE` it holds no lock of the wal-index, and writes nevertheless.
#[test]
pub(crate) fn while_it_has_the_database_for_itself() {
    let tale = Tale::new();
    let db = tale.open();
    db.put();
    db.kill();
    let stock = tale.open_stock();
    stock.db.execute_batch("PRAGMA locking_mode=EXCLUSIVE").unwrap();
    tale.put_stock(&stock).unwrap();
    let writes = tale.writes("-wal");
    let refused = tale.try_open().err().unwrap();
    assert!(refused.contains("locked"), "{refused}");
    assert_eq!(tale.writes("-wal"), writes, "nothing is written under it");
    tale.put_stock(&stock).unwrap();
    drop(stock);
    tale.survives_all();
}

/// Without the wal-index it begins `-wal` anew, and leaves `-shm` as those had it who were killed
/// (WAL-56).
#[test]
pub(crate) fn and_begins_anew_beside_an_index_of_before() {
    for copies in ["RESTART", "TRUNCATE"] {
        let (tale, db) = Tale::begun();
        db.put();
        db.ok("PRAGMA rests");
        db.kill();
        let stock = Stock::open_in(tale.machine.process()).unwrap();
        tale.put_stock(&stock).unwrap();
        checkpoint(&stock, copies);
        tale.put_stock(&stock).unwrap();
        tale.machine.kill(&stock.process);
        assert_eq!(tale.open().content(), tale.tried(), "{copies}");
    }
}
