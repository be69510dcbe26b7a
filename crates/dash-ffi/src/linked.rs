//! The table of the SQLite that the tests of this crate link.

use crate::api::Api;
use crate::host::HostVfs;
use crate::sys::{ApiRoutines, Connection};
use core::ffi::{c_char, c_int};
use core::sync::atomic::{AtomicPtr, Ordering};

static TABLE: AtomicPtr<ApiRoutines> = AtomicPtr::new(core::ptr::null_mut());

unsafe extern "C" fn keep(
    _: *mut Connection,
    _: *mut *mut c_char,
    table: *const ApiRoutines,
) -> c_int {
    TABLE.store(table.cast_mut(), Ordering::Relaxed);
    0
}

/// That table.
pub(crate) fn table() -> *const ApiRoutines {
    // SAFETY: this is sqlite3_auto_extension.
    unsafe { crate::register_with(rusqlite::ffi::sqlite3_auto_extension, keep) }.unwrap();
    drop(rusqlite::Connection::open_in_memory().unwrap());
    TABLE.load(Ordering::Relaxed)
}

/// Asserts that a copied routine is the function that the linker knows by that name.
macro_rules! same {
    ($api:ident: $($name:ident is $function:ident,)*) => {$(
        assert_eq!(
            $api.$name as *const core::ffi::c_void,
            rusqlite::ffi::$function as *const core::ffi::c_void,
            stringify!($name)
        );
    )*};
}
pub(crate) use same;

/// The SQLite that the tests link, as a host.
pub(crate) fn host() -> HostVfs {
    // SAFETY: SQLite's own table.
    let api = unsafe { Api::copy(table()) }.map_err(|_| "unusable").unwrap();
    let api: &'static Api = Box::leak(Box::new(api));
    // SAFETY: null asks for the default VFS, which stays.
    let vfs = unsafe { (api.vfs_find)(core::ptr::null()) };
    // SAFETY: just found there.
    unsafe { HostVfs::new(core::ptr::NonNull::new(vfs).unwrap(), api) }
}
