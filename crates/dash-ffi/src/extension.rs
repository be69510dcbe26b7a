//! `Extension` and the entry points: how a library gets from SQLite's call to a registered VFS.
//!
//! A loadable library exports one `extern "C"` function per entry and calls [`load`] from it; the
//! function that it hands to SQLite for later connections calls [`load_automatically`]. The two
//! differ in their result: a library must be loaded *permanently* (256), since its VFS outlives the
//! connection, whereas an automatic extension that returns anything but 0 makes every later open
//! fail.
//!
//! ```no_run
//! use core::ffi::{c_char, c_int};
//! use dash_ffi::{ApiRoutines, Connection, Extension};
//!
//! # fn make_vfs(_: &dash_ffi::SlotInfo) -> Box<dyn dash_ffi::Vfs> { unimplemented!() }
//! static EXTENSION: Extension = Extension {
//!     make_vfs,
//!     stands_on: None,
//!     functions: &[],
//!     tables: &[],
//!     capture: |_| None,
//!     without_fork: |work| work(),
//!     automatic: on_every_connection,
//! };
//!
//! #[unsafe(no_mangle)]
//! pub unsafe extern "C" fn sqlite3_example_init(
//!     db: *mut Connection,
//!     error: *mut *mut c_char,
//!     api: *const ApiRoutines,
//! ) -> c_int {
//!     // SAFETY: the arguments are SQLite's own.
//!     unsafe { dash_ffi::load(db, error, api, &EXTENSION, false) }
//! }
//!
//! unsafe extern "C" fn on_every_connection(
//!     db: *mut Connection,
//!     error: *mut *mut c_char,
//!     api: *const ApiRoutines,
//! ) -> c_int {
//!     // SAFETY: the arguments are SQLite's own.
//!     unsafe { dash_ffi::load_automatically(db, error, api, &EXTENSION) }
//! }
//! ```
//!
//! A Rust program that links SQLite statically needs no library to load: see [`register_with`].

use crate::capture::{self, Capture};
use crate::code::{Code, OK};
use crate::connection::ConnectionRef;
use crate::error::{Error, Result, remember};
use crate::function::ScalarFunction;
use crate::guard::{guarded, keep_quiet};
use crate::host::HostVfs;
use crate::ours::is_own;
use crate::slot::Slot;
use crate::sys::{ApiRoutines, Connection, EntryPoint, OK_LOAD_PERMANENTLY};
use crate::table::TableFunction;
use crate::vfs::Vfs;
use core::ffi::{CStr, c_char, c_int};
use std::sync::Arc;

/// What a library brings into SQLite.
pub struct Extension {
    /// Makes the VFS, once for each copy of SQLite in the process. It must not open a connection:
    /// the slot that the connection's extensions would look for is being made.
    pub make_vfs: fn(&SlotInfo) -> Box<dyn Vfs>,
    /// On which VFS that one stands, if SQLite has it: this one and its kind, such as `unix` and
    /// `unix-excl`, before a default one that somebody has put over them. What that adds would
    /// reach a part of the files only, where the VFS does I/O of its own.
    pub stands_on: Option<&'static CStr>,
    /// SQL functions, for every connection.
    pub functions: &'static [ScalarFunction],
    /// Table-valued functions, for every connection.
    pub tables: &'static [TableFunction],
    /// Asked of every connection that SQLite has just opened, and whose `main` it has: who is to be
    /// told of its statements, if anybody.
    pub capture: fn(&ConnectionRef<'_>) -> Option<Arc<dyn Capture>>,
    /// Does something short, once, and keeps forks out of it: a child would find a lock held for
    /// ever. Just calls it, where no host forks beside other threads.
    pub without_fork: fn(&mut dyn FnMut()),
    /// What SQLite is to call for each later connection: a function that calls
    /// [`load_automatically`].
    pub automatic: EntryPoint,
}

/// Where a VFS is about to live.
#[derive(Clone, Copy, Debug)]
pub struct SlotInfo {
    host: HostVfs,
    version: i32,
}

impl SlotInfo {
    pub(crate) fn new(host: HostVfs, version: i32) -> Self {
        Self { host, version }
    }

    /// The VFS that ours stands on.
    #[must_use]
    pub fn host(&self) -> HostVfs {
        self.host
    }

