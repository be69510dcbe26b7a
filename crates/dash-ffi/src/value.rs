//! `Value`: what goes into SQL functions and comes out of functions and tables.

use crate::api::Api;
use crate::sys::{BLOB, Context, Destructor, FLOAT, INTEGER, RawValue, TEXT, UTF8};
use core::ffi::c_void;

/// An SQL value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// NULL.
    Null,
    /// An integer.
    Integer(i64),
    /// A real number.
    Real(f64),
    /// A text. An argument that SQLite calls text but that is not UTF-8 arrives as [`Value::Blob`].
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<Vec<u8>> for Value {
    fn from(value: Vec<u8>) -> Self {
        Self::Blob(value)
    }
}

impl<V: Into<Self>> From<Option<V>> for Value {
    fn from(value: Option<V>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// `SQLITE_TRANSIENT`: SQLite copies the bytes before its routine returns.
pub(crate) fn transient() -> Option<Destructor> {
    // SAFETY: SQLite takes this address, which no function has, for a mark, and never calls it.
    Some(unsafe { core::mem::transmute::<usize, Destructor>(usize::MAX) })
}

impl Value {
    /// Copies an argument of a function.
    ///
    /// # Safety
    ///
    /// `value` is an argument that the SQLite of `api` passed to a callback which is still running.
    pub(crate) unsafe fn read(api: &Api, value: *mut RawValue) -> Self {
        // SAFETY: a live value, as the caller states. The pointers that text and blob give hold
        // until the next call on the same value, and `value_bytes` after them keeps them: it does
        // not convert.
        unsafe {
            match (api.value_type)(value) {
                INTEGER => Self::Integer((api.value_int64)(value)),
                FLOAT => Self::Real((api.value_double)(value)),
                TEXT => {
                    let text = (api.value_text)(value).cast();
                    let bytes = copy(text, (api.value_bytes)(value));
                    String::from_utf8(bytes).map_or_else(|e| Self::Blob(e.into_bytes()), Self::Text)
                }
                BLOB => {
                    let bytes = (api.value_blob)(value);
                    Self::Blob(copy(bytes, (api.value_bytes)(value)))
                }
                _ => Self::Null,
            }
        }
    }

    /// Makes this the result of a function or a column.
    ///
    /// # Safety
    ///
    /// `context` is what the SQLite of `api` passed to a callback which is still running.
    pub(crate) unsafe fn set(&self, api: &Api, context: *mut Context) {
        // SAFETY: a live context, as the caller states; texts and blobs come with their lengths,
        // and are copied at once.
        unsafe {
            match self {
                Self::Null => (api.result_null)(context),
                Self::Integer(value) => (api.result_int64)(context, *value),
                Self::Real(value) => (api.result_double)(context, *value),
                Self::Text(text) => {
                    let (start, length) = (text.as_ptr().cast(), text.len() as u64);
                    (api.result_text64)(context, start, length, transient(), UTF8);
                }
                Self::Blob(blob) => {
                    let (start, length) = (blob.as_ptr().cast(), blob.len() as u64);
                    (api.result_blob64)(context, start, length, transient());
                }
            }
        }
    }
}

/// Copies bytes of SQLite's; null (an empty blob, or no memory) gives none.
///
/// # Safety
///
/// `start` is null or points to `length` bytes.
unsafe fn copy(start: *const c_void, length: core::ffi::c_int) -> Vec<u8> {
    match usize::try_from(length) {
        // SAFETY: as the caller states.
        Ok(length) if !start.is_null() => unsafe {
            core::slice::from_raw_parts(start.cast::<u8>(), length).to_vec()
        },
        _ => Vec::new(),
    }
}
