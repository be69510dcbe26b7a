//! `sqlite3_vfs`, `sqlite3_file` and `sqlite3_io_methods`, all of their version 3.
//!
//! Invariant: of a host's structure no field is read that its `iVersion` does not have.

use core::ffi::{c_char, c_int, c_void};
use core::mem::{offset_of, size_of};

/// A system call in the table behind `xSetSystemCall`.
pub(crate) type SystemCall = Option<unsafe extern "C" fn()>;

/// `sqlite3_file`: the head of every file handle.
#[repr(C)]
pub(crate) struct RawFile {
    pub(crate) methods: *const IoMethods,
}

/// `sqlite3_vfs`. Field order and names are sqlite3.h's.
#[repr(C)]
pub(crate) struct RawVfs {
    pub(crate) version: c_int,
    pub(crate) file_size: c_int,
    pub(crate) max_pathname: c_int,
    pub(crate) next: *mut RawVfs,
    pub(crate) name: *const c_char,
    pub(crate) app_data: *mut c_void,
    pub(crate) open: Option<
        unsafe extern "C" fn(*mut RawVfs, *const c_char, *mut RawFile, c_int, *mut c_int) -> c_int,
    >,
    pub(crate) delete: Option<unsafe extern "C" fn(*mut RawVfs, *const c_char, c_int) -> c_int>,
    pub(crate) access:
        Option<unsafe extern "C" fn(*mut RawVfs, *const c_char, c_int, *mut c_int) -> c_int>,
    pub(crate) full_pathname:
        Option<unsafe extern "C" fn(*mut RawVfs, *const c_char, c_int, *mut c_char) -> c_int>,
    pub(crate) dl_open: Option<unsafe extern "C" fn(*mut RawVfs, *const c_char) -> *mut c_void>,
    pub(crate) dl_error: Option<unsafe extern "C" fn(*mut RawVfs, c_int, *mut c_char)>,
    pub(crate) dl_sym:
        Option<unsafe extern "C" fn(*mut RawVfs, *mut c_void, *const c_char) -> SystemCall>,
    pub(crate) dl_close: Option<unsafe extern "C" fn(*mut RawVfs, *mut c_void)>,
    pub(crate) randomness: Option<unsafe extern "C" fn(*mut RawVfs, c_int, *mut c_char) -> c_int>,
    pub(crate) sleep: Option<unsafe extern "C" fn(*mut RawVfs, c_int) -> c_int>,
    pub(crate) current_time: Option<unsafe extern "C" fn(*mut RawVfs, *mut f64) -> c_int>,
    pub(crate) get_last_error:
        Option<unsafe extern "C" fn(*mut RawVfs, c_int, *mut c_char) -> c_int>,
    // Version 2.
    pub(crate) current_time_int64: Option<unsafe extern "C" fn(*mut RawVfs, *mut i64) -> c_int>,
    // Version 3.
    pub(crate) set_system_call:
        Option<unsafe extern "C" fn(*mut RawVfs, *const c_char, SystemCall) -> c_int>,
    pub(crate) get_system_call:
        Option<unsafe extern "C" fn(*mut RawVfs, *const c_char) -> SystemCall>,
    pub(crate) next_system_call:
        Option<unsafe extern "C" fn(*mut RawVfs, *const c_char) -> *const c_char>,
}

/// `sqlite3_io_methods`. Field order is sqlite3.h's.
#[repr(C)]
pub(crate) struct IoMethods {
    pub(crate) version: c_int,
    pub(crate) close: Option<unsafe extern "C" fn(*mut RawFile) -> c_int>,
    pub(crate) read: Option<unsafe extern "C" fn(*mut RawFile, *mut c_void, c_int, i64) -> c_int>,
    pub(crate) write:
        Option<unsafe extern "C" fn(*mut RawFile, *const c_void, c_int, i64) -> c_int>,
    pub(crate) truncate: Option<unsafe extern "C" fn(*mut RawFile, i64) -> c_int>,
    pub(crate) sync: Option<unsafe extern "C" fn(*mut RawFile, c_int) -> c_int>,
    pub(crate) file_size: Option<unsafe extern "C" fn(*mut RawFile, *mut i64) -> c_int>,
    pub(crate) lock: Option<unsafe extern "C" fn(*mut RawFile, c_int) -> c_int>,
    pub(crate) unlock: Option<unsafe extern "C" fn(*mut RawFile, c_int) -> c_int>,
    pub(crate) check_reserved_lock: Option<unsafe extern "C" fn(*mut RawFile, *mut c_int) -> c_int>,
    pub(crate) file_control:
        Option<unsafe extern "C" fn(*mut RawFile, c_int, *mut c_void) -> c_int>,
    pub(crate) sector_size: Option<unsafe extern "C" fn(*mut RawFile) -> c_int>,
    pub(crate) device_characteristics: Option<unsafe extern "C" fn(*mut RawFile) -> c_int>,
    // Version 2.
    pub(crate) shm_map:
        Option<unsafe extern "C" fn(*mut RawFile, c_int, c_int, c_int, *mut *mut c_void) -> c_int>,
    pub(crate) shm_lock: Option<unsafe extern "C" fn(*mut RawFile, c_int, c_int, c_int) -> c_int>,
    pub(crate) shm_barrier: Option<unsafe extern "C" fn(*mut RawFile)>,
    pub(crate) shm_unmap: Option<unsafe extern "C" fn(*mut RawFile, c_int) -> c_int>,
    // Version 3.
    pub(crate) fetch:
        Option<unsafe extern "C" fn(*mut RawFile, i64, c_int, *mut *mut c_void) -> c_int>,
    pub(crate) unfetch: Option<unsafe extern "C" fn(*mut RawFile, i64, *mut c_void) -> c_int>,
}

const _: () = {
    const POINTER: usize = size_of::<*const c_void>();
    const INT: usize = size_of::<c_int>();
    // Three ints, then pointers: the first of them is aligned.
    const HEAD: usize = (3 * INT).next_multiple_of(POINTER);
    assert!(offset_of!(RawVfs, next) == HEAD);
    assert!(offset_of!(RawVfs, open) == HEAD + 3 * POINTER);
    assert!(offset_of!(RawVfs, current_time_int64) == HEAD + 15 * POINTER);
    assert!(size_of::<RawVfs>() == HEAD + 19 * POINTER);

    assert!(offset_of!(IoMethods, close) == POINTER);
    assert!(offset_of!(IoMethods, shm_map) == 13 * POINTER);
    assert!(offset_of!(IoMethods, fetch) == 17 * POINTER);
    assert!(size_of::<IoMethods>() == 19 * POINTER);
};
