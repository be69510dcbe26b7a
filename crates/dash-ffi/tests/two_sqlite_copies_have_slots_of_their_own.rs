//! Two copies of SQLite in one process: rusqlite's own, linked statically, and the system's, opened
//! with dlopen. Each gets a VFS, functions and tables of its own, and both work side by side.

#![expect(unsafe_code, reason = "tests call SQLite's C interface directly")]
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use common::{Database, automatic};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::null_mut;
use dash_testing::{Need, skip};
use rusqlite::ffi;

type Callback =
    unsafe extern "C" fn(*mut c_void, c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;
type Open = unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, *const c_char) -> c_int;
type Exec = unsafe extern "C" fn(
    *mut c_void,
    *const c_char,
    Option<Callback>,
    *mut c_void,
    *mut *mut c_char,
) -> c_int;

/// The system's SQLite.
struct System {
    library: *mut c_void,
}

impl System {
    fn find() -> Option<Self> {
        // SAFETY: a library without constructors that could harm.
        let library =
            unsafe { libc::dlopen(c"libsqlite3.so.0".as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        (!library.is_null()).then_some(Self { library })
    }

    /// # Safety
    ///
    /// `F` is the type of the function with this name.
    unsafe fn function<F: Copy>(&self, name: &CStr) -> F {
        // SAFETY: an open library; the type is as the caller states.
        unsafe {
            let address = libc::dlsym(self.library, name.as_ptr());
            assert!(!address.is_null(), "{name:?}");
            assert_eq!(size_of::<F>(), size_of::<*mut c_void>());
            core::mem::transmute_copy(&address)
        }
    }

    fn open(&self, uri: &str) -> *mut c_void {
        let uri = std::ffi::CString::new(uri).unwrap();
        let flags = ffi::SQLITE_OPEN_READWRITE | ffi::SQLITE_OPEN_CREATE | ffi::SQLITE_OPEN_URI;
        let mut db = null_mut();
        // SAFETY: sqlite3_open_v2 with what it takes.
        let code = unsafe {
            let open: Open = self.function(c"sqlite3_open_v2");
            open(uri.as_ptr(), &raw mut db, flags, core::ptr::null())
        };
        assert_eq!(code, 0, "{uri:?}");
        db
    }

    /// The last column of the last row.
    fn query(&self, db: *mut c_void, sql: &str) -> String {
        unsafe extern "C" fn row(
            to: *mut c_void,
            n: c_int,
            values: *mut *mut c_char,
            _: *mut *mut c_char,
        ) -> c_int {
            // SAFETY: sqlite3_exec passes `n` texts, and the string given below.
            unsafe {
                let value = *values.add(usize::try_from(n - 1).unwrap());
                *to.cast::<String>() = CStr::from_ptr(value).to_str().unwrap().to_owned();
            }
            0
        }
        let sql = std::ffi::CString::new(sql).unwrap();
        let mut answer = String::new();
        // SAFETY: sqlite3_exec with what it takes.
        let code = unsafe {
            let exec: Exec = self.function(c"sqlite3_exec");
            exec(db, sql.as_ptr(), Some(row), (&raw mut answer).cast(), null_mut())
        };
        assert_eq!(code, 0, "{sql:?}");
        answer
    }

    fn close(&self, db: *mut c_void) {
        // SAFETY: an open connection without statements.
        unsafe {
            let close: unsafe extern "C" fn(*mut c_void) -> c_int = self.function(c"sqlite3_close");
            assert_eq!(close(db), 0);
        }
    }
}

#[test]
fn two_sqlite_copies_have_slots_of_their_own() {
    let Some(system) = System::find() else {
        return skip(Need::Libsqlite3, "there is no libsqlite3.so.0");
    };
    let (one, two) = (Database::new(), Database::new());
    // SAFETY: the system's sqlite3_auto_extension, of the type that every SQLite has.
    unsafe {
        let register: dash_ffi::AutoExtension<c_void, *mut c_char, c_void> =
            system.function(c"sqlite3_auto_extension");
        dash_ffi::register_with(register, automatic).unwrap();
    }
    system.close(system.open(":memory:"));

    let ours = one.open("").unwrap();
    let theirs = system.open(&format!("file:{}?vfs=pass", two.path.display()));
    ours.execute_batch("PRAGMA journal_mode=WAL; CREATE TABLE t(x)").unwrap();
    assert_eq!(system.query(theirs, "PRAGMA journal_mode=WAL; CREATE TABLE t(x)"), "wal");

    for n in 0..20 {
        ours.execute("INSERT INTO t VALUES (?1)", [n]).unwrap();
        system.query(theirs, &format!("INSERT INTO t VALUES ({n})"));
    }
    let sql = "SELECT pass_kind('main') || sum(x) || ',' || sqlite_version() FROM t";
    let answer: String = ours.query_row(sql, [], |row| row.get(0)).unwrap();
    let version = rusqlite::version();
    assert_eq!(answer, format!("pass190,{version}"));
    let answer = system.query(theirs, sql);
    assert!(answer.starts_with("pass190,"), "{answer}");

    // Each table knows the version of the SQLite that it is in.
    let sql = "SELECT value FROM pass_table WHERE name = 'version'";
    let number: i64 = ours.query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(number, i64::from(rusqlite::version_number()));
    // SAFETY: sqlite3_libversion_number takes nothing.
    let expected = unsafe {
        let version: unsafe extern "C" fn() -> c_int =
            system.function(c"sqlite3_libversion_number");
        version()
    };
    assert_eq!(system.query(theirs, sql), expected.to_string());
    system.close(theirs);
    drop(ours);
}
