//! A failed open leaves null methods, whatever was in the handle, so that nothing is closed.

use crate::common::{Database, Fault};
use core::ffi::c_int;
use dash_ffi::Code;
use rusqlite::ffi;
use std::ffi::CString;

/// Opens a file through the VFS's own method; answers the code and whether methods are null.
fn open(name: Option<&str>, flags: c_int) -> (c_int, bool) {
    let name = name.map(|name| CString::new(name).unwrap());
    // SAFETY: a registered VFS, and a buffer as large as it asks for, filled with a pattern.
    unsafe {
        let vfs = ffi::sqlite3_vfs_find(c"pass".as_ptr());
        let size = usize::try_from((*vfs).szOsFile).unwrap();
        let mut handle = vec![usize::MAX; size.div_ceil(size_of::<usize>())];
        let file: *mut ffi::sqlite3_file = handle.as_mut_ptr().cast();
        let path = name.as_ref().map_or(core::ptr::null(), |name| name.as_ptr());
        let code = (*vfs).xOpen.unwrap()(vfs, path, file, flags, core::ptr::null_mut());
        let is_null = (*file).pMethods.is_null();
        if !is_null {
            (*(*file).pMethods).xClose.unwrap()(file);
        }
        (code, is_null)
    }
}

#[test]
fn x_open_clears_methods_on_failure() {
    let database = Database::new();
    // Of no kind with parameters: this name does not have SQLite's layout.
    let flags =
        ffi::SQLITE_OPEN_READWRITE | ffi::SQLITE_OPEN_CREATE | ffi::SQLITE_OPEN_SUPER_JOURNAL;
    let path = database.path.to_str();
    assert_eq!(open(path, flags), (0, false));

    database.probe.fail("xOpen", Fault::Error(Code::CANTOPEN_ISDIR, Some("not this one")));
    assert_eq!(open(path, flags), (Code::CANTOPEN_ISDIR.raw(), true));
    let said = format!("not this one (in {})", database.directory.path().display());
    assert_eq!(dash_ffi::last_error().unwrap(), said);
    database.probe.fail("xOpen", Fault::Panic("no"));
    assert_eq!(open(path, flags), (Code::CANTOPEN.raw(), true));

    let directory = database.directory.path().join("no/such/directory");
    assert_eq!(open(directory.to_str(), flags), (Code::CANTOPEN.raw(), true));
}

#[test]
fn a_file_without_a_name_is_temporary() {
    Database::new();
    let flags = ffi::SQLITE_OPEN_READWRITE
        | ffi::SQLITE_OPEN_CREATE
        | ffi::SQLITE_OPEN_EXCLUSIVE
        | ffi::SQLITE_OPEN_DELETEONCLOSE
        | ffi::SQLITE_OPEN_TEMP_DB;
    assert_eq!(open(None, flags), (0, false));
}

#[test]
fn a_file_that_is_read_only_says_so() {
    let database = Database::new();
    database.open("").unwrap().execute_batch("CREATE TABLE t(x)").unwrap();
    let db = database.open("&mode=ro").unwrap();
    assert!(db.is_readonly("main").unwrap());
    assert!(db.execute_batch("INSERT INTO t VALUES (1)").is_err());
}
