//! SQLite's error log, as far as each thread is told of.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_void};

use rusqlite::ffi;

thread_local! {
    static LOG: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

#[expect(unsafe_code, reason = "SQLite calls it")]
unsafe extern "C" fn logged(_: *mut c_void, _: c_int, message: *const c_char) {
    // SAFETY: SQLite passes a C string.
    let text = unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned();
    LOG.with(|log| log.borrow_mut().push(text));
}

/// What SQLite's error log of this thread has since it was asked last.
pub fn log() -> Vec<String> {
    LOG.with(RefCell::take)
}

/// Before anything else of SQLite: from here on it is kept what the log is told.
#[expect(unsafe_code, reason = "rusqlite has no call for it without its feature trace")]
pub fn listen() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let function: unsafe extern "C" fn(*mut c_void, c_int, *const c_char) = logged;
        // SAFETY: before anything else of SQLite, with the arguments that CONFIG_LOG takes.
        let set = unsafe {
            ffi::sqlite3_config(ffi::SQLITE_CONFIG_LOG, function, std::ptr::null_mut::<c_void>())
        };
        assert_eq!(set, ffi::SQLITE_OK);
    });
}
