//! The entry points: what SQLite calls when it loads the library, and what a Rust program
//! registers.
//!
//! | entry | who calls it |
//! |---|---|
//! | `sqlite3_dash_init`, `sqlite3_extension_init` | `load_extension('libdash')`, under whatever name the file has |
//! | `sqlite3_extension_init` of a file called `libdashdefault…` | a host that can name no entry: also makes dash the default VFS |
//! | `sqlite3_dashdefault_init` | `load_extension('libdash', 'sqlite3_dashdefault_init')`: also makes dash the default VFS |
//! | [`automatic`] | SQLite, for every connection opened later |
//!
//! They may be called with a null connection, any number of times, also after `sqlite3_shutdown`.
//! Nothing else is exported from the library.

#![expect(unsafe_code, reason = "C calls these functions by their names")]

use core::ffi::{c_char, c_int, c_void};

use dash_ffi::{ApiRoutines, AutoExtension, Connection, EntryPoint, Extension, Result};
use dash_storage::real;

use crate::{functions, statements, tables, vfs};

/// What the library brings into each SQLite of the process.
static EXTENSION: Extension = Extension {
    make_vfs: vfs::make,
    stands_on: Some(c"unix"),
    functions: functions::ALL,
    tables: tables::ALL,
    capture: statements::capture,
    without_fork: |work| real::without_fork(work),
    automatic,
};

/// Registers the VFS `dash`, and its functions and tables on this and every later connection.
///
/// # Safety
///
/// Called by SQLite, with the arguments that an extension's entry point gets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_dash_init(
    db: *mut Connection,
    error: *mut *mut c_char,
    api: *const ApiRoutines,
) -> c_int {
    // SAFETY: the arguments are SQLite's own.
    unsafe { dash_ffi::load(db, error, api, &EXTENSION, false) }
}

/// [`sqlite3_dash_init`] under the name that fits a library file of any name; and
/// [`sqlite3_dashdefault_init`] in a file whose name says so, for hosts that name a file and no
/// entry. The name is the one under which the process loaded the file first.
///
/// # Safety
///
/// As for [`sqlite3_dash_init`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_extension_init(
    db: *mut Connection,
    error: *mut *mut c_char,
    api: *const ApiRoutines,
) -> c_int {
    let name = dash_ffi::file_name_of(sqlite3_extension_init as *const c_void);
    let default = name.is_some_and(|name| name.starts_with(b"libdashdefault."));
    // SAFETY: the arguments are SQLite's own.
    unsafe { dash_ffi::load(db, error, api, &EXTENSION, default) }
}

/// As [`sqlite3_dash_init`], and makes dash the default VFS, each time it is called: for hosts that
/// can't name a VFS when they open a database.
///
/// # Safety
///
/// As for [`sqlite3_dash_init`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_dashdefault_init(
    db: *mut Connection,
    error: *mut *mut c_char,
    api: *const ApiRoutines,
) -> c_int {
    // SAFETY: the arguments are SQLite's own.
    unsafe { dash_ffi::load(db, error, api, &EXTENSION, true) }
}

/// What SQLite calls for every connection that is opened after dash was registered; returns 0, as
/// an automatic extension must.
///
/// # Safety
///
/// As for [`sqlite3_dash_init`].
pub unsafe extern "C" fn automatic(
    db: *mut Connection,
    error: *mut *mut c_char,
    api: *const ApiRoutines,
) -> c_int {
    // SAFETY: the arguments are SQLite's own.
    unsafe { dash_ffi::load_automatically(db, error, api, &EXTENSION) }
}

/// Registers dash in an SQLite that the program itself links, whatever binding it uses: pass the
/// binding's own `sqlite3_auto_extension`. No version of `libsqlite3-sys` is pinned by this.
///
/// SQLite calls dash when the *next* connection is opened, and that is when the VFS appears: open a
/// scratch connection before the first one that names it. For rusqlite,
/// [`register!`](crate::register) does both.
///
/// # Errors
///
/// SQLite's own code, such as `SQLITE_NOMEM`.
///
/// # Safety
///
/// `auto_extension` is the function `sqlite3_auto_extension` of some SQLite.
pub unsafe fn register_with<Db, Message, Api>(
    auto_extension: AutoExtension<Db, Message, Api>,
) -> Result<()> {
    // SAFETY: as the caller states; `automatic` is an entry point.
    unsafe { dash_ffi::register_with(auto_extension, automatic as EntryPoint) }
}

/// Registers dash with the given `rusqlite` crate, of any version, and opens a scratch connection
/// so that the VFS is there. May be used any number of times.
#[macro_export]
macro_rules! register {
    ($rusqlite:ident) => {
        // SAFETY: this is the `sqlite3_auto_extension` of the SQLite that this rusqlite links.
        unsafe { $crate::register_with($rusqlite::ffi::sqlite3_auto_extension) }
            .map_err(|error| error.to_string())
            .and_then(|()| {
                $rusqlite::Connection::open_in_memory().map(drop).map_err(|error| error.to_string())
            })
    };
}
