//! A log that was removed, damaged, or written by a newer dash.

use std::path::Path;

use dash_simulated::{Everything, Machine};
use dash_storage::{Directory, File, OpenMode, Storage};

use crate::common::{Db, Tale};

/// Writes bytes of a file of the database's, durably.
fn write(machine: &Machine, name: &str, bytes: &[u8], offset: u64) {
    let folder = machine.process().open_directory(Path::new("/")).unwrap();
    let file = folder.open(name.as_ref(), OpenMode::Create { permissions: 0o644 }).unwrap();
    file.write_at(bytes, offset).unwrap();
    file.flush().unwrap();
    folder.flush().unwrap();
}

/// A database that lost power with commits in its log only.
fn crashed() -> Tale {
    let (tale, db) = Tale::begun();
    db.put();
    db.put();
    db.kill();
    tale.after(tale.machine.power_loss(&mut crate::common::Fate::nothing()))
}

fn closed() -> Tale {
    let (tale, db) = Tale::begun();
    db.put();
    db.restart();
    db.close();
    tale.after(tale.machine.power_loss(&mut Everything))
}

/// WAL-11: the records behind a damaged head count.
#[test]
pub(crate) fn with_a_damaged_head() {
    for byte in [0, 7, 12, 30, 100, 300] {
        for tale in [crashed(), closed()] {
            write(&tale.machine, "app.db-dashlog", &[0x5a; 4], byte);
            tale.survives(&tale.machine).unwrap_or_else(|what| panic!("byte {byte}: {what}"));
        }
    }
}

#[test]
pub(crate) fn written_by_a_newer_dash() {
    for tale in [crashed(), closed()] {
        write(&tale.machine, "app.db-dashlog", &2_u32.to_le_bytes(), 8);
        let refused = tale.try_open().err().expect("it is opened").to_lowercase();
        assert!(refused.contains("newer"), "{refused}");
        write(&tale.machine, "app.db-dashlog", &1_u32.to_le_bytes(), 8);
        tale.survives(&tale.machine).unwrap();
    }
}

/// Removed at rest, it is made anew.
#[test]
pub(crate) fn that_was_removed_at_rest() {
    let tale = closed();
    crate::common::remove(&tale.machine, "-dashlog");
    tale.watch();
    let db: Db = tale.open();
    db.put();
    db.put();
    db.restart();
    db.close();
    tale.done();
    tale.survives_all();
}
