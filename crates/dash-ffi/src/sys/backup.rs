//! `sqlite3_backup`, and what else a copy of a database needs of SQLite.

use super::{Connection, Opaque};
use core::ffi::{c_char, c_int, c_void};

/// `sqlite3_backup`: a copy that is under way.
#[repr(C)]
pub(crate) struct Backup {
    bytes: [u8; 0],
    marker: Opaque,
}

/// `sqlite3_backup_init`: to a connection's database, from another one's.
pub(crate) type BackupInit = unsafe extern "C" fn(
    *mut Connection,
    *const c_char,
    *mut Connection,
    *const c_char,
) -> *mut Backup;

/// What `sqlite3_progress_handler` calls; anything but 0 interrupts the statement.
pub(crate) type ProgressCall = unsafe extern "C" fn(*mut c_void) -> c_int;
/// `sqlite3_progress_handler`, which an SQLite may be built without.
pub(crate) type ProgressHandler =
    unsafe extern "C" fn(*mut Connection, c_int, Option<ProgressCall>, *mut c_void);

/// `SQLITE_DONE`.
pub(crate) const DONE: c_int = 101;
