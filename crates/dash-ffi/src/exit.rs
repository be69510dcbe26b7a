//! What the process is: its end, for which work may be left, and its environment. And the
//! machine's log.

use core::ffi::{CStr, c_char, c_int};
use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use crate::code::Code;
use crate::error::{Error, Result};

unsafe extern "C" {
    /// GNU and musl: `getenv`, which knows nothing in a process that has more rights than who
    /// started it.
    fn secure_getenv(name: *const c_char) -> *const c_char;
    /// POSIX.
    fn syslog(priority: c_int, format: *const c_char, ...);
    /// POSIX. The handler stays registered until the library is unloaded, which SQLite never does.
    safe fn atexit(work: extern "C" fn()) -> c_int;
}

/// Has `work` called when the process ends by returning from `main` or by `exit`. A kill, `_exit`,
/// and runtimes that end without the C library (Go's) don't call it; a forked child that exits
/// does.
///
/// # Errors
///
/// `SQLITE_NOMEM` if no more handlers can be registered.
pub fn at_exit(work: extern "C" fn()) -> Result<()> {
    match atexit(work) {
        0 => Ok(()),
        _ => Err(Error::new(
            Code::NOMEM,
            "no handler for the end of the process could be registered",
        )),
    }
}

/// Where temporary files go, in SQLite's order (os_unix.c `unixTempFileDir`). Who starts a program
/// that runs with the rights of another user has no say in it.
#[must_use]
pub fn temporary_folders() -> Vec<PathBuf> {
    let named = [c"SQLITE_TMPDIR", c"TMPDIR"].into_iter().filter_map(variable);
    let named = named.map(PathBuf::from).filter(|path| path.is_absolute());
    named.chain(["/var/tmp", "/usr/tmp", "/tmp"].map(PathBuf::from)).collect()
}

/// A variable of the environment. Who starts a program that runs with the rights of another user
/// has no say in it.
#[must_use]
pub fn variable(name: &CStr) -> Option<OsString> {
    // SAFETY: the name is a C string. The value is copied at once; who changes the environment
    // while other threads run breaks SQLite, which reads such variables, too.
    let value = unsafe {
        let value = secure_getenv(name.as_ptr());
        if value.is_null() {
            return None;
        }
        CStr::from_ptr(value).to_bytes().to_vec()
    };
    Some(OsString::from_vec(value))
}

/// How much a line of the machine's log matters (POSIX, syslog.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// `LOG_ERR`
    Error = 3,
    /// `LOG_WARNING`
    Warning = 4,
    /// `LOG_NOTICE`
    Notice = 5,
}

/// Writes a line to the machine's log, as the program has set that up.
pub fn syslog_line(severity: Severity, text: &str) {
    /// Of programs that don't say otherwise.
    const LOG_USER: c_int = 1 << 3;
    let Ok(text) = CString::new(text) else { return };
    // SAFETY: "%s" takes one C string, which is given.
    unsafe { syslog(LOG_USER | severity as c_int, c"%s".as_ptr(), text.as_ptr()) }
}
