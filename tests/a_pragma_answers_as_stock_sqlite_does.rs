//! FT22 and FT23: what a program asks of any SQLite has SQLite's kind of answer. An unknown
//! `journal_mode` changes nothing and answers the mode in force; a chunk size outlives the change
//! of mode; a temporary file has a name.

mod suite;

use std::ffi::{CStr, c_char, c_int, c_void};

use rusqlite::{Connection, ffi};
use suite::peers::last_error;
use suite::sql::run;

#[test]
fn an_unknown_journal_mode_answers_the_mode_in_force() {
    let folder = tempfile::tempdir().unwrap();
    let db = suite::open(&folder.path().join("app.db"));
    run(&db, "CREATE TABLE t(x)");
    for mode in ["bogus", "shadwo", "''", "WAL2"] {
        let sql = format!("PRAGMA journal_mode={mode}");
        assert_eq!(suite::one::<String>(&db, &sql), "shadow", "{mode}");
        let said = last_error();
        assert!(said.contains("no such journal_mode"), "{mode}: {said}");
    }
    assert_eq!(suite::one::<String>(&db, "PRAGMA journal_mode=truncate"), "truncate");
    for mode in ["bogus", "shadwo"] {
        let sql = format!("PRAGMA journal_mode={mode}");
        assert_eq!(suite::one::<String>(&db, &sql), "truncate", "{mode}");
    }
    // What SQLite takes for a mode, SQLite decides.
    assert_eq!(suite::one::<String>(&db, "PRAGMA journal_mode=pers"), "persist");
    assert_eq!(suite::one::<String>(&db, "PRAGMA journal_mode=shadow"), "shadow");
}

/// SQLite names the column of a PRAGMA that a VFS answers after the answer itself (pragma.c, after
/// `SQLITE_FCNTL_PRAGMA`: `sqlite3VdbeSetColName(v, 0, COLNAME_NAME, aFcntl[0], …)`), and a VFS has
/// no say in it. When this fails, SQLite has changed it, and the line on it in REFERENCE.md can go.
#[test]
fn the_column_of_an_answer_has_the_name_that_sqlite_gives_it() {
    let folder = tempfile::tempdir().unwrap();
    let db = suite::open(&folder.path().join("app.db"));
    let column = |sql: &str| db.prepare(sql).unwrap().column_name(0).unwrap().to_owned();
    assert_eq!(column("PRAGMA journal_mode"), "shadow");
    assert_eq!(suite::one::<String>(&db, "PRAGMA journal_mode=delete"), "delete");
    assert_eq!(column("PRAGMA journal_mode"), "journal_mode");
}

fn control(db: &Connection, number: c_int, argument: *mut c_void) -> c_int {
    #[expect(unsafe_code, reason = "rusqlite has no file controls")]
    // SAFETY: an open connection, and an argument of the type that the control takes.
    unsafe {
        ffi::sqlite3_file_control(db.handle(), c"main".as_ptr(), number, argument)
    }
}

#[test]
fn a_chunk_size_outlives_the_change_of_mode() {
    const CHUNK: c_int = 1 << 20;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = suite::open(&path);
    run(&db, "CREATE TABLE t(x); INSERT INTO t VALUES (1)");
    let mut chunk = CHUNK;
    assert_eq!(control(&db, ffi::SQLITE_FCNTL_CHUNK_SIZE, (&raw mut chunk).cast()), ffi::SQLITE_OK);
    assert_eq!(suite::one::<String>(&db, "PRAGMA journal_mode=delete"), "delete");
    run(&db, "INSERT INTO t VALUES (zeroblob(100000))");
    let len = path.metadata().unwrap().len();
    assert_eq!(len, u64::from(CHUNK.unsigned_abs()), "the file grew by the chunk");
    suite::check(&db);
}

#[test]
fn a_temporary_file_has_a_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = suite::open(&path);
    run(&db, "CREATE TABLE t(x)");
    let mut names = Vec::new();
    for more in ["", "&mode=ro"] {
        let db = Connection::open(suite::uri(&path, more)).unwrap();
        run(&db, "SELECT * FROM t");
        for _ in 0..2 {
            let mut name: *mut c_char = std::ptr::null_mut();
            let code = control(&db, ffi::SQLITE_FCNTL_TEMPFILENAME, (&raw mut name).cast());
            assert_eq!(code, ffi::SQLITE_OK, "{more}");
            #[expect(unsafe_code, reason = "the answer is memory of SQLite's")]
            // SAFETY: a C string that SQLite allocated, not used after it is freed.
            let text = unsafe {
                assert!(!name.is_null());
                let text = CStr::from_ptr(name).to_str().unwrap().to_owned();
                ffi::sqlite3_free(name.cast());
                text
            };
            let file = std::path::PathBuf::from(&text);
            assert!(!file.exists() && file.parent().unwrap().is_dir(), "{text}");
            assert!(!names.contains(&text), "{text} twice");
            names.push(text);
        }
    }
}
