//! Work that is left for the end of the process.

use core::ffi::c_int;

use crate::code::Code;
use crate::error::{Error, Result};

unsafe extern "C" {
    /// POSIX. The handler stays registered until the library is unloaded, which SQLite never does.
    safe fn atexit(work: extern "C" fn()) -> c_int;
}

/// Has `work` called when the process ends by returning from `main` or by `exit`. A kill, `_exit`, and
/// runtimes that end without the C library (Go's) don't call it; a forked child that exits does.
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
