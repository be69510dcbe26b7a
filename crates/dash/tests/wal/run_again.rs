//! Protocol `paper`, and statements that a connection runs again which is set otherwise than the
//! one that ran them: what comes to something else is carried by frames, or refused (`WAL-39`,
//! `STATEMENT-6`).

#![allow(unsafe_code, reason = "tests call SQLite's C interface directly")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;

use rusqlite::ffi;

use super::common::*;

const PAPER: &str = "&journal_mode=statement&dash_commit=paper";

/// A database in the protocol with 20 rows, whose log is in use.
fn begun(folder: &Folder) -> Connection {
    let db = folder.try_open("app.db", PAPER).expect("opens");
    db.execute_batch("CREATE TABLE t(id INTEGER PRIMARY KEY, v)").expect("commits");
    for id in 0..20 {
        db.execute("INSERT INTO t VALUES (?, ?)", (id, "x".repeat(90))).expect("commits");
    }
    db
}

fn stat(db: &Connection, name: &str) -> i64 {
    number(db, &format!("SELECT value FROM dash_stats WHERE name = '{name}'"))
}

/// What a power loss leaves that took all frames of `-wal` behind `len` bytes.
fn cut_off(folder: &Folder, len: u64) -> Folder {
    let cut = Folder::new();
    for name in ["app.db", "app.db-wal", "app.db-dashlog"] {
        std::fs::copy(folder.path(name), cut.path(name)).expect("copies");
    }
    std::fs::create_dir(cut.path("app.db-journal")).expect("the name fence");
    let wal = std::fs::OpenOptions::new().write(true).open(cut.path("app.db-wal"));
    wal.expect("opens").set_len(len).expect("cuts");
    cut
}

fn len_of_wal(folder: &Folder) -> u64 {
    std::fs::metadata(folder.path("app.db-wal")).expect("is there").len()
}

/// Free bytes are otherwise then, which are a part of the pages.
#[test]
fn what_secure_delete_leaves_is_carried_by_frames() {
    for value in ["on", "off", "fast"] {
        let folder = Folder::new();
        let db = begun(&folder);
        let carried = stat(&db, "carried");
        db.execute_batch(&format!("PRAGMA secure_delete={value}")).expect("is said");
        db.execute_batch("DELETE FROM t WHERE id = 2").expect("commits");
        // Frames follow no statements in the log: what was there is flushed in `-wal` (WAL-32).
        let len = len_of_wal(&folder);
        db.execute_batch("DELETE FROM t WHERE id = 3").expect("commits");
        db.execute_batch("DELETE FROM t WHERE id = 7").expect("commits");
        assert_eq!(stat(&db, "carried"), carried, "{value}");
        let reasons = || text(&db, "SELECT value FROM dash_stats WHERE name = 'not_carried'");
        assert!(reasons().contains("settings 3"), "{value}: {}", reasons());
        let cut = cut_off(&folder, len);
        let recovered = cut.try_open("app.db", "&journal_mode=wal").expect("recovers");
        assert_eq!(number(&recovered, "SELECT count(*) FROM t"), 17, "{value}");
        // What was said lasts as long as the connection, also in another mode.
        assert_eq!(text(&db, "PRAGMA journal_mode=DELETE"), "delete");
        assert_eq!(text(&db, "PRAGMA journal_mode=STATEMENT"), "statement");
        assert_eq!(text(&db, "PRAGMA dash_commit=paper"), "paper");
        db.execute_batch("DELETE FROM t WHERE id = 8").expect("commits");
        db.execute_batch("DELETE FROM t WHERE id = 9").expect("commits");
        assert!(reasons().contains("settings 2"), "{value}: {}", reasons());
    }
}

/// Has SQLite read NULL in the place of what is in a column.
unsafe extern "C" fn ignores(
    _: *mut c_void,
    action: c_int,
    _: *const c_char,
    _: *const c_char,
    _: *const c_char,
    _: *const c_char,
) -> c_int {
    if action == ffi::SQLITE_READ { ffi::SQLITE_IGNORE } else { ffi::SQLITE_OK }
}

/// Sets that for the connection that runs statements again.
unsafe extern "C" fn sets_it(
    db: *mut ffi::sqlite3,
    _: *mut *mut c_char,
    _: *const ffi::sqlite3_api_routines,
) -> c_int {
    // SAFETY: the connection that SQLite is opening; a name that it has ends with a zero.
    unsafe {
        let name = ffi::sqlite3_db_filename(db, c"main".as_ptr());
        let runs = !name.is_null() && CStr::from_ptr(name).to_bytes().starts_with(b"/dash-");
        if runs {
            ffi::sqlite3_set_authorizer(db, Some(ignores), null_mut());
        }
    }
    ffi::SQLITE_OK
}

/// Statements that find no row make no page. What a program sets up for each of its connections has
/// no part in what they find: dash asks for all that they do itself.
#[test]
fn an_authorizer_of_the_program_changes_nothing() {
    let folder = Folder::new();
    let db = begun(&folder);
    let (len, carried) = (len_of_wal(&folder), stat(&db, "carried"));
    db.execute("UPDATE t SET v = 'new' WHERE id = 3", []).expect("commits");
    db.execute("DELETE FROM t WHERE id = 4", []).expect("commits");
    assert_eq!(stat(&db, "carried"), carried + 2);
    let cut = cut_off(&folder, len);
    // SAFETY: a function with what SQLite calls it with, for as long as this process lives.
    unsafe { ffi::sqlite3_auto_extension(Some(sets_it)) };
    let recovered = cut.try_open("app.db", "&journal_mode=wal").expect("recovers");
    // SAFETY: the same function.
    unsafe { ffi::sqlite3_cancel_auto_extension(Some(sets_it)) };
    let sql = "SELECT count(*) FROM t WHERE v = 'new' OR id = 4";
    assert_eq!((number(&recovered, sql), number(&recovered, "SELECT count(*) FROM t")), (1, 19));
}
