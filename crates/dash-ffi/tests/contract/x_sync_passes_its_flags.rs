//! Every flag of a flush arrives: normal or full, and whether the size may stay behind.

use crate::common::{Database, Fault, file_pointer};
use dash_ffi::{Code, SyncFlags};

#[test]
fn x_sync_passes_its_flags() {
    let database = Database::new();
    let db = database.open("").unwrap();
    db.execute_batch("CREATE TABLE t(x)").unwrap();
    for (full, flags) in [("OFF", SyncFlags::NORMAL), ("ON", SyncFlags::FULL)] {
        database.probe.take("");
        db.execute_batch(&format!("PRAGMA fullfsync={full}; INSERT INTO t VALUES (1)")).unwrap();
        let syncs = database.probe.take("xSync");
        assert!(syncs.contains(&format!("xSync {flags:?}")), "{full}: {syncs:?}");
    }

    let file = file_pointer(&db);
    database.probe.take("");
    // SAFETY: an open file.
    assert_eq!(unsafe { (*(*file).pMethods).xSync.unwrap()(file, 0x13) }, 0);
    assert_eq!(database.probe.take("xSync"), ["xSync SyncFlags(0x13)"]);
    let flags = SyncFlags::from_raw(0x13);
    assert!(flags.is_full() && flags.is_data_only());
    assert!(!SyncFlags::NORMAL.is_full() && !SyncFlags::FULL.is_data_only());

    database.probe.fail("xSync", Fault::Error(Code::IOERR_FSYNC, None));
    // SAFETY: an open file.
    let code = unsafe { (*(*file).pMethods).xSync.unwrap()(file, 2) };
    assert_eq!(code, Code::IOERR_FSYNC.raw());
}
