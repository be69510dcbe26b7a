//! What an error of storage is to SQLite.

use std::io;

use dash_ffi::{Code, Error};

/// As the code for this call, but for a full disk.
pub fn code(code: Code) -> impl Fn(io::Error) -> Error {
    move |error| match error.raw_os_error() {
        Some(libc::ENOSPC) => Code::FULL.into(),
        _ => Error::new(code, error.to_string()),
    }
}
