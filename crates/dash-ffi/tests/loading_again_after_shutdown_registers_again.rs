//! Entry points: the right results, a null connection, a missing table, and a life after shutdown.

#![expect(unsafe_code, reason = "tests call SQLite's C interface directly")]

mod common;

use common::{EXTENSION, automatic};
use core::ffi::{CStr, c_char, c_int};
use core::ptr::{null, null_mut};
use dash_ffi::{ApiRoutines, Connection, Extension};
use rusqlite::ffi;
use std::sync::atomic::{AtomicPtr, Ordering};

static TABLE: AtomicPtr<ApiRoutines> = AtomicPtr::new(null_mut());

/// Keeps the table of routines that SQLite hands to an automatic extension.
unsafe extern "C" fn keep(
    _: *mut Connection,
    _: *mut *mut c_char,
    api: *const ApiRoutines,
) -> c_int {
    TABLE.store(api.cast_mut(), Ordering::Relaxed);
    0
}

/// The same VFS again, as a second copy of the library would bring it.
static RIVAL: Extension = Extension {
    make_vfs: |_| Box::new(common::PassVfs),
    stands_on: None,
    functions: &[],
    tables: &[],
    capture: |_| None,
    without_fork: |work| work(),
    automatic,
};

fn is_default(name: &CStr) -> bool {
    // SAFETY: SQLite's own routine; null asks for the default VFS.
    unsafe { ffi::sqlite3_vfs_find(name.as_ptr()) == ffi::sqlite3_vfs_find(null()) }
}

fn is_registered() -> bool {
    // SAFETY: SQLite's own routine.
    unsafe { !ffi::sqlite3_vfs_find(c"pass".as_ptr()).is_null() }
}

#[test]
fn loading_again_after_shutdown_registers_again() {
    // SAFETY: this is sqlite3_auto_extension.
    unsafe { dash_ffi::register_with(ffi::sqlite3_auto_extension, keep) }.unwrap();
    drop(rusqlite::Connection::open_in_memory().unwrap());
    let api = TABLE.load(Ordering::Relaxed);
    let load_into = |db: *mut ffi::sqlite3, extension, default| {
        let mut message: *mut c_char = null_mut();
        // SAFETY: an open connection or none, a place for a message, and SQLite's own table.
        unsafe {
            let code = dash_ffi::load(db.cast(), &raw mut message, api, extension, default);
            let text = (!message.is_null())
                .then(|| CStr::from_ptr(message).to_string_lossy().into_owned());
            ffi::sqlite3_free(message.cast());
            (code, text)
        }
    };

    let load = |extension, default| load_into(null_mut(), extension, default);

    // Null everywhere: an error, and no crash.
    // SAFETY: null is allowed for each.
    let code = unsafe { dash_ffi::load(null_mut(), null_mut(), null(), &EXTENSION, false) };
    assert_eq!(code, 1);

    assert!(!is_registered());
    assert_eq!(load(&EXTENSION, false), (256, None));
    assert!(is_registered() && is_default(c"unix"));
    assert_eq!(load(&EXTENSION, true), (256, None));
    assert!(is_default(c"pass"));
    // A default VFS stays one when the plain entry is loaded on top.
    assert_eq!(load(&EXTENSION, false), (256, None));
    assert!(is_default(c"pass"));
    // SAFETY: no connection, no place for a message, and SQLite's own table.
    let code = unsafe { automatic(null_mut(), null_mut(), api.cast_const()) };
    assert_eq!(code, 0);

    // By a statement, which is the only way where a host has no call for it.
    let db = rusqlite::Connection::open_in_memory().unwrap();
    let mut statement = db.prepare("SELECT 1").unwrap();
    let mut rows = statement.query([]).unwrap();
    rows.next().unwrap();
    for _ in 0..2 {
        // SAFETY: an open connection.
        assert_eq!(load_into(unsafe { db.handle() }, &EXTENSION, false), (256, None));
    }
    drop(rows);
    drop(statement);
    drop(db);

    let (code, text) = load(&RIVAL, false);
    assert_eq!(code, 1);
    assert!(text.unwrap().contains("another VFS named pass is registered"));

    for _ in 0..2 {
        // SAFETY: no connection is open.
        assert_eq!(unsafe { ffi::sqlite3_shutdown() }, 0);
        // SQLite keeps its list of VFSes, but makes its own the default when it starts anew, and
        // has forgotten the automatic extensions.
        assert!(is_default(c"unix"));
        drop(rusqlite::Connection::open_in_memory().unwrap());
        assert_eq!(load(&EXTENSION, true), (256, None));
        assert!(is_registered() && is_default(c"pass"));
        let directory = tempfile::tempdir().unwrap();
        // Without vfs=: the default.
        let db = rusqlite::Connection::open(directory.path().join("app.db")).unwrap();
        let kind: String = db.query_row("SELECT pass_kind('main')", [], |row| row.get(0)).unwrap();
        assert_eq!(kind, "pass", "functions come with the automatic extension");
    }
}
