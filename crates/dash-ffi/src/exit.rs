//! What the process is: its end, for which work may be left, and its environment.

use core::ffi::{CStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::code::Code;
use crate::error::{Error, Result};

unsafe extern "C" {
    /// GNU and musl: `getenv`, which knows nothing in a process that has more rights than who
    /// started it.
    fn secure_getenv(name: *const c_char) -> *const c_char;
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
    named.chain(["/var/tmp", "/usr/tmp", "/tmp"].map(PathBuf::from)).collect()
}

fn variable(name: &CStr) -> Option<PathBuf> {
    // SAFETY: the name is a C string. The value is copied at once; who changes the environment
    // while other threads run breaks SQLite, which reads the same variables, too.
    let value = unsafe {
        let value = secure_getenv(name.as_ptr());
        if value.is_null() {
            return None;
        }
        CStr::from_ptr(value).to_bytes().to_vec()
    };
    let path = PathBuf::from(std::ffi::OsStr::from_bytes(&value));
    path.is_absolute().then_some(path)
}
