//! The values that are bound to a statement, exactly: they are moved to a statement of our own that
//! answers them, read, and moved back. SQLite has no other way; the text that it makes of a
//! statement with its values is another program, where they are negative, real, or hold a zero
//! byte. Statements of our own are kept for the next time ([`super::kept`]).

use super::hook::Hook;
use super::kept::{self, columns};
use crate::code::OK;
use crate::statement_api::StatementApi;
use crate::sys::statement::{ROW, RawStatement, VM_STEP};
use crate::sys::{BLOB, FLOAT, INTEGER, TEXT};
use core::ffi::{c_int, c_uint, c_void};
use core::ptr::null_mut;
use core::sync::atomic::Ordering;

/// What `sqlite3_bind_pointer` marks a NULL with.
const POINTER: c_uint = b'p' as c_uint;

/// A value that was bound.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    /// NULL, or nothing.
    Null,
    /// An integer.
    Integer(i64),
    /// A real number.
    Real(f64),
    /// A text in UTF-8, zero bytes included.
    Text(Vec<u8>),
    /// Bytes.
    Blob(Vec<u8>),
    /// A pointer of the program's.
    Pointer,
}

/// Why values are not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// They have more bytes than asked for.
    TooLarge,
    /// SQLite, or the host's authorizer, refused the statement of ours.
    Refused,
}

/// Reads them.
///
/// # Errors
///
/// Why not.
///
/// # Safety
///
/// `of` is a statement of the hook's connection, which this thread has locked, and its program has
/// run.
pub(super) unsafe fn read(
    hook: &Hook,
    of: *mut RawStatement,
    room: usize,
) -> Result<Vec<Bound>, Unread> {
    let api = hook.api;
    // SAFETY: a live statement, as the caller states.
    let count = usize::try_from(unsafe { (api.bind_parameter_count)(of) }).unwrap_or(0);
    if count == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: as the caller states.
    let raw = unsafe { kept::take(hook, count) }.ok_or(Unread::Refused)?;
    hook.own.store(raw, Ordering::Relaxed);
    let mut own = Own { hook, raw, count, moved_from: None };
    // SAFETY: two statements of this connection with as many parameters; nothing moves otherwise.
    if unsafe { (api.transfer_bindings)(of, own.raw) } != OK {
        return Err(Unread::Refused);
    }
    own.moved_from = Some(of);
    // The host's progress handler comes after so many steps of one statement.
    // SAFETY: a statement of our own.
    unsafe { (api.stmt_status)(own.raw, VM_STEP, 1) };
    let (mut values, mut room) = (Vec::with_capacity(count), room);
    while values.len() < count {
        // SAFETY: a statement of our own.
        if unsafe { (api.step)(own.raw) } != ROW {
            return Err(Unread::Refused);
        }
        for column in 0..count.min(columns(count)) {
            let column = c_int::try_from(column).unwrap_or(c_int::MAX);
            // SAFETY: at a row, which has so many columns.
            values.push(unsafe { value(api, own.raw, column, &mut room) }?);
        }
    }
    Ok(values)
}

/// A statement of our own, and whose values it has. It gives them back, whatever happens.
struct Own<'a> {
    hook: &'a Hook,
    raw: *mut RawStatement,
    count: usize,
    moved_from: Option<*mut RawStatement>,
}

impl Drop for Own<'_> {
    fn drop(&mut self) {
        let api = self.hook.api;
        // SAFETY: statements of one connection with as many parameters, which this thread has
        // locked; ours holds nothing of the values once it is reset.
        unsafe {
            (api.reset)(self.raw);
            if let Some(from) = self.moved_from {
                (api.transfer_bindings)(self.raw, from);
            }
            kept::give_back(self.hook, self.raw, self.count);
        }
        self.hook.own.store(null_mut(), Ordering::Relaxed);
    }
}

/// One value of a row.
///
/// # Safety
///
/// `raw` is at a row that has this column.
unsafe fn value(
    api: &StatementApi,
    raw: *mut RawStatement,
    column: c_int,
    room: &mut usize,
) -> Result<Bound, Unread> {
    // SAFETY: as the caller states, for all calls. A length is asked for again behind the text,
    // which SQLite may have converted; it converts no further then.
    unsafe {
        Ok(match (api.column_type)(raw, column) {
            INTEGER => Bound::Integer((api.column_int64)(raw, column)),
            FLOAT => Bound::Real((api.column_double)(raw, column)),
            TEXT => {
                let start = (api.column_text)(raw, column);
                Bound::Text(copy(start, (api.column_bytes)(raw, column), room)?)
            }
            BLOB => {
                // Zeros that were bound as a number of zeros are not made as long as they are too
                // many.
                let length = (api.column_bytes)(raw, column);
                if usize::try_from(length).is_ok_and(|length| length > *room) {
                    return Err(Unread::TooLarge);
                }
                let start = (api.column_blob)(raw, column);
                Bound::Blob(copy(start, length, room)?)
            }
            _ if (api.value_subtype)((api.column_value)(raw, column)) == POINTER => Bound::Pointer,
            _ => Bound::Null,
        })
    }
}

/// Copies bytes of SQLite's, if there is room; null (an empty blob, or no memory) gives none.
///
/// # Safety
///
/// `start` is null or points to `length` bytes.
unsafe fn copy(start: *const c_void, length: c_int, room: &mut usize) -> Result<Vec<u8>, Unread> {
    let length = usize::try_from(length).unwrap_or(0);
    if start.is_null() && length > 0 {
        return Err(Unread::Refused);
    }
    *room = room.checked_sub(length).ok_or(Unread::TooLarge)?;
    if length == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: as the caller states.
    Ok(unsafe { core::slice::from_raw_parts(start.cast::<u8>(), length) }.to_vec())
}
