//! SEC11: who may only read `app.db-dash` can hold a read lock there for as long as it likes.
//! Openers waited 13 seconds for that, and then spoke of a stock process that writes. Now they say
//! at once what is in the way.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]
#![expect(unsafe_code, reason = "leases, which nix does not have")]

mod suite;

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use dash_testing::locks::{lock_first, unlock_first};
use dash_testing::names::beside;
use suite::parts::Part;
use suite::peers::Session;
use suite::sql::{refused, run};

#[test]
fn a_lock_of_a_mere_reader_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let first = suite::open(&path);
    run(&first, "CREATE TABLE t(v); INSERT INTO t VALUES (1)");
    let reader = File::open(beside(&path, "-dash")).unwrap();
    lock_first(&reader, libc::F_RDLCK, 2);
    let begun = Instant::now();
    let error = rusqlite::Connection::open(suite::uri(&path, "")).unwrap_err();
    let took = begun.elapsed();
    let rusqlite::Error::SqliteFailure(code, _) = &error else { panic!("{error}") };
    assert_eq!(code.code, rusqlite::ErrorCode::DatabaseBusy, "{error}");
    let said = suite::parts::last_error();
    assert!(said.contains("holds a read lock on app.db-dash"), "{said}");
    assert!(took < Duration::from_secs(8), "{took:?}");
    drop(reader);
    let second = suite::open(&path);
    assert_eq!(suite::one::<i64>(&second, "SELECT v FROM t"), 1);
}

/// An idle connection in mode shadow keeps those out that write as stock SQLite does, who were told
/// that whoever was in the way is gone by now.
#[test]
fn so_is_an_idle_connection_in_another_mode() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = suite::open_dash(path.as_os_str(), "&journal_mode=delete").unwrap();
    run(&db, "CREATE TABLE t(v)");
    db.busy_timeout(Duration::ZERO).unwrap();
    let mut other = Session::dash(&path, Part::default()).unwrap();
    other.must("SELECT * FROM t");
    assert_eq!(refused(&db, "INSERT INTO t VALUES (1)").0, 5);
    let (said, process) = (suite::parts::last_error(), format!("process {} (", other.id()));
    let why = "), on dash, keeps it from being written by stock SQLite's rules";
    assert!(said.contains(&process) && said.contains(why), "{said}");
}

/// A coordination file of before, which a lock on ALIVE keeps in use, names a process that is gone.
#[test]
fn nor_is_a_process_that_is_gone_said_to_have_the_database() {
    let folder = tempfile::tempdir().unwrap();
    let (path, mode) = (folder.path().join("app.db"), "&journal_mode=wal&dash_wal=memory");
    let coordination = beside(&path, "-dash");
    let first = suite::open_dash(path.as_os_str(), mode).unwrap();
    run(&first, "CREATE TABLE t(v); INSERT INTO t VALUES (1)");
    let mut said = fs::read(&coordination).unwrap();
    drop(first);
    // `InMemory` and `InMemoryOf`.
    for (word, value) in [(53, 1), (54, 999_999_999_u64)] {
        said[word * 8..][..8].copy_from_slice(&value.to_ne_bytes());
    }
    fs::write(&coordination, said).unwrap();
    let reader = File::open(&coordination).unwrap();
    lock_first(&reader, libc::F_RDLCK, 3);
    unlock_first(&reader, 2);
    suite::open_dash(path.as_os_str(), mode).expect_err("somebody may have it open");
    let said = suite::parts::last_error();
    assert!(said.contains("process 999999999 has app.db open"), "{said}");
    assert!(said.contains("no such process, somebody else holds a lock on app.db-dash"), "{said}");
    drop(reader);
    suite::open_dash(path.as_os_str(), mode).expect("opens");
}

/// A lease keeps all others from opening a file, and may be taken again and again.
#[test]
fn nor_is_a_lease_waited_for_that_is_kept() {
    const F_SETSIG: libc::c_int = 10;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    run(&suite::stock(&path), "CREATE TABLE t(v)");
    let planted = beside(&path, "-dash");
    fs::write(&planted, "x").unwrap();
    let kept = File::options().write(true).open(&planted).unwrap();
    // SAFETY: the descriptor is borrowed for the calls, which take integers. SIGURG does nothing.
    let leased = unsafe {
        libc::fcntl(kept.as_raw_fd(), F_SETSIG, libc::SIGURG);
        libc::fcntl(kept.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK)
    };
    assert_eq!(leased, 0, "F_SETLEASE");
    suite::open_dash(path.as_os_str(), "&journal_mode=shadow").expect_err("it is kept");
    let (said, own) = (suite::parts::last_error(), std::process::id());
    assert!(said.contains(&format!("process {own} keeps a lease on it")), "{said}");
    drop(kept);
    suite::open_dash(path.as_os_str(), "&journal_mode=shadow").expect("opens");
}
