//! File controls: typed ones carry their values both ways, unknown ones their number and pointer.

use crate::common::Database;
use core::ffi::{CStr, c_char, c_int, c_void};
use rusqlite::{Connection, ffi};

fn control<T>(db: &Connection, op: c_int, value: &mut T) -> c_int {
    let argument: *mut c_void = (&raw mut *value).cast();
    // SAFETY: an open connection, and a value of the type that the control states.
    unsafe { ffi::sqlite3_file_control(db.handle(), c"main".as_ptr(), op, argument) }
}

#[test]
fn typed_controls_reach_the_wrapped_file() {
    let database = Database::new();
    let db = database.open("").unwrap();
    db.execute_batch("CREATE TABLE t(x); BEGIN IMMEDIATE").unwrap();

    let mut level: c_int = -1;
    assert_eq!(control(&db, ffi::SQLITE_FCNTL_LOCKSTATE, &mut level), 0);
    assert_eq!(level, 2, "reserved");
    db.execute_batch("COMMIT").unwrap();

    let mut persist: c_int = 1;
    assert_eq!(control(&db, ffi::SQLITE_FCNTL_PERSIST_WAL, &mut persist), 0);
    let mut asked: c_int = -1;
    assert_eq!(control(&db, ffi::SQLITE_FCNTL_PERSIST_WAL, &mut asked), 0);
    assert_eq!(asked, 1);

    let mut moved: c_int = -1;
    assert_eq!(control(&db, ffi::SQLITE_FCNTL_HAS_MOVED, &mut moved), 0);
    assert_eq!(moved, 0);
    std::fs::rename(&database.path, database.path.with_extension("moved")).unwrap();
    assert_eq!(control(&db, ffi::SQLITE_FCNTL_HAS_MOVED, &mut moved), 0);
    assert_eq!(moved, 1);
    std::fs::rename(database.path.with_extension("moved"), &database.path).unwrap();

    let mut size: i64 = 1 << 20;
    assert_eq!(control(&db, ffi::SQLITE_FCNTL_SIZE_HINT, &mut size), 0);
    let mut chunk: c_int = 1 << 16;
    assert_eq!(control(&db, ffi::SQLITE_FCNTL_CHUNK_SIZE, &mut chunk), 0);
    let events = database.probe.events();
    for expected in ["SizeHint(1048576)", "ChunkSize(65536)"] {
        assert!(events.contains(&format!("xFileControl {expected}")), "{expected}: {events:?}");
    }
}

#[test]
fn texts_in_controls_belong_to_sqlite() {
    let database = Database::new();
    let db = database.open("").unwrap();
    for (op, expected) in
        [(ffi::SQLITE_FCNTL_VFSNAME, "pass/unix"), (ffi::SQLITE_FCNTL_TEMPFILENAME, "/")]
    {
        let mut text: *mut c_char = core::ptr::null_mut();
        assert_eq!(control(&db, op, &mut text), 0);
        // SAFETY: a text that SQLite allocated, freed once.
        let answer = unsafe {
            let answer = CStr::from_ptr(text).to_str().unwrap().to_owned();
            ffi::sqlite3_free(text.cast());
            answer
        };
        assert!(answer.starts_with(expected), "{answer}");
    }
}

#[test]
fn unknown_controls_keep_their_number_and_pointer() {
    let database = Database::new();
    let db = database.open("").unwrap();
    let mut value = 0_u64;
    assert_eq!(control(&db, 471_147, &mut value), ffi::SQLITE_NOTFOUND);
    let expected = format!("op: 471147, argument: {:p}", &raw const value);
    let events = database.probe.take("xFileControl Unknown");
    assert!(events.iter().any(|event| event.contains(&expected)), "{expected}: {events:?}");
}

#[test]
fn a_null_argument_is_not_looked_behind() {
    let database = Database::new();
    let db = database.open("").unwrap();
    database.probe.take("");
    // Those that unix does not know: of those it does, it looks behind null itself.
    let ops = [
        ffi::SQLITE_FCNTL_OVERWRITE,
        ffi::SQLITE_FCNTL_BUSYHANDLER,
        ffi::SQLITE_FCNTL_TRACE,
        ffi::SQLITE_FCNTL_SYNC,
        ffi::SQLITE_FCNTL_PDB,
    ];
    for op in ops {
        // SAFETY: an open connection; the point is the null.
        let code = unsafe {
            ffi::sqlite3_file_control(db.handle(), c"main".as_ptr(), op, core::ptr::null_mut())
        };
        assert_eq!(code, ffi::SQLITE_NOTFOUND, "{op}");
    }
    assert_eq!(database.probe.take("xFileControl").len(), ops.len());
}
