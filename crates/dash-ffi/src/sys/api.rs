//! `sqlite3_api_routines`: the table of function pointers that SQLite hands to an extension.
//!
//! Owns the order of its fields, which is SQLite's ABI: fields are only ever appended, so the
//! prefix up to `filename_wal`, the last field of 3.31, is valid for that version and every later
//! one. Fields that dash never calls keep their name and place but not their type.
//!
//! Invariant: no field is read before `libversion_number` has answered 3.31 or later, and none
//! behind `filename_wal` before it has answered the version that appended it (see `api`).

use super::backup::{Backup, BackupInit, ProgressHandler};
use super::statement::{
    BindBlob64, BindDouble, BindInt64, BindNull, BindText64, BindZeroblob64, ColumnBytes,
    ColumnInt, DbConfig, DbStatus, DropModules, Limit, NextStatement, OfStatement, PrepareV2,
    RawStatement, SetAuthorizer, TraceV2,
};
use super::{
    Connection, Context, CreateFunction, Destructor, EntryPoint, Module, Mutex, RawValue, RawVfs,
};
use core::ffi::{c_char, c_int, c_uchar, c_uint, c_void};

/// A routine that dash never calls: only its place in the table matters.
pub(crate) type Unused = *const c_void;
/// `sqlite3_compileoption_used`, which an SQLite may be built without.
pub(crate) type CompileOptionUsed = unsafe extern "C" fn(*const c_char) -> c_int;

/// `sqlite3_compileoption_get`, which it may be built without.
pub(crate) type CompileOptionGet = unsafe extern "C" fn(c_int) -> *const c_char;
/// `sqlite3_sourceid`.
pub(crate) type SourceId = unsafe extern "C" fn() -> *const c_char;

/// `sqlite3_mutex_alloc`, which an SQLite for one thread is built without.
pub(crate) type MutexAlloc = unsafe extern "C" fn(c_int) -> *mut Mutex;
/// `sqlite3_mutex_enter` and `sqlite3_mutex_leave`.
pub(crate) type MutexCall = unsafe extern "C" fn(*mut Mutex);
/// `sqlite3_mutex_try`.
pub(crate) type MutexTry = unsafe extern "C" fn(*mut Mutex) -> c_int;

/// `sqlite3_txn_state`, since 3.34.
pub(crate) type TxnState = unsafe extern "C" fn(*mut Connection, *const c_char) -> c_int;
/// `sqlite3_db_name`, since 3.39.
pub(crate) type DbName = unsafe extern "C" fn(*mut Connection, c_int) -> *const c_char;

/// `sqlite3_exec`; dash passes no callback and takes no message from it.
pub(crate) type Exec = unsafe extern "C" fn(
    *mut Connection,
    *const c_char,
    Option<unsafe extern "C" fn(*mut c_void, c_int, *mut *mut c_char, *mut *mut c_char) -> c_int>,
    *mut c_void,
    *mut *mut c_char,
) -> c_int;