    /// The version of this SQLite, such as 3031000.
    #[must_use]
    pub fn sqlite_version(&self) -> i32 {
        self.version
    }
}

/// Loads an extension: registers its VFS (as the default one, if `default` says so), arranges for
/// its functions and tables on every later connection, and adds them to `db` unless that is null.
/// May be called any number of times. After `sqlite3_shutdown` it must be: SQLite then has
/// forgotten its automatic extensions, and makes its own VFS the default again.
///
/// Returns `SQLITE_OK_LOAD_PERMANENTLY` (256), or an error code with a message in `*error`.
///
/// # Safety
///
/// The three pointers are those that SQLite passes to an entry point: `db` null or an open
/// connection, `error` null or a place for a message, `api` null or SQLite's table of routines.
pub unsafe fn load(
    db: *mut Connection,
    error: *mut *mut c_char,
    api: *const ApiRoutines,
    extension: &'static Extension,
    default: bool,
) -> c_int {
    // SAFETY: as the caller states.
    unsafe { enter(db, error, api, extension, Mode::Loaded { default }) }
}

/// Adds an extension to a connection that SQLite has just opened; registers its VFS if that has not
/// been done. Returns 0, or an error code with a message in `*error`, which makes the open fail.
///
/// # Safety
///
/// As for [`load`].
pub unsafe fn load_automatically(
    db: *mut Connection,
    error: *mut *mut c_char,
    api: *const ApiRoutines,
    extension: &'static Extension,
) -> c_int {
    // SAFETY: as the caller states.
    unsafe { enter(db, error, api, extension, Mode::Automatic) }
}

/// `sqlite3_auto_extension` as some Rust binding declares it: the names of the types differ between
/// bindings and their versions, what the function does and how it is called does not.
pub type AutoExtension<Db, Message, Api> = unsafe extern "C" fn(
    Option<unsafe extern "C" fn(*mut Db, *mut Message, *const Api) -> c_int>,
) -> c_int;

/// Registers an extension in an SQLite that the program itself links, through that binding's own
/// `sqlite3_auto_extension`: no version of the binding is named, so none is pinned, and no symbol
/// of SQLite's is needed here.
///
/// `entry` is [`Extension::automatic`]. SQLite calls it, with its table of routines, when the
/// *next* connection is opened, and that is when the VFS is registered: open a scratch connection
/// (`:memory:`) before the first one that names the VFS.
///
/// ```ignore
/// // SAFETY: this is sqlite3_auto_extension.
/// unsafe { dash_ffi::register_with(rusqlite::ffi::sqlite3_auto_extension, EXTENSION.automatic) }?;
/// drop(rusqlite::Connection::open_in_memory()?);
/// let db = rusqlite::Connection::open("file:app.db?vfs=dash")?;
/// ```
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
    entry: EntryPoint,
) -> Result<()> {
    type Entry<Db, Message, Api> = unsafe extern "C" fn(*mut Db, *mut Message, *const Api) -> c_int;
    // SAFETY: both types are pointers to the same C function: three object pointers in, an int out.
    // Only the names of what they point to differ.
    let entry = unsafe { core::mem::transmute::<EntryPoint, Entry<Db, Message, Api>>(entry) };
    // SAFETY: as the caller states.
    Error::check(unsafe { auto_extension(Some(entry)) })
}

/// How an entry point was reached.
#[derive(Clone, Copy)]
enum Mode {
    Loaded { default: bool },
    Automatic,
}

/// # Safety
///
/// As for [`load`].
unsafe fn enter(
    db: *mut Connection,
    error: *mut *mut c_char,
    api: *const ApiRoutines,
    extension: &'static Extension,
    mode: Mode,
) -> c_int {
    keep_quiet();
    let attach = || {
        // SAFETY: as the caller states.
        let slot = match unsafe { Slot::obtain(api, extension) } {
            Ok(slot) => slot?,
            Err(unusable) => return Ok(Err(unusable.message())),
        };
        // SAFETY: as the caller states.
        unsafe { attach(slot, db, mode) }.map(Ok)
    };
    let (code, message) = match guarded("loading the extension", Code::ERROR, attach, |_| ()) {
        Ok(Ok(())) => {
            return match mode {
                Mode::Loaded { .. } => OK_LOAD_PERMANENTLY,
                Mode::Automatic => OK,
            };
        }
        Ok(Err(message)) => (Code::ERROR, message),
        Err(failure) => {
            let text = failure.to_string();
            remember(&text);
            // SAFETY: the table was good enough to get here.
            let message = unsafe { crate::api::Api::copy(api) }
                .map_or(core::ptr::null_mut(), |api| api.allocate(&text));
            (failure.code, message)
        }
    };
    if !error.is_null() {
        // SAFETY: a place for a message, as the caller states; SQLite frees it.
        unsafe { error.write(message) };
    }
    code.raw()
}

/// Registers everything of a slot.
///
/// # Errors
///
/// SQLite's own codes, with a message.
///
/// # Safety
///
/// `db` is null or an open connection of the slot's SQLite, locked by this thread.
unsafe fn attach(slot: &'static Slot, db: *mut Connection, mode: Mode) -> Result<()> {
    slot.register(matches!(mode, Mode::Loaded { default: true }))?;
    if let Mode::Loaded { .. } = mode {
        // SAFETY: an entry point, as whoever wrote the extension states; adding it twice does
        // nothing.
        Error::check(unsafe { (slot.api.auto_extension)(Some(slot.extension.automatic)) })?;
    }
    if is_own() {
        return Ok(());
    }
    // SAFETY: as the caller states.
    let Some(connection) = (unsafe { ConnectionRef::new(db, slot) }) else {
        return Ok(());
    };
    for function in slot.extension.functions {
        function.register(&connection)?;
    }
    for table in slot.extension.tables {
        table.register(&connection)?;
    }
    // A host may have set its own hook on a connection that was there before.
    if let (Mode::Automatic, Some(capture)) = (mode, (slot.extension.capture)(&connection)) {
        // SAFETY: just opened, as the caller states: SQLite calls automatic extensions then.
        unsafe { capture::install(slot, db, capture) };
    }
    Ok(())
}
