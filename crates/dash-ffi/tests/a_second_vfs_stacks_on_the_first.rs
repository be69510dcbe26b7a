//! A VFS on top of another one of ours: each is the other's host, names chain, controls reach the
//! bottom, and a text that the bottom leaves on a PRAGMA's error reaches the user. One that stands
//! on SQLite's own VFS does so, whatever the default one is.

#![expect(unsafe_code, reason = "tests call SQLite's C interface directly")]

mod common;

use common::{Database, EXTENSION, Fault};
use core::ffi::{CStr, c_char, c_int};
use dash_ffi::{
    AccessCheck, ApiRoutines, Code, Connection, Extension, FileName, HostVfs, OpenFlags, Opened,
    Result, Vfs,
};
use std::ffi::CString;
use std::path::Path;

/// Above `pass`, with the same manners under another name; it hands on whatever it gets.
struct Top(&'static CStr);

impl Vfs for Top {
    fn name(&self) -> &'static CStr {
        self.0
    }

    fn open(&self, host: &HostVfs, name: FileName<'_>, flags: OpenFlags) -> Result<Opened> {
        let (file, flags) = host.open(name, flags)?;
        Ok(Opened { file: Box::new(file), flags })
    }

    fn delete(&self, host: &HostVfs, path: &Path, sync_dir: bool) -> Result<()> {
        host.delete(path, sync_dir)
    }

    fn access(&self, host: &HostVfs, path: &Path, check: AccessCheck) -> Result<bool> {
        host.access(path, check)
    }
}

static TOP: Extension = Extension {
    make_vfs: |_| Box::new(Top(c"top")),
    stands_on: None,
    functions: &[],
    tables: &[],
    capture: |_| None,
    without_fork: |work| work(),
    automatic: top,
};

static ON_ITS_OWN: Extension = Extension {
    make_vfs: |_| Box::new(Top(c"on its own")),
    stands_on: Some(c"unix"),
    automatic: top,
    ..TOP
};

unsafe extern "C" fn top(
    db: *mut Connection,
    error: *mut *mut c_char,
    api: *const ApiRoutines,
) -> c_int {
    // SAFETY: SQLite's own arguments. `pass` becomes the default first, so it is the host of `top`.
    unsafe {
        assert_eq!(dash_ffi::load(db, error, api, &EXTENSION, true), 256);
        assert_eq!(dash_ffi::load(db, error, api, &ON_ITS_OWN, false), 256);
        dash_ffi::load_automatically(db, error, api, &TOP)
    }
}

#[test]
fn a_second_vfs_stacks_on_the_first() {
    // SAFETY: this is sqlite3_auto_extension.
    unsafe { dash_ffi::register_with(rusqlite::ffi::sqlite3_auto_extension, top) }.unwrap();
    drop(rusqlite::Connection::open_in_memory().unwrap());

    let database = Database::new();
    let uri = format!("file:{}?vfs=top&key=value", database.path.display());
    let db = rusqlite::Connection::open(uri).unwrap();
    for mode in ["WAL", "DELETE"] {
        db.execute_batch(&format!("PRAGMA journal_mode={mode}; CREATE TABLE IF NOT EXISTS t(x)"))
            .unwrap();
        db.execute_batch("INSERT INTO t VALUES (1)").unwrap();
    }

    let events = database.probe.events();
    assert!(events.contains(&"parameter Some(MainDb) key=value".to_owned()), "{events:?}");
    assert!(events.contains(&"parameter Some(Wal) key=value".to_owned()), "{events:?}");
    assert!(events.contains(&"xFileControl CommitPhaseTwo".to_owned()));

    assert_eq!(chain(&db).as_c_str(), c"top/pass/unix");
    let other = Database::new();
    let uri = format!("file:{}?vfs=on%20its%20own", other.path.display());
    assert_eq!(chain(&rusqlite::Connection::open(uri).unwrap()).as_c_str(), c"on its own/unix");

    let kind = |sql: &str| db.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
    assert_eq!(kind("SELECT pass_kind('main')"), "none");
    assert_eq!(kind("SELECT pass_kind_below()"), "pass");

    let mut value = 0_u64;
    let argument = (&raw mut value).cast();
    // SAFETY: an open connection; nobody knows this number.
    let code = unsafe {
        rusqlite::ffi::sqlite3_file_control(db.handle(), c"main".as_ptr(), 471_147, argument)
    };
    assert_eq!(code, Code::NOTFOUND.raw());
    let expected = format!("op: 471147, argument: {:p}", &raw const value);
    assert!(database.probe.events().iter().any(|event| event.contains(&expected)));

    let fault = Fault::Error(Code::ERROR, Some("from below: 100% of %s"));
    database.probe.fail("pass_echo", fault);
    let error = db.execute_batch("PRAGMA pass_echo=1").unwrap_err();
    assert!(error.to_string().contains("from below: 100% of %s"), "{error}");
    database.probe.heal();
    let answer: String =
        db.query_row("PRAGMA pass_echo='from below'", [], |row| row.get(0)).unwrap();
    assert_eq!(answer, "from below");

    let fault = Fault::Error(Code::IOERR_FSYNC, None);
    database.probe.fail("COMMIT_PHASETWO", fault);
    let error = db.execute_batch("INSERT INTO t VALUES (2)").unwrap_err();
    assert_eq!(error.sqlite_error().unwrap().extended_code, Code::IOERR_FSYNC.raw());
}

/// The VFSes of a connection.
fn chain(db: &rusqlite::Connection) -> CString {
    let mut text: *mut c_char = core::ptr::null_mut();
    let argument = (&raw mut text).cast();
    // SAFETY: an open connection, and a place for a text that SQLite allocates and we free.
    unsafe {
        rusqlite::ffi::sqlite3_file_control(db.handle(), c"main".as_ptr(), 12, argument);
        let chain = CStr::from_ptr(text).to_owned();
        rusqlite::ffi::sqlite3_free(text.cast());
        chain
    }
}
