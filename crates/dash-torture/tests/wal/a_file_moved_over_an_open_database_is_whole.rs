//! WAL-49: a backup is put in the place of a database that is open. Where `-wal` stays, no session
//! ends, for `-wal` would be read into the backup: the backup is refused.

use crate::a_log_of_another_state_is_refused::{Files, backup_and_crash, refused};
use crate::common::is_fenced;

#[test]
pub(crate) fn or_refused() {
    for closes in [true, false] {
        let (backup, tale, db) = backup_and_crash(2, true);
        db.restart();
        db.put();
        // Has SQLite leave `-wal` at the last close.
        let stock = tale.open_stock();
        Files(vec![("", backup.0[0].1.clone())]).put(&tale.machine, true);
        db.put();
        match closes {
            true => db.close(),
            false => {
                db.ok("PRAGMA rests");
                db.kill();
            }
        }
        tale.machine.kill(&stock.process);
        drop(stock);
        assert!(is_fenced(&tale.machine), "closes {closes}: stock SQLite may read -wal into it");
        refused(&tale, &format!("closes {closes}"));
    }
}
