//! `sqlite3_module`, `sqlite3_vtab`, its cursor, and `sqlite3_index_info`.
//!
//! The module is version 1: dash's tables are eponymous and read-only, so nothing newer is needed,
//! and the methods that only writable tables have keep no signature.

use super::{Connection, Context, RawValue};
use core::ffi::{c_char, c_int, c_uchar, c_void};
use core::mem::{offset_of, size_of};

/// `xCreate` and `xConnect`.
pub(crate) type Connect = unsafe extern "C" fn(
    *mut Connection,
    *mut c_void,
    c_int,
    *const *const c_char,
    *mut *mut Vtab,
    *mut *mut c_char,
) -> c_int;

/// A method that a read-only table does not have.
pub(crate) type Absent = Option<unsafe extern "C" fn()>;

/// `sqlite3_module`, up to the end of version 3: only `version` says how much of it SQLite reads.
#[repr(C)]
pub(crate) struct Module {
    pub(crate) version: c_int,
    pub(crate) create: Option<Connect>,
    pub(crate) connect: Option<Connect>,
    pub(crate) best_index: Option<unsafe extern "C" fn(*mut Vtab, *mut IndexInfo) -> c_int>,
    pub(crate) disconnect: Option<unsafe extern "C" fn(*mut Vtab) -> c_int>,
    pub(crate) destroy: Option<unsafe extern "C" fn(*mut Vtab) -> c_int>,
    pub(crate) open: Option<unsafe extern "C" fn(*mut Vtab, *mut *mut Cursor) -> c_int>,
    pub(crate) close: Option<unsafe extern "C" fn(*mut Cursor) -> c_int>,
    pub(crate) filter: Option<
        unsafe extern "C" fn(*mut Cursor, c_int, *const c_char, c_int, *mut *mut RawValue) -> c_int,
    >,
    pub(crate) next: Option<unsafe extern "C" fn(*mut Cursor) -> c_int>,
    pub(crate) eof: Option<unsafe extern "C" fn(*mut Cursor) -> c_int>,
    pub(crate) column: Option<unsafe extern "C" fn(*mut Cursor, *mut Context, c_int) -> c_int>,
    pub(crate) rowid: Option<unsafe extern "C" fn(*mut Cursor, *mut i64) -> c_int>,
    pub(crate) update: Absent,
    pub(crate) begin: Absent,
    pub(crate) sync: Absent,
    pub(crate) commit: Absent,
    pub(crate) rollback: Absent,
    pub(crate) find_function: Absent,
    pub(crate) rename: Absent,
    pub(crate) savepoint: Absent,
    pub(crate) release: Absent,
    pub(crate) rollback_to: Absent,
    pub(crate) shadow_name: Absent,
}

/// `sqlite3_vtab`: the head of our table object.
#[repr(C)]
pub(crate) struct Vtab {
    pub(crate) module: *const Module,
    pub(crate) references: c_int,
    pub(crate) error_message: *mut c_char,
}

/// `sqlite3_vtab_cursor`: the head of our cursor object.
#[repr(C)]
pub(crate) struct Cursor {
    pub(crate) vtab: *mut Vtab,
}

/// One WHERE term that SQLite offers to `xBestIndex`.
#[repr(C)]
pub(crate) struct IndexConstraint {
    pub(crate) column: c_int,
    pub(crate) operator: c_uchar,
    pub(crate) usable: c_uchar,
    pub(crate) term_offset: c_int,
}

/// What `xBestIndex` answers about one WHERE term.
#[repr(C)]
pub(crate) struct IndexUsage {
    pub(crate) argument: c_int,
    pub(crate) omit: c_uchar,
}

/// `sqlite3_index_info`, up to the last field of SQLite 3.10.
#[repr(C)]
pub(crate) struct IndexInfo {
    pub(crate) constraint_count: c_int,
    pub(crate) constraints: *const IndexConstraint,
    pub(crate) order_count: c_int,
    pub(crate) order: *const c_void,
    pub(crate) usage: *mut IndexUsage,
    pub(crate) index_number: c_int,
    pub(crate) index_string: *mut c_char,
    pub(crate) free_index_string: c_int,
    pub(crate) order_consumed: c_int,
    pub(crate) estimated_cost: f64,
    pub(crate) estimated_rows: i64,
    pub(crate) index_flags: c_int,
    pub(crate) columns_used: u64,
}

const _: () = {
    const POINTER: usize = size_of::<*const c_void>();
    assert!(offset_of!(Module, create) == POINTER);
    assert!(offset_of!(Module, rowid) == 12 * POINTER);
    assert!(size_of::<Module>() == 24 * POINTER);
    assert!(offset_of!(IndexConstraint, term_offset) == 8);
    assert!(size_of::<IndexConstraint>() == 12);
    assert!(size_of::<IndexUsage>() == 8);
    if POINTER == 8 {
        assert!(offset_of!(IndexInfo, usage) == 32);
        assert!(offset_of!(IndexInfo, index_number) == 40);
        assert!(offset_of!(IndexInfo, free_index_string) == 56);
        assert!(offset_of!(IndexInfo, estimated_cost) == 64);
        assert!(offset_of!(IndexInfo, columns_used) == 88);
    }
};