/// The pointer table of the host's SQLite, up to the last field that dash reads.
///
/// Opaque to other crates: they only pass its address from an entry point to [`load`](crate::load).
#[repr(C)]
pub struct ApiRoutines {
    pub(crate) aggregate_context: Unused,
    pub(crate) aggregate_count: Unused,
    pub(crate) bind_blob: Unused,
    pub(crate) bind_double: Option<BindDouble>,
    pub(crate) bind_int: Unused,
    pub(crate) bind_int64: Option<BindInt64>,
    pub(crate) bind_null: Option<BindNull>,
    pub(crate) bind_parameter_count: Option<unsafe extern "C" fn(*mut RawStatement) -> c_int>,
    pub(crate) bind_parameter_index: Unused,
    pub(crate) bind_parameter_name: Unused,
    pub(crate) bind_text: Unused,
    pub(crate) bind_text16: Unused,
    pub(crate) bind_value: Unused,
    pub(crate) busy_handler: Unused,
    pub(crate) busy_timeout: Unused,
    pub(crate) changes: Unused,
    pub(crate) close: Option<unsafe extern "C" fn(*mut Connection) -> c_int>,
    pub(crate) collation_needed: Unused,
    pub(crate) collation_needed16: Unused,
    pub(crate) column_blob: Option<ColumnBytes>,
    pub(crate) column_bytes: Option<ColumnInt>,
    pub(crate) column_bytes16: Unused,
    pub(crate) column_count: Unused,
    pub(crate) column_database_name: Unused,
    pub(crate) column_database_name16: Unused,
    pub(crate) column_decltype: Unused,
    pub(crate) column_decltype16: Unused,
    pub(crate) column_double: Option<unsafe extern "C" fn(*mut RawStatement, c_int) -> f64>,
    pub(crate) column_int: Unused,
    pub(crate) column_int64: Option<unsafe extern "C" fn(*mut RawStatement, c_int) -> i64>,
    pub(crate) column_name: Unused,
    pub(crate) column_name16: Unused,
    pub(crate) column_origin_name: Unused,
    pub(crate) column_origin_name16: Unused,
    pub(crate) column_table_name: Unused,
    pub(crate) column_table_name16: Unused,
    pub(crate) column_text: Option<ColumnBytes>,
    pub(crate) column_text16: Unused,
    pub(crate) column_type: Option<ColumnInt>,
    pub(crate) column_value:
        Option<unsafe extern "C" fn(*mut RawStatement, c_int) -> *mut RawValue>,
    pub(crate) commit_hook: Unused,
    pub(crate) complete: Unused,
    pub(crate) complete16: Unused,
    pub(crate) create_collation: Unused,
    pub(crate) create_collation16: Unused,
    pub(crate) create_function: Unused,
    pub(crate) create_function16: Unused,
    pub(crate) create_module: Unused,
    pub(crate) data_count: Unused,
    pub(crate) db_handle: Unused,
    pub(crate) declare_vtab: Option<unsafe extern "C" fn(*mut Connection, *const c_char) -> c_int>,
    pub(crate) enable_shared_cache: Unused,
    pub(crate) errcode: Unused,
    pub(crate) errmsg: Option<unsafe extern "C" fn(*mut Connection) -> *const c_char>,
    pub(crate) errmsg16: Unused,
    pub(crate) exec: Option<Exec>,
    pub(crate) expired: Unused,
    pub(crate) finalize: Option<unsafe extern "C" fn(*mut RawStatement) -> c_int>,
    pub(crate) free: Option<unsafe extern "C" fn(*mut c_void)>,
    pub(crate) free_table: Unused,
    pub(crate) get_autocommit: Option<unsafe extern "C" fn(*mut Connection) -> c_int>,
    pub(crate) get_auxdata: Unused,
    pub(crate) get_table: Unused,
    pub(crate) global_recover: Unused,
    pub(crate) interruptx: Unused,
    pub(crate) last_insert_rowid: Unused,
    pub(crate) libversion: Unused,
    pub(crate) libversion_number: Option<unsafe extern "C" fn() -> c_int>,
    pub(crate) malloc: Unused,
    pub(crate) mprintf: Option<unsafe extern "C" fn(*const c_char, ...) -> *mut c_char>,
    pub(crate) open: Unused,
    pub(crate) open16: Unused,
    pub(crate) prepare: Unused,
    pub(crate) prepare16: Unused,
    pub(crate) profile: Unused,
    pub(crate) progress_handler: Option<ProgressHandler>,
    pub(crate) realloc: Unused,
    pub(crate) reset: Option<OfStatement>,
    pub(crate) result_blob: Unused,
    pub(crate) result_double: Option<unsafe extern "C" fn(*mut Context, f64)>,
    pub(crate) result_error: Option<unsafe extern "C" fn(*mut Context, *const c_char, c_int)>,
    pub(crate) result_error16: Unused,
    pub(crate) result_int: Unused,
    pub(crate) result_int64: Option<unsafe extern "C" fn(*mut Context, i64)>,
    pub(crate) result_null: Option<unsafe extern "C" fn(*mut Context)>,
    pub(crate) result_text: Unused,
    pub(crate) result_text16: Unused,
    pub(crate) result_text16be: Unused,
    pub(crate) result_text16le: Unused,
    pub(crate) result_value: Unused,
    pub(crate) rollback_hook: Unused,
    pub(crate) set_authorizer: Option<SetAuthorizer>,
    pub(crate) set_auxdata: Unused,
    pub(crate) xsnprintf: Unused,
    pub(crate) step: Option<unsafe extern "C" fn(*mut RawStatement) -> c_int>,
    pub(crate) table_column_metadata: Unused,
    pub(crate) thread_cleanup: Unused,
    pub(crate) total_changes: Option<unsafe extern "C" fn(*mut Connection) -> c_int>,
    pub(crate) trace: Unused,
    pub(crate) transfer_bindings:
        Option<unsafe extern "C" fn(*mut RawStatement, *mut RawStatement) -> c_int>,
    pub(crate) update_hook: Unused,
    pub(crate) user_data: Option<unsafe extern "C" fn(*mut Context) -> *mut c_void>,
    pub(crate) value_blob: Option<unsafe extern "C" fn(*mut RawValue) -> *const c_void>,
    pub(crate) value_bytes: Option<unsafe extern "C" fn(*mut RawValue) -> c_int>,
    pub(crate) value_bytes16: Unused,
    pub(crate) value_double: Option<unsafe extern "C" fn(*mut RawValue) -> f64>,
    pub(crate) value_int: Unused,
    pub(crate) value_int64: Option<unsafe extern "C" fn(*mut RawValue) -> i64>,
    pub(crate) value_numeric_type: Unused,
    pub(crate) value_text: Option<unsafe extern "C" fn(*mut RawValue) -> *const c_uchar>,
    pub(crate) value_text16: Unused,
    pub(crate) value_text16be: Unused,
    pub(crate) value_text16le: Unused,
    pub(crate) value_type: Option<unsafe extern "C" fn(*mut RawValue) -> c_int>,
    pub(crate) vmprintf: Unused,
    pub(crate) overload_function: Unused,
    pub(crate) prepare_v2: Option<PrepareV2>,
    pub(crate) prepare16_v2: Unused,
    pub(crate) clear_bindings: Option<OfStatement>,
    pub(crate) create_module_v2: Option<
        unsafe extern "C" fn(
            *mut Connection,
            *const c_char,
            *const Module,
            *mut c_void,
            Option<Destructor>,
        ) -> c_int,
    >,
    pub(crate) bind_zeroblob: Unused,
    pub(crate) blob_bytes: Unused,
    pub(crate) blob_close: Unused,
    pub(crate) blob_open: Unused,
    pub(crate) blob_read: Unused,
    pub(crate) blob_write: Unused,
    pub(crate) create_collation_v2: Unused,
    pub(crate) file_control:
        Option<unsafe extern "C" fn(*mut Connection, *const c_char, c_int, *mut c_void) -> c_int>,
    pub(crate) memory_highwater: Unused,
    pub(crate) memory_used: Unused,
    pub(crate) mutex_alloc: Option<MutexAlloc>,
    pub(crate) mutex_enter: Option<MutexCall>,
    pub(crate) mutex_free: Unused,
    pub(crate) mutex_leave: Option<MutexCall>,
    pub(crate) mutex_try: Option<MutexTry>,
    pub(crate) open_v2: Option<
        unsafe extern "C" fn(*const c_char, *mut *mut Connection, c_int, *const c_char) -> c_int,
    >,
    pub(crate) release_memory: Unused,
    pub(crate) result_error_nomem: Unused,
    pub(crate) result_error_toobig: Unused,
    pub(crate) sleep: Unused,
    pub(crate) soft_heap_limit: Unused,
    pub(crate) vfs_find: Option<unsafe extern "C" fn(*const c_char) -> *mut RawVfs>,
    pub(crate) vfs_register: Option<unsafe extern "C" fn(*mut RawVfs, c_int) -> c_int>,
    pub(crate) vfs_unregister: Unused,
    pub(crate) xthreadsafe: Unused,
    pub(crate) result_zeroblob: Unused,
    pub(crate) result_error_code: Option<unsafe extern "C" fn(*mut Context, c_int)>,
    pub(crate) test_control: Unused,
    pub(crate) randomness: Unused,
    pub(crate) context_db_handle: Option<unsafe extern "C" fn(*mut Context) -> *mut Connection>,
    pub(crate) extended_result_codes: Unused,
    pub(crate) limit: Option<Limit>,
    pub(crate) next_stmt: Option<NextStatement>,
    pub(crate) sql: Option<unsafe extern "C" fn(*mut RawStatement) -> *const c_char>,
    pub(crate) status: Unused,
    pub(crate) backup_finish: Option<unsafe extern "C" fn(*mut Backup) -> c_int>,
    pub(crate) backup_init: Option<BackupInit>,
    pub(crate) backup_pagecount: Unused,
    pub(crate) backup_remaining: Unused,
    pub(crate) backup_step: Option<unsafe extern "C" fn(*mut Backup, c_int) -> c_int>,
    pub(crate) compileoption_get: Option<CompileOptionGet>,
    pub(crate) compileoption_used: Option<CompileOptionUsed>,
    pub(crate) create_function_v2: Option<CreateFunction>,
    pub(crate) db_config: Option<DbConfig>,
    pub(crate) db_mutex: Unused,
    pub(crate) db_status: Option<DbStatus>,
    pub(crate) extended_errcode: Option<unsafe extern "C" fn(*mut Connection) -> c_int>,
    pub(crate) log: Option<unsafe extern "C" fn(c_int, *const c_char, ...)>,
    pub(crate) soft_heap_limit64: Unused,
    pub(crate) sourceid: Option<SourceId>,
    pub(crate) stmt_status: Option<unsafe extern "C" fn(*mut RawStatement, c_int, c_int) -> c_int>,
    pub(crate) strnicmp: Unused,
    pub(crate) unlock_notify: Unused,
    pub(crate) wal_autocheckpoint: Unused,
    pub(crate) wal_checkpoint: Unused,
    pub(crate) wal_hook: Unused,
    pub(crate) blob_reopen: Unused,
    pub(crate) vtab_config: Option<unsafe extern "C" fn(*mut Connection, c_int, ...) -> c_int>,
    pub(crate) vtab_on_conflict: Unused,
    pub(crate) close_v2: Unused,
    pub(crate) db_filename:
        Option<unsafe extern "C" fn(*mut Connection, *const c_char) -> *const c_char>,
    pub(crate) db_readonly: Option<unsafe extern "C" fn(*mut Connection, *const c_char) -> c_int>,
    pub(crate) db_release_memory: Unused,
    pub(crate) errstr: Unused,
    pub(crate) stmt_busy: Option<unsafe extern "C" fn(*mut RawStatement) -> c_int>,
    pub(crate) stmt_readonly: Option<unsafe extern "C" fn(*mut RawStatement) -> c_int>,
    pub(crate) stricmp: Unused,
    pub(crate) uri_boolean: Unused,
    pub(crate) uri_int64: Unused,
    pub(crate) uri_parameter:
        Option<unsafe extern "C" fn(*const c_char, *const c_char) -> *const c_char>,
    pub(crate) xvsnprintf: Unused,
    pub(crate) wal_checkpoint_v2: Unused,
    pub(crate) auto_extension: Option<unsafe extern "C" fn(Option<EntryPoint>) -> c_int>,
    pub(crate) bind_blob64: Option<BindBlob64>,
    pub(crate) bind_text64: Option<BindText64>,
    pub(crate) cancel_auto_extension: Unused,
    pub(crate) load_extension: Unused,
    pub(crate) malloc64: Unused,
    pub(crate) msize: Unused,
    pub(crate) realloc64: Unused,
    pub(crate) reset_auto_extension: Unused,
    pub(crate) result_blob64:
        Option<unsafe extern "C" fn(*mut Context, *const c_void, u64, Option<Destructor>)>,
    pub(crate) result_text64:
        Option<unsafe extern "C" fn(*mut Context, *const c_char, u64, Option<Destructor>, c_uchar)>,
    pub(crate) strglob: Unused,
    pub(crate) value_dup: Unused,
    pub(crate) value_free: Unused,
    pub(crate) result_zeroblob64: Unused,
    pub(crate) bind_zeroblob64: Option<BindZeroblob64>,
    pub(crate) value_subtype: Option<unsafe extern "C" fn(*mut RawValue) -> c_uint>,
    pub(crate) result_subtype: Unused,
    pub(crate) status64: Unused,
    pub(crate) strlike: Unused,
    pub(crate) db_cacheflush: Unused,
    pub(crate) system_errno: Option<unsafe extern "C" fn(*mut Connection) -> c_int>,
    pub(crate) trace_v2: Option<TraceV2>,
    pub(crate) expanded_sql: Unused,
    pub(crate) set_last_insert_rowid: Unused,
    pub(crate) prepare_v3: Unused,
    pub(crate) prepare16_v3: Unused,
    pub(crate) bind_pointer: Unused,
    pub(crate) result_pointer: Unused,
    pub(crate) value_pointer: Unused,
    pub(crate) vtab_nochange: Unused,
    pub(crate) value_nochange: Unused,
    pub(crate) vtab_collation: Unused,
    pub(crate) keyword_count: Unused,
    pub(crate) keyword_name: Unused,
    pub(crate) keyword_check: Unused,
    pub(crate) str_new: Unused,
    pub(crate) str_finish: Unused,
    pub(crate) str_appendf: Unused,
    pub(crate) str_vappendf: Unused,
    pub(crate) str_append: Unused,
    pub(crate) str_appendall: Unused,
    pub(crate) str_appendchar: Unused,
    pub(crate) str_reset: Unused,
    pub(crate) str_errcode: Unused,
    pub(crate) str_length: Unused,
    pub(crate) str_value: Unused,
    pub(crate) create_window_function: Unused,
    pub(crate) normalized_sql: Unused,
    pub(crate) stmt_isexplain: Unused,
    pub(crate) value_frombind: Unused,
    pub(crate) drop_modules: Option<DropModules>,
    pub(crate) hard_heap_limit64: Unused,
    pub(crate) uri_key: Option<unsafe extern "C" fn(*const c_char, c_int) -> *const c_char>,
    pub(crate) filename_database: Option<unsafe extern "C" fn(*const c_char) -> *const c_char>,
    pub(crate) filename_journal: Unused,
    pub(crate) filename_wal: Unused,
    // From here on later versions only.
    pub(crate) create_filename: Unused,
    pub(crate) free_filename: Unused,
    pub(crate) database_file_object: Unused,
    pub(crate) txn_state: Option<TxnState>,
    pub(crate) changes64: Unused,
    pub(crate) total_changes64: Unused,
    pub(crate) autovacuum_pages: Unused,
    pub(crate) error_offset: Unused,
    pub(crate) vtab_rhs_value: Unused,
    pub(crate) vtab_distinct: Unused,
    pub(crate) vtab_in: Unused,
    pub(crate) vtab_in_first: Unused,
    pub(crate) vtab_in_next: Unused,
    pub(crate) deserialize: Unused,
    pub(crate) serialize: Unused,
    pub(crate) db_name: Option<DbName>,
    pub(crate) value_encoding: Unused,
    pub(crate) is_interrupted: Option<unsafe extern "C" fn(*mut Connection) -> c_int>,
}

