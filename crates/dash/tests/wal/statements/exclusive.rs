//! A connection in exclusive locking mode, which does not ask whether it may write.

#![allow(unsafe_code, reason = "tests call SQLite's C interface directly")]

use std::ptr::null_mut;

use rusqlite::{MAIN_DB, ffi};

use super::*;

/// From its first access, or later: SQLite has the wal-index in its own memory, or in `-shm`.
const EXCLUSIVE: [&str; 2] =
    ["PRAGMA locking_mode=EXCLUSIVE", "SELECT * FROM t; PRAGMA locking_mode=EXCLUSIVE"];

fn exclusive(folder: &Folder, how: &str) -> Connection {
    database(folder).execute_batch("INSERT INTO t VALUES (1, zeroblob(100))").expect("commits");
    let db = recording(folder);
    db.execute_batch(how).expect("runs");
    db
}

#[test]
fn its_first_write_is_recorded_and_so_are_the_next() {
    for how in EXCLUSIVE {
        let folder = Folder::new();
        let db = exclusive(&folder, how);
        for value in 0..3 {
            insert(&db, value);
            assert_eq!(newest(&db, "sql"), ["INSERT INTO t(c) VALUES (?)"], "{how}");
            assert_eq!(newest(&db, "parameters"), [value.to_string()], "{how}");
            assert_eq!((reason(&db), commits(&db)), ("-".into(), value + 1), "{how}");
        }
        db.execute_batch("BEGIN; SELECT count(*) FROM t; INSERT INTO t(c) VALUES (3)").expect("ok");
        db.execute_batch("UPDATE t SET c=4; COMMIT").expect("commits");
        let ran = ["INSERT INTO t(c) VALUES (3)", "UPDATE t SET c=4;"];
        assert_eq!((newest(&db, "sql"), reason(&db)), (ran.map(str::to_owned).into(), "-".into()));
    }
}

#[test]
fn a_blob_handle_that_writes_first_is_noticed() {
    for how in EXCLUSIVE {
        let folder = Folder::new();
        let db = exclusive(&folder, how);
        insert(&db, 1);
        for (then, shown) in
            [("INSERT INTO t(c) VALUES (2)", "INSERT INTO t(c) VALUES (2)"), ("", "-")]
        {
            db.execute_batch("BEGIN").expect("begins");
            let mut blob = db.blob_open(MAIN_DB, "t", "c", 1, false).expect("opens");
            blob.write_at(b"abc", 0).expect("writes");
            drop(blob);
            db.execute_batch(then).expect("writes");
            db.execute_batch("COMMIT").expect("commits");
            assert_eq!(newest(&db, "sql"), [shown], "{how}");
            assert_eq!(reason(&db), Reason::BlobHandle.sentence(), "{how}");
        }
        insert(&db, 3);
        assert_eq!(reason(&db), "-", "{how}");
    }
}

#[test]
fn what_was_rolled_back_once_the_hook_was_lost_is_not_shown() {
    for how in EXCLUSIVE {
        let folder = Folder::new();
        let db = exclusive(&folder, how);
        insert(&db, 1);
        db.execute_batch("BEGIN; INSERT INTO t(c) VALUES (2)").expect("writes");
        // SAFETY: an open connection of this thread's.
        unsafe { ffi::sqlite3_trace_v2(db.handle(), 0, None, null_mut()) };
        db.execute_batch("ROLLBACK; BEGIN; INSERT INTO t(c) VALUES (3); COMMIT").expect("commits");
        assert_eq!(newest(&db, "sql"), ["-"], "{how}");
        assert_eq!(reason(&db), Reason::HookTaken.sentence(), "{how}");
    }
}
