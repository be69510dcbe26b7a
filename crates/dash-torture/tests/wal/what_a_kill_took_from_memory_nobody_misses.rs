//! WAL-36: what a kill has taken from a `-wal` in memory the log has, and a stock connection keeps
//! the wal-index. It sees nothing before recovery has written all of that back, whatever becomes of
//! the recovery, and nobody goes by an index that was made before.

use std::sync::{Arc, Mutex};

use dash_simulated::OperationKind;
use dash_torture::sim::Stock;

use crate::common::{DB, Db, Tale, content, overwrite, remove};

/// A stock connection; and some commits in the memory of a process that was killed.
fn killed(commits: usize) -> (Tale, Stock) {
    let tale = Tale::alone();
    let stock = tale.open_stock();
    let db = tale.open();
    (0..commits).for_each(|_| db.put());
    db.kill();
    (tale, stock)
}

/// What the stock connection is shown is all, or an error.
fn shows_all(tale: &Tale, stock: &Stock) {
    if let Ok(seen) = content(&stock.db) {
        assert_eq!(seen, tale.acknowledged(), "stock SQLite is shown less");
    }
}

/// It has all, and what is committed on top of that is durable.
fn goes_on(tale: &Tale, db: &Db) {
    assert_eq!(db.content(), tale.acknowledged());
    for _ in 0..2 {
        db.put();
        tale.survives_all();
        tale.survives(&tale.machine.killed()).unwrap();
    }
}

#[test]
pub(crate) fn where_recovery_is_refused() {
    for commits in [1, 4] {
        let (tale, stock) = killed(commits);
        let log = tale.machine.file_view(format!("{DB}-dashlog")).unwrap();
        remove(&tale.machine, "-dashlog");
        let refused = tale.try_open().err().unwrap();
        assert!(refused.contains("app.db-dashlog is missing"), "{refused}");
        shows_all(&tale, &stock);
        overwrite(&tale.machine, "app.db-dashlog", &log);
        goes_on(&tale, &tale.open());
        drop(stock);
    }
}

#[test]
pub(crate) fn where_recovery_is_cut_off() {
    use OperationKind::{Flush, Lock, Open, Read, SetLen, Write};
    for alone in [true, false] {
        for step in 0.. {
            let (tale, stock) = killed(4);
            let next = if alone { tale.clone() } else { tale.untold() };
            let died = next.open_killed(step, &[Open, Lock, Read, Write, SetLen, Flush]);
            shows_all(&tale, &stock);
            if died {
                tale.survives_all();
            }
            goes_on(&tale, &next.open());
            drop(stock);
            if !died {
                assert!(step > 20, "a recovery of {step} operations");
                break;
            }
        }
    }
}

/// A stock process has opened `-shm`, and not locked it yet: whoever closes the database beside it
/// leaves the name where it is, or the two would go on with two of them.
#[test]
pub(crate) fn nor_is_it_left_with_an_index_of_its_own() {
    let (tale, db) = Tale::begun_alone();
    let (last, shm) = (Arc::new(Mutex::new(Some(db))), tale.inode("-shm"));
    let closing = Arc::clone(&last);
    tale.machine.watch(move |_, operation| {
        if operation.inode == shm
            && operation.kind != OperationKind::Open
            && let Some(db) = closing.lock().unwrap().take()
        {
            db.close();
        }
    });
    let stock = Stock::open_sharing(tale.machine.process()).unwrap();
    assert_eq!(content(&stock.db), Ok(tale.tried()));
    tale.machine.watch(|_, _| {});
    assert!(last.lock().unwrap().is_none(), "nobody has closed it");
    let next = tale.open();
    next.put();
    shows_all(&tale, &stock);
    if tale.put_stock(&stock).is_ok() {
        panic!("stock SQLite writes beside it");
    }
    goes_on(&tale, &next);
}
