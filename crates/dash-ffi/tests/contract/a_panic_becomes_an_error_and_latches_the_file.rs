//! A panic in a callback is an I/O error; the file then answers nothing, but closes and opens anew.

use crate::common::{Database, Fault};
use rusqlite::ErrorCode;

#[test]
fn a_panic_becomes_an_error_and_latches_the_file() {
    let database = Database::new();
    let db = database.open("").unwrap();
    db.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").unwrap();

    database.probe.fail("xLock", Fault::Panic("the engine is confused: 100%"));
    let error = db.execute("INSERT INTO t VALUES (2)", []).unwrap_err();
    assert_eq!(error.sqlite_error_code(), Some(ErrorCode::SystemIoFailure), "{error}");
    let text = dash_ffi::last_error().unwrap();
    assert!(text.contains("xLock") && text.contains("confused: 100%"), "{text}");

    database.probe.heal();
    database.probe.take("");
    let error = db.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0)).unwrap_err();
    assert_eq!(error.sqlite_error_code(), Some(ErrorCode::SystemIoFailure), "{error}");
    let text = dash_ffi::last_error().unwrap();
    assert!(text.contains("out of use"), "{text}");
    drop(db);

    let db = database.open("").unwrap();
    let rows: i64 = db.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 1);
}

#[test]
fn a_panic_in_close_or_delete_is_an_error() {
    let database = Database::new();
    let db = database.open("").unwrap();
    db.execute_batch("CREATE TABLE t(x)").unwrap();
    database.probe.fail("xDelete", Fault::Panic("no"));
    assert!(db.execute("INSERT INTO t VALUES (1)", []).is_err());
    database.probe.heal();
    database.probe.fail("xClose", Fault::Panic("no"));
    drop(db);
    assert!(dash_ffi::last_error().unwrap().contains("xClose"));
}
