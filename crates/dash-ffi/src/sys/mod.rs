//! SQLite's C types, as far as dash uses them, written by hand from sqlite3.h and sqlite3ext.h.
//!
//! Owns layouts and callback signatures only: no code, no symbols to link. Every `#[repr(C)]`
//! structure that SQLite reads or writes is pinned by constant assertions beside its definition.

mod api;
pub(crate) mod backup;
pub(crate) mod statement;
mod vfs;
mod vtab;

pub use api::ApiRoutines;
pub(crate) use api::{
    CompileOptionGet, CompileOptionUsed, DbName, Exec, MutexAlloc, MutexCall, MutexTry, SourceId,
    TxnState,
};
pub(crate) use vfs::{IoMethods, RawFile, RawVfs, SystemCall};
pub(crate) use vtab::{Cursor, IndexInfo, Module, Vtab};

use core::ffi::{c_char, c_int, c_void};
use core::marker::{PhantomData, PhantomPinned};

/// An opaque SQLite object, only ever seen behind a pointer: neither `Send` nor `Sync`.
type Opaque = PhantomData<(*mut u8, PhantomPinned)>;

/// `sqlite3`: a database connection.
#[repr(C)]
pub struct Connection {
    bytes: [u8; 0],
    marker: Opaque,
}

/// `sqlite3_mutex`.
#[repr(C)]
pub(crate) struct Mutex {
    bytes: [u8; 0],
    marker: Opaque,
}

/// `sqlite3_context`: the call of an SQL function, or of a table's column.
#[repr(C)]
pub(crate) struct Context {
    bytes: [u8; 0],
    marker: Opaque,
}

/// `sqlite3_value`: an argument of an SQL function.
#[repr(C)]
pub(crate) struct RawValue {
    bytes: [u8; 0],
    marker: Opaque,
}

/// The signature of an extension's entry point, also of one given to `sqlite3_auto_extension`.
///
/// SQLite calls it with the connection, a place for an error message (made with SQLite's own
/// allocator) and its table of routines. The result is a plain result code.
pub type EntryPoint =
    unsafe extern "C" fn(*mut Connection, *mut *mut c_char, *const ApiRoutines) -> c_int;

/// Frees what was handed to SQLite, when SQLite is done with it.
pub(crate) type Destructor = unsafe extern "C" fn(*mut c_void);
/// `xFunc` and `xStep` of an SQL function.
pub(crate) type ScalarCall = unsafe extern "C" fn(*mut Context, c_int, *mut *mut RawValue);
/// `xFinal` of an aggregate function.
pub(crate) type FinalCall = unsafe extern "C" fn(*mut Context);

/// `sqlite3_create_function_v2`.
pub(crate) type CreateFunction = unsafe extern "C" fn(
    *mut Connection,
    *const c_char,
    c_int,
    c_int,
    *mut c_void,
    Option<ScalarCall>,
    Option<ScalarCall>,
    Option<FinalCall>,
    Option<Destructor>,
) -> c_int;

/// `SQLITE_OK_LOAD_PERMANENTLY`: the library must never be unmapped, for its VFS outlives the
/// connection.
pub(crate) const OK_LOAD_PERMANENTLY: c_int = 256;
/// `SQLITE_OK_SYMLINK`: `xFullPathname` went through a symbolic link (SQLite 3.37 and later).
pub(crate) const OK_SYMLINK: c_int = 512;

/// `SQLITE_UTF8`: the encoding of all our texts.
pub(crate) const UTF8: u8 = 1;
/// `SQLITE_VTAB_INNOCUOUS`.
pub(crate) const VTAB_INNOCUOUS: c_int = 2;
/// `SQLITE_INDEX_CONSTRAINT_EQ`.
pub(crate) const INDEX_CONSTRAINT_EQ: u8 = 2;

/// `SQLITE_INTEGER`.
pub(crate) const INTEGER: c_int = 1;
/// `SQLITE_FLOAT`.
pub(crate) const FLOAT: c_int = 2;
/// `SQLITE_TEXT`.
pub(crate) const TEXT: c_int = 3;
/// `SQLITE_BLOB`.
pub(crate) const BLOB: c_int = 4;
