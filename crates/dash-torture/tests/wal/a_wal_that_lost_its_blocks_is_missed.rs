//! WAL-16: a file system without a journal may lose durable blocks of a file that grows. A `-wal`
//! that lost its header and all else so, and kept its length, was not deleted: commits may have
//! been there alone, of dash's or of a stock program that went on.

use dash_simulated::{Everything, Machine};

use crate::common::{DB, Db, Fate, Tale, overwrite, remove};

/// A session whose log has all of its generation.
fn session() -> (Tale, Db) {
    let (tale, db) = Tale::begun();
    // The record of the next generation comes before its header, and so before all frames.
    db.restart();
    for _ in 0..4 {
        db.put();
    }
    (tale, db)
}

/// The power is lost, and the blocks of `-wal`.
fn loses_blocks(tale: &Tale, fate: impl FnOnce(&Machine) -> Machine) -> Tale {
    let tale = tale.after(fate(&tale.machine));
    let len = tale.machine.file_view("/app.db-wal").unwrap().len();
    assert!(len > 0);
    overwrite(&tale.machine, "app.db-wal", &vec![0; len]);
    tale
}

fn all(machine: &Machine) -> Machine {
    machine.power_loss(&mut Everything)
}

fn nothing(machine: &Machine) -> Machine {
    machine.power_loss(&mut Fate::nothing())
}

/// What the log has goes into it where a person says so.
#[test]
pub(crate) fn where_the_log_has_each_frame() {
    for checkpoint in [false, true] {
        for fate in [all, nothing] {
            let (tale, db) = session();
            if checkpoint {
                // Its pages may be lost, or be there, and -wal stays.
                let reader = tale.open();
                reader.ok("BEGIN; SELECT * FROM t");
                db.checkpoint("PASSIVE");
                reader.kill();
            }
            db.kill();
            let tale = loses_blocks(&tale, fate);
            let refused = tale.try_open().err().unwrap();
            assert!(refused.contains("app.db-wal is missing or blank"), "{refused}");
            assert!(refused.contains("--keep"), "{refused}");
            let wal = tale.machine.file_view("/app.db-wal").unwrap();
            assert!(wal.iter().all(|byte| *byte == 0));
        }
    }
}

/// A stock program went on: it copied all that dash had committed, and more, and began `-wal` anew.
/// In place it updated rows, so that no page tells a later state but those.
#[test]
pub(crate) fn where_a_stock_program_went_on() {
    let (tale, db) = session();
    let stock = tale.open_stock();
    db.kill();
    for _ in 0..3 {
        let sql = "UPDATE u SET n = n + 1; PRAGMA wal_checkpoint(TRUNCATE); UPDATE u SET n = n - 1";
        stock.db.execute_batch(sql).unwrap();
    }
    tale.machine.kill(&stock.process);
    drop(stock);
    let bytes = tale.machine.file_view(DB).unwrap();
    let tale = loses_blocks(&tale, all);
    let refused = tale.try_open().err().unwrap();
    assert!(refused.contains("app.db-wal is missing or blank"), "{refused}");
    assert_eq!(tale.machine.file_view(DB).unwrap(), bytes);
}

/// Another database's log tells nothing of it, nor does one that is not known to be this file's.
#[test]
pub(crate) fn nor_where_the_log_may_be_anothers() {
    let (tale, db) = session();
    db.kill();
    let tale = loses_blocks(&tale, all);
    let bytes = tale.machine.file_view(DB).unwrap();
    remove(&tale.machine, "");
    overwrite(&tale.machine, "other", &[0]);
    overwrite(&tale.machine, "app.db", &bytes);
    let refused = tale.try_open().err().unwrap();
    assert!(refused.contains("don't belong"), "{refused}");
}
