//! After a power loss `app.db` may be the older one of the two copies, and stock SQLite's own files
//! may lie beside it. A member that only reads left everything with a journal beside it to stock
//! SQLite, which reads what is named `app.db`, and so found an older state than was acknowledged;
//! likewise where the newer copy was in WAL mode. Leftovers that stock SQLite itself takes for
//! none, or can't get past, kept the database shut. Who opened it through dash as a plain file got
//! the older state, too, and could write it.

mod suite;

use std::fs;
use std::path::{Path, PathBuf};

use dash_testing::names::beside;
use rusqlite::{Connection, ErrorCode};
use suite::damage::{shadow, swap};
use suite::peers::last_error;
use suite::workload;

/// `SQLITE_READONLY_RECOVERY`.
const READONLY_RECOVERY: i32 = 264;

/// A database that was closed after a session of one commit, with its state.
fn made() -> (tempfile::TempDir, PathBuf, i64) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.db");
    let db = suite::open(&path);
    workload::make(&db);
    for _ in 0..3 {
        workload::commit_next(&db).expect("commits");
    }
    db.close().expect("closes");
    let db = suite::open(&path);
    workload::commit_next(&db).expect("commits");
    db.close().expect("closes");
    (folder, path, 4)
}

fn member(path: &Path) -> rusqlite::Result<Connection> {
    suite::load();
    Connection::open(suite::uri(path, "&mode=ro"))
}

#[test]
fn beside_a_journal_that_is_not_hot() {
    for journal in [&b""[..], &[0; 28], &[0; 12_824]] {
        let (_folder, path, state) = made();
        // What a power loss makes of it that takes the exchange of the names.
        swap(&path, &shadow(&path));
        fs::write(beside(&path, "-journal"), journal).expect("writes");
        let reader = member(&path).expect("opens");
        assert_eq!(workload::state(&reader), state, "{} bytes", journal.len());
        drop(reader);
        assert_eq!(workload::state(&suite::open(&path)), state);
    }
}

#[test]
fn in_wal_mode() {
    let (_folder, path, state) = made();
    let stock = suite::stock(&path);
    let mode: String = suite::one(&stock, "PRAGMA journal_mode=WAL");
    assert_eq!(mode, "wal");
    stock.close().expect("closes");
    swap(&path, &shadow(&path));
    let refused = member(&path).and_then(|db| {
        db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))
    });
    let Err(rusqlite::Error::SqliteFailure(error, _)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(error.extended_code, READONLY_RECOVERY, "{error}");
    assert_eq!(error.code, ErrorCode::ReadOnly);
    assert!(last_error().contains("for writing"), "{}", last_error());
    assert_eq!(workload::state(&suite::open(&path)), state);
    assert_eq!(workload::state(&member(&path).expect("opens")), state);
}

/// To stock SQLite an empty WAL is none.
#[test]
fn an_empty_wal_is_in_nobodys_way() {
    let (_folder, path, state) = made();
    fs::write(beside(&path, "-wal"), b"").expect("writes");
    assert_eq!(workload::state(&member(&path).expect("opens")), state);
    let db = suite::open(&path);
    workload::commit_next(&db).expect("commits");
    db.close().expect("closes");
    assert_eq!(workload::state(&suite::stock(&path)), state + 1);
}

/// The check of a file system without a journal may make a folder of it.
#[test]
fn an_empty_folder_for_shared_memory_is_removed() {
    let (folder, path, state) = made();
    let stock = suite::stock(&path);
    stock.execute_batch("PRAGMA journal_mode=WAL; PRAGMA user_version=7").expect("writes");
    // As a process that dies.
    let died = folder.path().join("died");
    fs::create_dir(&died).expect("makes");
    for name in ["app.db", "app.db-wal", "app.db-shadow"] {
        fs::copy(folder.path().join(name), died.join(name)).expect("copies");
    }
    drop(stock);
    let path = died.join(path.file_name().expect("a name"));
    let shm = beside(&path, "-shm");
    fs::create_dir(&shm).expect("makes");
    let db = suite::open(&path);
    assert_eq!(workload::state(&db), state);
    assert_eq!(suite::one::<i64>(&db, "PRAGMA user_version"), 7);
    assert!(!shm.is_dir());
}

/// The modes that are stock SQLite's own, asked for in the URI.
const PLAIN: [&str; 3] = ["delete", "truncate", "persist"];

#[test]
fn as_a_plain_file() {
    for mode in PLAIN {
        let (_folder, path, state) = made();
        swap(&path, &shadow(&path));
        let plain = format!("&journal_mode={mode}");
        let db = Connection::open(suite::uri(&path, &plain)).expect("opens");
        assert_eq!(workload::state(&db), state, "{mode}");
        workload::commit_next(&db).expect("commits");
        db.close().expect("closes");
        assert!(!shadow(&path).exists() && !beside(&path, "-dash").exists());
        assert_eq!(workload::state(&suite::stock(&path)), state + 1, "{mode}");
        assert_eq!(workload::state(&suite::open(&path)), state + 1, "{mode}");
    }
}

#[test]
fn a_plain_file_that_may_only_be_read_is_refused() {
    let (_folder, path, state) = made();
    swap(&path, &shadow(&path));
    suite::load();
    let refused = Connection::open(suite::uri(&path, "&mode=ro&journal_mode=delete"));
    assert!(refused.is_err(), "the older copy was read");
    assert!(last_error().contains("app.db-shadow holds"), "{}", last_error());
    assert_eq!(workload::state(&suite::open(&path)), state);
    assert_eq!(workload::state(&member(&path).expect("opens")), state);
}

/// One that a power loss has left is empty, as nobody flushes it.
#[test]
fn a_plain_file_keeps_no_coordination_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.db");
    workload::make(&suite::stock(&path));
    fs::write(beside(&path, "-dash"), b"").expect("writes");
    fs::create_dir(beside(&path, "-dash-fence")).expect("makes");
    suite::load();
    let db = Connection::open(suite::uri(&path, "&journal_mode=delete")).expect("opens");
    assert_eq!(workload::state(&db), 0);
    assert!(!beside(&path, "-dash").exists());
    db.close().expect("closes");
    suite::open(&path).execute_batch("PRAGMA user_version = 1").expect("commits");
    assert!(!beside(&path, "-dash-fence").exists());
}

/// A shadow that is needed no more is in no plain file's way, and is not made again each time.
#[test]
fn a_plain_file_keeps_a_shadow_at_rest() {
    let (_folder, path, state) = made();
    let db = Connection::open(suite::uri(&path, "&journal_mode=delete")).expect("opens");
    assert_eq!(workload::state(&db), state);
    db.close().expect("closes");
    assert!(shadow(&path).exists());
}