/// Field numbers, counted in sqlite3ext.h; every field is one pointer wide.
const _: () = {
    use core::mem::{offset_of, size_of};
    const POINTER: usize = size_of::<Unused>();
    assert!(offset_of!(ApiRoutines, close) == 16 * POINTER);
    assert!(offset_of!(ApiRoutines, errmsg) == 53 * POINTER);
    assert!(offset_of!(ApiRoutines, exec) == 55 * POINTER);
    assert!(offset_of!(ApiRoutines, open_v2) == 135 * POINTER);
    assert!(offset_of!(ApiRoutines, declare_vtab) == 50 * POINTER);
    assert!(offset_of!(ApiRoutines, backup_finish) == 155 * POINTER);
    assert!(offset_of!(ApiRoutines, backup_init) == 156 * POINTER);
    assert!(offset_of!(ApiRoutines, backup_step) == 159 * POINTER);
    assert!(offset_of!(ApiRoutines, free) == 58 * POINTER);
    assert!(offset_of!(ApiRoutines, libversion_number) == 67 * POINTER);
    assert!(offset_of!(ApiRoutines, mprintf) == 69 * POINTER);
    assert!(offset_of!(ApiRoutines, result_double) == 79 * POINTER);
    assert!(offset_of!(ApiRoutines, result_error) == 80 * POINTER);
    assert!(offset_of!(ApiRoutines, result_int64) == 83 * POINTER);
    assert!(offset_of!(ApiRoutines, result_null) == 84 * POINTER);
    assert!(offset_of!(ApiRoutines, transfer_bindings) == 99 * POINTER);
    assert!(offset_of!(ApiRoutines, user_data) == 101 * POINTER);
    assert!(offset_of!(ApiRoutines, value_blob) == 102 * POINTER);
    assert!(offset_of!(ApiRoutines, value_bytes) == 103 * POINTER);
    assert!(offset_of!(ApiRoutines, value_double) == 105 * POINTER);
    assert!(offset_of!(ApiRoutines, value_int64) == 107 * POINTER);
    assert!(offset_of!(ApiRoutines, value_text) == 109 * POINTER);
    assert!(offset_of!(ApiRoutines, value_type) == 113 * POINTER);
    assert!(offset_of!(ApiRoutines, create_module_v2) == 119 * POINTER);
    assert!(offset_of!(ApiRoutines, file_control) == 127 * POINTER);
    assert!(offset_of!(ApiRoutines, vfs_find) == 141 * POINTER);
    assert!(offset_of!(ApiRoutines, vfs_register) == 142 * POINTER);
    assert!(offset_of!(ApiRoutines, result_error_code) == 146 * POINTER);
    assert!(offset_of!(ApiRoutines, context_db_handle) == 149 * POINTER);
    assert!(offset_of!(ApiRoutines, create_function_v2) == 162 * POINTER);
    assert!(offset_of!(ApiRoutines, log) == 167 * POINTER);
    assert!(offset_of!(ApiRoutines, vtab_config) == 177 * POINTER);
    assert!(offset_of!(ApiRoutines, db_filename) == 180 * POINTER);
    assert!(offset_of!(ApiRoutines, uri_parameter) == 189 * POINTER);
    assert!(offset_of!(ApiRoutines, auto_extension) == 192 * POINTER);
    assert!(offset_of!(ApiRoutines, result_blob64) == 201 * POINTER);
    assert!(offset_of!(ApiRoutines, result_text64) == 202 * POINTER);
    assert!(offset_of!(ApiRoutines, uri_key) == 245 * POINTER);
    assert!(offset_of!(ApiRoutines, filename_database) == 246 * POINTER);
    assert!(offset_of!(ApiRoutines, filename_wal) == 248 * POINTER);
    assert!(offset_of!(ApiRoutines, txn_state) == 252 * POINTER);
    assert!(offset_of!(ApiRoutines, db_name) == 264 * POINTER);
    assert!(offset_of!(ApiRoutines, is_interrupted) == 266 * POINTER);
    assert!(size_of::<ApiRoutines>() == 267 * POINTER);
};
