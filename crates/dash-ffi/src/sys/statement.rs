//! `sqlite3_stmt`, and the routines on it that have long signatures.

use super::{Connection, Destructor, Opaque};
use core::ffi::{c_char, c_int, c_uchar, c_uint, c_void};

/// `sqlite3_stmt`: a prepared statement.
#[repr(C)]
pub(crate) struct RawStatement {
    bytes: [u8; 0],
    marker: Opaque,
}

/// `sqlite3_bind_blob64`.
pub(crate) type BindBlob64 =
    unsafe extern "C" fn(*mut RawStatement, c_int, *const c_void, u64, Option<Destructor>) -> c_int;
/// `sqlite3_bind_double`.
pub(crate) type BindDouble = unsafe extern "C" fn(*mut RawStatement, c_int, f64) -> c_int;
/// `sqlite3_bind_int64`.
pub(crate) type BindInt64 = unsafe extern "C" fn(*mut RawStatement, c_int, i64) -> c_int;
/// `sqlite3_bind_null`.
pub(crate) type BindNull = unsafe extern "C" fn(*mut RawStatement, c_int) -> c_int;
/// `sqlite3_bind_text64`.
pub(crate) type BindText64 = unsafe extern "C" fn(
    *mut RawStatement,
    c_int,
    *const c_char,
    u64,
    Option<Destructor>,
    c_uchar,
) -> c_int;
/// `sqlite3_bind_zeroblob64`.
pub(crate) type BindZeroblob64 = unsafe extern "C" fn(*mut RawStatement, c_int, u64) -> c_int;
/// `sqlite3_reset` and `sqlite3_clear_bindings`.
pub(crate) type OfStatement = unsafe extern "C" fn(*mut RawStatement) -> c_int;
/// `sqlite3_column_text` and `sqlite3_column_blob`.
pub(crate) type ColumnBytes = unsafe extern "C" fn(*mut RawStatement, c_int) -> *const c_void;
/// `sqlite3_column_type` and `sqlite3_column_bytes`.
pub(crate) type ColumnInt = unsafe extern "C" fn(*mut RawStatement, c_int) -> c_int;
/// `sqlite3_db_config`.
pub(crate) type DbConfig = unsafe extern "C" fn(*mut Connection, c_int, ...) -> c_int;
/// `sqlite3_db_status`.
pub(crate) type DbStatus =
    unsafe extern "C" fn(*mut Connection, c_int, *mut c_int, *mut c_int, c_int) -> c_int;
/// `sqlite3_limit`.
pub(crate) type Limit = unsafe extern "C" fn(*mut Connection, c_int, c_int) -> c_int;
/// `sqlite3_next_stmt`.
pub(crate) type NextStatement =
    unsafe extern "C" fn(*mut Connection, *mut RawStatement) -> *mut RawStatement;
/// `sqlite3_prepare_v2`.
pub(crate) type PrepareV2 = unsafe extern "C" fn(
    *mut Connection,
    *const c_char,
    c_int,
    *mut *mut RawStatement,
    *mut *const c_char,
) -> c_int;
/// What `sqlite3_set_authorizer` calls.
pub(crate) type AuthorizerCall = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    *const c_char,
    *const c_char,
    *const c_char,
    *const c_char,
) -> c_int;
/// `sqlite3_set_authorizer`.
pub(crate) type SetAuthorizer =
    unsafe extern "C" fn(*mut Connection, Option<AuthorizerCall>, *mut c_void) -> c_int;
/// `sqlite3_drop_modules`: all but those that are named.
pub(crate) type DropModules = unsafe extern "C" fn(*mut Connection, *mut *const c_char) -> c_int;
/// What `sqlite3_trace_v2` calls.
pub(crate) type TraceCall =
    unsafe extern "C" fn(c_uint, *mut c_void, *mut c_void, *mut c_void) -> c_int;
/// `sqlite3_trace_v2`.
pub(crate) type TraceV2 =
    unsafe extern "C" fn(*mut Connection, c_uint, Option<TraceCall>, *mut c_void) -> c_int;

/// `SQLITE_TRACE_STMT`: a program begins.
pub(crate) const TRACE_STMT: c_uint = 1;
/// `SQLITE_TRACE_PROFILE`: it has ended.
pub(crate) const TRACE_PROFILE: c_uint = 2;
/// `SQLITE_ROW`.
pub(crate) const ROW: c_int = 100;
/// `SQLITE_DONE`.
pub(crate) const DONE: c_int = 101;
/// `SQLITE_DBSTATUS_CACHE_HIT`.
pub(crate) const CACHE_HIT: c_int = 7;
/// `SQLITE_DBSTATUS_CACHE_MISS`.
pub(crate) const CACHE_MISS: c_int = 8;
/// `SQLITE_DBCONFIG_FP_DIGITS`, since 3.52.
pub(crate) const FP_DIGITS: c_int = 1023;
/// `SQLITE_DBCONFIG_ENABLE_TRIGGER`.
pub(crate) const ENABLE_TRIGGER: c_int = 1003;
/// `SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION`.
pub(crate) const ENABLE_LOAD_EXTENSION: c_int = 1005;
/// `SQLITE_DBCONFIG_DEFENSIVE`.
pub(crate) const DEFENSIVE: c_int = 1010;
/// `SQLITE_DBCONFIG_WRITABLE_SCHEMA`.
pub(crate) const WRITABLE_SCHEMA: c_int = 1011;
/// `SQLITE_DBCONFIG_ENABLE_VIEW`.
pub(crate) const ENABLE_VIEW: c_int = 1015;
/// `SQLITE_DBCONFIG_TRUSTED_SCHEMA`.
pub(crate) const TRUSTED_SCHEMA: c_int = 1017;
/// `SQLITE_LIMIT_LENGTH`.
pub(crate) const LENGTH: c_int = 0;
/// `SQLITE_LIMIT_SQL_LENGTH`.
pub(crate) const SQL_LENGTH: c_int = 1;
/// `SQLITE_LIMIT_COLUMN`.
pub(crate) const COLUMN: c_int = 2;
/// `SQLITE_LIMIT_EXPR_DEPTH`.
pub(crate) const EXPR_DEPTH: c_int = 3;
/// `SQLITE_LIMIT_VDBE_OP`.
pub(crate) const VDBE_OP: c_int = 5;
/// `SQLITE_LIMIT_ATTACHED`.
pub(crate) const ATTACHED: c_int = 7;
/// `SQLITE_LIMIT_VARIABLE_NUMBER`.
pub(crate) const VARIABLE_NUMBER: c_int = 9;
/// `SQLITE_DENY`.
pub(crate) const DENY: c_int = 1;
/// `SQLITE_STMTSTATUS_VM_STEP`.
pub(crate) const VM_STEP: c_int = 4;
/// `SQLITE_STMTSTATUS_REPREPARE`.
pub(crate) const REPREPARE: c_int = 5;
