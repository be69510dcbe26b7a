//! "unable to open database file", "no such vfs" or nothing at all: `dash_last_error()` says what
//! it is, and what to do.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

mod suite;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use dash_testing::machine::root_for;
use rusqlite::Connection;
use suite::parts::{Part, again};
use suite::peers::Session;
use suite::sql::run;

const NOBODY: u32 = 65_534;

#[test]
fn that_a_path_is_too_long() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("d".repeat(250)).join("e".repeat(250));
    fs::create_dir_all(&deep).unwrap();
    let path = deep.join("app.db");
    // In a process of its own: what is no thread's error is the process's.
    let error = Session::dash(&path, Part::default()).map(Session::close).unwrap_err();
    assert!(error.contains("unable to open"), "{error}");
    let bytes = path.as_os_str().len();
    let words = format!("path has {bytes} bytes, and SQLite takes 512 at most");
    assert!(error.contains(&words), "{error}");
}

#[test]
fn what_reading_a_database_in_wal_mode_takes() {
    if !root_for("a database of somebody else") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let path = folder.path().join("app.db");
    let db = suite::open_dash(path.as_os_str(), "&journal_mode=wal").unwrap();
    run(&db, "CREATE TABLE t(x); INSERT INTO t VALUES (1)");
    db.close().unwrap();
    let part = Part { user: Some(NOBODY), ..Part::default() };
    // No statement can be prepared on that connection, nor be asked there.
    let log = folder.path().join("errors");
    fs::write(&log, "").unwrap();
    fs::set_permissions(&log, fs::Permissions::from_mode(0o666)).unwrap();
    let mut command = again("session", &path, part);
    let mut reader = {
        command.env("DASH_ERRORS", &log);
        Session::begin(command).unwrap()
    };
    let error = reader.sql("SELECT x FROM t").unwrap_err();
    let told = fs::read_to_string(&log).unwrap();
    let place = folder.path().canonicalize().unwrap().display().to_string();
    for words in [&*place, "the right to write its folder", "immutable=1"] {
        assert!(told.contains(words), "{words:?} is not in {told:?}, for {error}");
    }
    drop(reader);
    let mut reader = Session::dash(&path, Part { parameters: "&immutable=1", ..part }).unwrap();
    assert_eq!(reader.must("SELECT x FROM t"), "1");
}

/// It stays so as long as the connection, whatever is said meanwhile.
#[test]
fn that_a_database_was_opened_by_stocks_rules() {
    if !root_for("a database of somebody else") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let path = folder.path().join("app.db");
    let db = suite::open_dash(path.as_os_str(), "&journal_mode=wal").unwrap();
    run(&db, "CREATE TABLE t(x); INSERT INTO t VALUES (1)");
    db.close().unwrap();
    std::os::unix::fs::chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
    // Who can read it sees that nothing in it counts, and makes another one.
    let log = dash_testing::names::beside(&path, "-dashlog");
    fs::set_permissions(log, fs::Permissions::from_mode(0o600)).unwrap();
    let mut other =
        Session::dash(&path, Part { user: Some(NOBODY), group: Some(NOBODY), ..Part::default() })
            .unwrap();
    assert_eq!(other.must("PRAGMA journal_mode=WAL"), "wal");
    assert_eq!(other.must("SELECT dash_engine()"), "plain");
    other.must("PRAGMA busy_timeout=0");
    let stock = Connection::open(&path).unwrap();
    run(&stock, "BEGIN IMMEDIATE");
    other.sql("INSERT INTO t VALUES (2)").unwrap_err();
    let told = other.must("SELECT dash_last_error()");
    assert!(told.contains("app.db is locked"), "{told}");
    run(&stock, "COMMIT");
    other.must("INSERT INTO t VALUES (2)");
    let told = other.must("SELECT dash_last_error()");
    assert!(told.contains("app.db-dashlog"), "{told}");
}

/// Hosts go from thread to thread between two calls (Go). No other test here is refused a lock in
/// this process.
#[test]
fn who_has_it_locked_to_another_thread_as_well() {
    for mode in ["wal", "shadow"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        let parameters = format!("&journal_mode={mode}");
        let open = || suite::open_dash(path.as_os_str(), &parameters).unwrap();
        let (db, other) = (open(), open());
        run(&db, "CREATE TABLE t(x); BEGIN IMMEDIATE");
        other.busy_timeout(std::time::Duration::ZERO).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap_err();
        let told = std::thread::spawn(suite::parts::last_error).join().unwrap();
        assert!(told.contains("app.db is locked: another connection of this process"), "{told}");
    }
}
