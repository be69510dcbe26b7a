//! What `sqlite3_exec` answers, row by row.

use crate::code::{Code, OK};
use crate::guard::guarded;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::null_mut;

/// A row: texts, or NULL.
pub(crate) type Texts = Vec<Option<Vec<u8>>>;

/// Keeps each row in a `Vec<Texts>`, for `sqlite3_exec`.
///
/// # Safety
///
/// SQLite calls it, and `rows` is such a vector, which nobody else uses meanwhile.
pub(crate) unsafe extern "C" fn keep_all(
    rows: *mut c_void,
    columns: c_int,
    values: *mut *mut c_char,
    _names: *mut *mut c_char,
) -> c_int {
    let keep = || {
        let columns = usize::try_from(columns).unwrap_or(0);
        let text = |column| {
            // SAFETY: SQLite passes as many values as there are columns.
            let value = unsafe { *values.add(column) };
            // SAFETY: not null, so a C string that is there during the call.
            (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) }.to_bytes().to_vec())
        };
        let row: Texts = (0..columns).map(text).collect();
        // SAFETY: the caller's vector, which nobody else uses now.
        unsafe { (*rows.cast::<Vec<Texts>>()).push(row) };
        Ok(())
    };
    guarded("a row", Code::INTERNAL, keep, |_| ()).map_or(Code::INTERNAL.raw(), |()| OK)
}

/// Keeps the first column of each row in a `Vec<String>`, for `sqlite3_exec`.
///
/// # Safety
///
/// SQLite calls it, and `lines` is such a vector, which nobody else uses meanwhile.
pub(crate) unsafe extern "C" fn keep(
    lines: *mut c_void,
    columns: c_int,
    values: *mut *mut c_char,
    _names: *mut *mut c_char,
) -> c_int {
    let keep = || {
        // SAFETY: SQLite passes as many values as there are columns.
        let value = if columns > 0 { unsafe { *values } } else { null_mut() };
        if !value.is_null() {
            // SAFETY: not null, so a C string that is there during the call.
            let text = unsafe { CStr::from_ptr(value) }.to_string_lossy().into_owned();
            // SAFETY: the caller's vector, which nobody else uses now.
            unsafe { (*lines.cast::<Vec<String>>()).push(text) };
        }
        Ok(())
    };
    guarded("a row", Code::INTERNAL, keep, |_| ()).map_or(Code::INTERNAL.raw(), |()| OK)
}
