//! SEC12: a panic was printed on the host's standard error, with a backtrace. It is an error with a
//! message, which says where it was; nothing is printed. Panics of a Rust program itself are its
//! own.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use common::{Database, Fault};
use dash_testing::roles::{again, role};

#[test]
fn standard_error_is_the_hosts() {
    let mut host = again("a_host_that_meets_panics", "");
    let output = host.env("RUST_BACKTRACE", "1").output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    assert!(error.contains("the host's own"), "the host's own panics are printed: {error}");
    assert!(!error.contains("confused"), "{error}");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("internal error in xLock: the engine is confused at "), "{said}");
    assert!(
        said.contains("said: internal error in a thread: the thread is confused at "),
        "{said}"
    );
}

#[test]
#[ignore = "a role of the test above"]
fn a_host_that_meets_panics() {
    if role("a_host_that_meets_panics").is_none() {
        return;
    }
    let said = || println!("said: {}", dash_ffi::last_error().unwrap());
    let database = Database::new();
    let db = database.open("").unwrap();
    db.execute_batch("CREATE TABLE t(x)").unwrap();
    database.probe.fail("xLock", Fault::Panic("the engine is confused"));
    assert!(db.execute("INSERT INTO t VALUES (2)", []).is_err());
    said();
    let panics = || panic!("the thread is confused");
    std::thread::spawn(move || dash_ffi::behind_the_wall("a thread", panics)).join().unwrap();
    // This thread has a last error of its own.
    std::thread::spawn(said).join().unwrap();
    assert!(std::thread::spawn(|| panic!("the host's own")).join().is_err());
}
