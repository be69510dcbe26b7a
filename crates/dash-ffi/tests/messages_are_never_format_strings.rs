//! Whatever a message contains, it reaches the host's error log as it is.

#![expect(unsafe_code, reason = "tests call SQLite's C interface directly")]
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use common::{Database, Fault};
use core::ffi::{CStr, c_char, c_int, c_void};
use dash_ffi::Code;
use std::sync::Mutex;

static LINES: Mutex<Vec<(c_int, String)>> = Mutex::new(Vec::new());

unsafe extern "C" fn log(_: *mut c_void, code: c_int, text: *const c_char) {
    // SAFETY: SQLite passes a C string.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    LINES.lock().unwrap().push((code, text));
}

#[test]
fn messages_are_never_format_strings() {
    // SAFETY: before anything else of SQLite, with the arguments that CONFIG_LOG takes.
    let code = unsafe {
        let function: unsafe extern "C" fn(*mut c_void, c_int, *const c_char) = log;
        let nothing: *mut c_void = core::ptr::null_mut();
        rusqlite::ffi::sqlite3_config(rusqlite::ffi::SQLITE_CONFIG_LOG, function, nothing)
    };
    assert_eq!(code, 0);

    const MESSAGE: &str = "100% %s %n %d %n; 50 %";
    let database = Database::new();
    let db = database.open("").unwrap();
    database.probe.fail("xLock", Fault::Error(Code::IOERR_RDLOCK, Some(MESSAGE)));
    let error = db.execute_batch("BEGIN IMMEDIATE").unwrap_err();
    assert_eq!(error.sqlite_error().unwrap().extended_code, Code::IOERR_RDLOCK.raw());
    let said = format!("{MESSAGE} (in {})", database.directory.path().display());
    let expected = (Code::IOERR_RDLOCK.raw(), said.clone());
    assert!(LINES.lock().unwrap().contains(&expected), "{LINES:?}");
    assert_eq!(dash_ffi::last_error().unwrap(), said);

    // Another thread, which has none of its own, sees the process's last one.
    let elsewhere = std::thread::spawn(dash_ffi::last_error).join().unwrap();
    assert_eq!(elsewhere.unwrap(), said);

    LINES.lock().unwrap().clear();
    database.probe.fail("xLock", Fault::Error(Code::BUSY, None));
    db.busy_timeout(std::time::Duration::ZERO).unwrap();
    assert!(db.execute_batch("BEGIN IMMEDIATE").is_err());
    assert!(
        LINES.lock().unwrap().iter().all(|(_, text)| !text.is_empty() && !text.contains("dash"))
    );
}
