//! What SQLite passes to a file's methods: numbers, and places for answers.

use crate::code::Code;
use crate::error::{Error, Result};
use core::ffi::c_int;

/// An offset or a size from C, which is never negative.
pub(crate) fn unsigned(value: i64) -> Result<u64> {
    u64::try_from(value)
        .map_err(|_| Error::new(Code::MISUSE, format!("a negative offset: {value}")))
}

/// A count from C, which is never negative.
pub(crate) fn count(value: c_int) -> Result<usize> {
    usize::try_from(value)
        .map_err(|_| Error::new(Code::MISUSE, format!("a negative count: {value}")))
}

/// Stores an answer where SQLite wants it.
///
/// # Safety
///
/// `place` is null or may be written.
pub(crate) unsafe fn store<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: as the caller states.
        unsafe { place.write(value) }
    }
}
