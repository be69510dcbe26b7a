//! WAL-16: a file system without a journal may lose durable blocks of a file that grows. A `-wal`
//! that lost its header and all else so, and kept its length, was not deleted: it is written again
//! where the log has each frame that it can have had, and missed where it may have had more.

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
fn loses_blocks(tale: &Tale, db: Db, fate: impl FnOnce(&Machine) -> Machine) -> Tale {
    db.kill();
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

#[test]
pub(crate) fn where_that_has_each_frame() {
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
            let tale = loses_blocks(&tale, db, fate);
            tale.survives_all();
            assert_eq!(tale.open().content(), tale.acknowledged());
        }
    }
}

/// What it had behind the log's last frame may have been durable there alone.
#[test]
pub(crate) fn unless_it_was_longer() {
    let (tale, db) = session();
    db.synchronous("NORMAL");
    db.put();
    let tale = loses_blocks(&tale, db, all);
    let refused = tale.try_open().err().unwrap();
    assert!(refused.contains("app.db-wal is missing or blank"), "{refused}");
    assert!(refused.contains("--keep"), "{refused}");
    assert!(tale.machine.file_view("/app.db-wal").unwrap().iter().all(|byte| *byte == 0));
}

/// Another database's log tells nothing of it, nor does one that is not known to be this file's.
#[test]
pub(crate) fn nor_where_the_log_may_be_anothers() {
    let (tale, db) = session();
    let tale = loses_blocks(&tale, db, all);
    let bytes = tale.machine.file_view(DB).unwrap();
    remove(&tale.machine, "");
    overwrite(&tale.machine, "other", &[0]);
    overwrite(&tale.machine, "app.db", &bytes);
    let refused = tale.try_open().err().unwrap();
    assert!(refused.contains("don't belong"), "{refused}");
}
