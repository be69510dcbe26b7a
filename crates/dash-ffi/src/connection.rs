//! `ConnectionRef`: the connection that an SQL function or a table runs on.

use crate::cell::Way;
use crate::code::{Code, OK};
use crate::error::remember;
use crate::file::File;
use crate::file_calls::Handle;
use crate::guard::guarded;
use crate::name::path;
use crate::op;
use crate::slot::Slot;
use crate::sys::{Connection, RawFile};
use core::ffi::CStr;
use core::marker::PhantomData;
use core::ptr::{NonNull, null_mut};
use std::ffi::CString;
use std::path::PathBuf;

/// A connection, during a callback that runs on it: open, and locked by this thread.
pub struct ConnectionRef<'a> {
    db: NonNull<Connection>,
    pub(crate) slot: &'static Slot,
    /// Neither `Send` nor `Sync`: the lock is this thread's.
    marker: PhantomData<&'a mut Connection>,
}

impl ConnectionRef<'_> {
    /// Wraps a connection; `None` if it is null.
    ///
    /// # Safety
    ///
    /// `db` is null or a connection of the slot's SQLite that, for `'a`, is open and whose mutex
    /// this thread holds.
    pub(crate) unsafe fn new(db: *mut Connection, slot: &'static Slot) -> Option<Self> {
        Some(Self { db: NonNull::new(db)?, slot, marker: PhantomData })
    }

    pub(crate) fn as_ptr(&self) -> *mut Connection {
        self.db.as_ptr()
    }

    /// The number that [`ConnectionHandle::id`](crate::ConnectionHandle::id) has for this
    /// connection.
    #[must_use]
    pub fn id(&self) -> usize {
        self.db.addr().get()
    }

    /// The version of this SQLite, such as 3031000.
    #[must_use]
    pub fn sqlite_version(&self) -> i32 {
        self.slot.api.version()
    }

    /// The path of a database ("main", "temp", or as attached); `None` if there is no such
    /// database, or if it is in memory or temporary.
    #[must_use]
    pub fn path(&self, schema: &str) -> Option<PathBuf> {
        let schema = CString::new(schema).ok()?;
        // SAFETY: an open connection, and a C string.
        let name = unsafe { (self.slot.api.db_filename)(self.as_ptr(), schema.as_ptr()) };
        if name.is_null() {
            return None;
        }
        // SAFETY: SQLite's own name of the database, there while it is attached.
        let name = unsafe { CStr::from_ptr(name) };
        (!name.is_empty()).then(|| path(name).to_path_buf())
    }

    /// Shows the file of a database to `visit`. `None` if there is no such database, if its file is
    /// not one of this extension's (opened through another VFS, or in memory), if a panic has put
    /// it out of use, or if this thread is inside the file already. A panic in `visit` puts the
    /// file out of use.
    pub fn with_file<R>(&self, schema: &str, visit: impl FnOnce(&mut dyn File) -> R) -> Option<R> {
        let schema = CString::new(schema).ok()?;
        let mut file: *mut RawFile = null_mut();
        let argument = (&raw mut file).cast();
        let (api, db) = (self.slot.api, self.as_ptr());
        // SAFETY: an open connection, a C string, and a place for a pointer, as FILE_POINTER wants.
        let code = unsafe { (api.file_control)(db, schema.as_ptr(), op::FILE_POINTER, argument) };
        if code != OK {
            return None;
        }
        // SAFETY: SQLite's own pointer: null, closed (null methods), or open as long as this thread
        // holds the connection.
        let cell = unsafe { Handle::cell(file) }?;
        if !core::ptr::eq(cell.slot, self.slot) {
            return None;
        }
        let visit = || cell.enter(Way::Visit, |file| Ok(visit(file)));
        guarded("a visit to a file", Code::IOERR, visit, |cause| {
            cell.latch(cause);
            remember(cause);
        })
        .ok()
    }
}

impl core::fmt::Debug for ConnectionRef<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ConnectionRef").field("id", &self.id()).finish_non_exhaustive()
    }
}
