//! Whoever loads dash on a connection that is open already is told so: SQLite says nothing. In a
//! file of its own, as what is no thread's last error is the process's.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

mod suite;

use rusqlite::Connection;
use suite::sql::run;

fn said(db: &Connection) -> Option<String> {
    suite::one(db, "SELECT dash_last_error()")
}

/// What every user of an extension types: `sqlite3 app.db`, `.load ./libdash`.
#[test]
fn it_was_opened_before_dash_was_loaded() {
    suite::load();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let stock = Connection::open(&path).unwrap();
    run(&stock, "CREATE TABLE t(x)");
    let told = said(&stock).unwrap();
    assert!(told.starts_with("this connection was opened without dash"), "{told}");
    assert!(told.contains(".open file:app.db?vfs=dash"), "{told}");
    // Scratch connections are what it is loaded on.
    assert_eq!(said(&Connection::open_in_memory().unwrap()), None);
    let dash = suite::open(&path);
    assert_eq!(said(&dash), None);
}
