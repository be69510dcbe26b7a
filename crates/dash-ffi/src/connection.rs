//! `ConnectionRef`: the connection that an SQL function or a table runs on. `ConnectionHandle` and
//! `KeptConnection`: the one that a file belongs to.

use crate::cell::{Door, FileCell, Gate, Way};
use crate::code::{Code, OK};
use crate::control_calls::Sought;
use crate::error::{Error, Result, remember};
use crate::file::File;
use crate::file_calls::Handle;
use crate::guard::guarded;
use crate::name::path;
use crate::op;
use crate::rows::{Texts, keep, keep_all};
use crate::slot::Slot;
use crate::sys::{Connection, RawFile};
use core::ffi::{CStr, c_int, c_void};
use core::marker::PhantomData;
use core::ptr::{NonNull, null_mut};
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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

    /// The value of a parameter in the URI that a database was opened by; `None`: it has none, or
    /// the database is in memory or temporary.
    #[must_use]
    pub fn uri_parameter(&self, schema: &str, key: &str) -> Option<String> {
        let (schema, key) = (CString::new(schema).ok()?, CString::new(key).ok()?);
        // SAFETY: an open connection, and a C string.
        let name = unsafe { (self.slot.api.db_filename)(self.as_ptr(), schema.as_ptr()) };
        // SAFETY: where it is not null, SQLite's own name of a database, there while it is
        // attached.
        if name.is_null() || unsafe { CStr::from_ptr(name) }.is_empty() {
            return None;
        }
        // SAFETY: such a name is what the routine asks for, and the key is a C string.
        let value = unsafe { (self.slot.api.uri_parameter)(name, key.as_ptr()) };
        // SAFETY: null, or a C string inside the name's own memory.
        (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) }.to_string_lossy().into_owned())
    }

    /// Whether a database can only be read, however that was asked for or came about.
    #[must_use]
    pub fn is_read_only(&self, schema: &str) -> bool {
        let Ok(schema) = CString::new(schema) else { return false };
        // SAFETY: an open connection, and a C string.
        unsafe { (self.slot.api.db_readonly)(self.as_ptr(), schema.as_ptr()) == 1 }
    }

    /// The files that the transaction in hand writes, in the order in which SQLite commits them. An
    /// SQLite before 3.39 tells that of `main` only, and one before 3.34 takes a `main` that can be
    /// written for one that is.
    #[must_use]
    pub fn files_written(&self) -> Vec<PathBuf> {
        let (api, db) = (self.slot.api, self.as_ptr());
        let written = |schema: &CStr| {
            let schema = schema.as_ptr();
            // SAFETY: an open connection that this thread holds, and a C string.
            let name = unsafe { (api.db_filename)(db, schema) };
            if name.is_null() {
                return None;
            }
            // SAFETY: SQLite's own name of the database, there while it is attached.
            let name = unsafe { CStr::from_ptr(name) };
            // SAFETY: as above.
            let is_written = || unsafe {
                api.is_written(db, schema).unwrap_or_else(|| (api.db_readonly)(db, schema) == 0)
            };
            let is_file = !name.is_empty() && is_written();
            is_file.then(|| path(name).to_path_buf())
        };
        written(c"main").into_iter().chain(self.attached().filter_map(written)).collect()
    }

    /// The names of the attached databases. An SQLite before 3.39 tells none.
    pub(crate) fn attached(&self) -> impl Iterator<Item = &CStr> {
        // 0 is `main`, 1 is `temp`.
        (2..)
            // SAFETY: an open connection that this thread holds.
            .map(|number| unsafe { self.slot.api.db_name(self.as_ptr(), number) })
            .take_while(|schema| !schema.is_null())
            // SAFETY: not null, so SQLite's own name of a database, there while it is attached.
            .map(|schema| unsafe { CStr::from_ptr(schema) })
    }

    /// Whether the database at `own` is `main`, and none is attached.
    pub(crate) fn has_only(&self, own: &Path) -> bool {
        let (api, db) = (self.slot.api, self.as_ptr());
        // SAFETY: an open connection that this thread holds. 1 is `temp`, and always there.
        let [temp, more] = [1, 2].map(|number| unsafe { api.db_name(db, number) });
        !temp.is_null() && more.is_null() && self.path("main").as_deref() == Some(own)
    }

    /// Whether the database at `own` is the copy that `VACUUM INTO` makes: `vacuum.c` attaches it
    /// as `vacuum_db`, and since 3.44 as `vacuum_` with a random number.
    #[must_use]
    pub fn vacuums_into(&self, own: &Path) -> bool {
        let is_own = |schema: &CStr| {
            // SAFETY: an open connection that this thread holds, and a C string.
            let name = unsafe { (self.slot.api.db_filename)(self.as_ptr(), schema.as_ptr()) };
            // SAFETY: where it is not null, SQLite's own name of the database, there while it is
            // attached.
            !name.is_null() && path(unsafe { CStr::from_ptr(name) }) == own
        };
        let is_of_vacuum = |schema: &CStr| schema.to_bytes().starts_with(b"vacuum_");
        is_own(c"vacuum_db") || self.attached().any(|name| is_of_vacuum(name) && is_own(name))
    }

    /// The name of the database that a file is of.
    pub(crate) fn schema_of(&self, file: *mut RawFile) -> Option<String> {
        let (api, db) = (self.slot.api, self.as_ptr());
        let is_its = |schema: &CStr| {
            let mut found: *mut RawFile = null_mut();
            let place = (&raw mut found).cast();
            // SAFETY: as in `with_file`.
            let code = unsafe { (api.file_control)(db, schema.as_ptr(), op::FILE_POINTER, place) };
            code == OK && core::ptr::eq(found, file)
        };
        if is_its(c"main") {
            return Some("main".to_owned());
        }
        let its = self.attached().find(|schema| is_its(schema));
        its.map(|schema| schema.to_string_lossy().into_owned())
    }

    /// Whether a transaction that writes a database is open on it. `None` in an SQLite before 3.34,
    /// which can't tell.
    #[must_use]
    pub fn is_written(&self, schema: &str) -> Option<bool> {
        let schema = CString::new(schema).ok()?;
        // SAFETY: an open connection that this thread holds, and a C string.
        unsafe { self.slot.api.is_written(self.as_ptr(), schema.as_ptr()) }
    }

    /// Whether the statement that runs may go on: for work that takes long.
    ///
    /// # Errors
    ///
    /// `SQLITE_INTERRUPT`, if `sqlite3_interrupt` was called.
    pub fn may_go_on(&self) -> Result<()> {
        // `sqlite3_is_interrupted` is there since 3.41 only; any statement looks at the same flag.
        self.run("SELECT 1")
    }

    /// Runs statements on it.
    ///
    /// # Errors
    ///
    /// SQLite's code and message.
    pub(crate) fn run(&self, sql: &str) -> Result<()> {
        let sql = CString::new(sql).map_err(|_| Code::MISUSE)?;
        let (api, db) = (self.slot.api, self.as_ptr());
        // SAFETY: an open connection and a C string; no callback, no message wanted.
        let code = unsafe { (api.exec)(db, sql.as_ptr(), None, null_mut(), null_mut()) };
        let Some(code) = Code::from_raw(code) else {
            return Ok(());
        };
        // SAFETY: an open connection; its message is a C string that stays until the next call.
        let text = unsafe { CStr::from_ptr((api.errmsg)(db)) };
        Err(Error::new(code, text.to_string_lossy()))
    }

    /// What a PRAGMA answers for a database, as text; `None`: nothing, or an error.
    #[must_use]
    pub fn pragma(&self, schema: &str, name: &str) -> Option<String> {
        let sql = format!("PRAGMA \"{}\".{name}", schema.replace('"', "\"\""));
        let sql = CString::new(sql).ok()?;
        let mut answers: Vec<String> = Vec::new();
        let (api, db, place) = (self.slot.api, self.as_ptr(), (&raw mut answers).cast());
        // SAFETY: an open connection and a C string; `keep` gets its place, which outlives
        // the call. No message is wanted.
        let code = unsafe { (api.exec)(db, sql.as_ptr(), Some(keep), place, null_mut()) };
        answers.pop().filter(|_| code == OK)
    }

    /// The rows that a query answers, each value as a text; none where it fails.
    #[must_use]
    pub fn texts(&self, sql: &str) -> Vec<Vec<Option<Vec<u8>>>> {
        let mut rows: Vec<Texts> = Vec::new();
        let Ok(sql) = CString::new(sql) else { return rows };
        let (api, db, place) = (self.slot.api, self.as_ptr(), (&raw mut rows).cast());
        // SAFETY: an open connection and a C string; `keep_all` gets its place, which outlives the
        // call. No message is wanted.
        let code = unsafe { (api.exec)(db, sql.as_ptr(), Some(keep_all), place, null_mut()) };
        if code == OK { rows } else { Vec::new() }
    }

    /// Shows the file of a database to `visit`. `None` if there is no such database, if its file is
    /// not one of this extension's (opened through another VFS, or in memory), if a panic has put
    /// it out of use, or if this thread is inside the file already. A panic in `visit` puts the
    /// file out of use.
    pub fn with_file<R>(&self, schema: &str, visit: impl FnOnce(&mut dyn File) -> R) -> Option<R> {
        let mut file: *mut RawFile = null_mut();
        // SAFETY: a place for a pointer, as FILE_POINTER wants.
        unsafe { self.control(schema, op::FILE_POINTER, (&raw mut file).cast()) }?;
        self.visit(file, visit)
    }

    /// The same, also below another VFS: what SQLite reads and writes need not be what this does.
    pub fn with_file_below<R>(
        &self,
        schema: &str,
        visit: impl FnOnce(&mut dyn File) -> R,
    ) -> Option<R> {
        let mut sought = Sought { slot: self.slot, file: null_mut() };
        // SAFETY: that is what FILE_BELOW wants.
        unsafe { self.control(schema, op::FILE_BELOW, (&raw mut sought).cast()) }?;
        self.visit(sought.file, visit)
    }

    /// Whether a database's path leads to another file by now; `None` if its VFS does not tell.
    #[must_use]
    pub fn has_moved(&self, schema: &str) -> Option<bool> {
        let mut moved: c_int = 1;
        let place = (&raw mut moved).cast();
        // SAFETY: a place for a number, as HAS_MOVED wants.
        unsafe { self.control(schema, op::HAS_MOVED, place) }.map(|()| moved != 0)
    }

    /// # Safety
    ///
    /// `argument` is what `op` wants.
    unsafe fn control(&self, schema: &str, op: c_int, argument: *mut c_void) -> Option<()> {
        let schema = CString::new(schema).ok()?;
        // SAFETY: an open connection, a C string, and the rest as the caller states.
        let code =
            unsafe { (self.slot.api.file_control)(self.as_ptr(), schema.as_ptr(), op, argument) };
        (code == OK).then_some(())
    }

    fn visit<R>(&self, file: *mut RawFile, visit: impl FnOnce(&mut dyn File) -> R) -> Option<R> {
        // SAFETY: SQLite's own pointer, or one that a file of ours gave: null, closed (null
        // methods), or open as long as this thread holds the connection.
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

/// The connection behind a file: its number is that of
/// [`ConnectionRef::id`](crate::ConnectionRef::id).
pub struct ConnectionHandle<'a> {
    raw: *mut *mut Connection,
    id: usize,
    cell: &'a FileCell,
}

impl<'a> ConnectionHandle<'a> {
    /// # Safety
    ///
    /// `raw` points to the pointer of a connection, as the b-tree of the file in `cell` passes it.
    pub(crate) unsafe fn new(raw: *mut *mut Connection, cell: &'a FileCell) -> Self {
        // SAFETY: as the caller states.
        let id = unsafe { *raw }.addr();
        Self { raw, id, cell }
    }

    /// The connection, for later callbacks of the file.
    #[must_use]
    pub fn keep(&self) -> KeptConnection {
        KeptConnection { raw: self.cell.connection(), gate: self.cell.gate(), slot: self.cell.slot }
    }

    /// A number that no other connection of the process has while this one is open.
    #[must_use]
    pub const fn id(&self) -> usize {
        self.id
    }

    pub(crate) fn raw(&self) -> *mut c_void {
        self.raw.cast()
    }
}

impl core::fmt::Debug for ConnectionHandle<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ConnectionHandle").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The connection that opened a file; of a shared cache, the one that is calling.
#[derive(Clone)]
pub struct KeptConnection {
    /// Where the b-tree has it: there while the file is open.
    raw: *mut *mut Connection,
    gate: Arc<Gate>,
    slot: &'static Slot,
}

// SAFETY: the pointer is used only by the thread that is inside a callback of the file (see
// `visit`).
unsafe impl Send for KeptConnection {}

impl KeptConnection {
    /// Shows the connection to `visit`; `None` outside a callback of the file, or of one that
    /// shares its door.
    pub fn visit<R>(&self, visit: impl FnOnce(&ConnectionRef<'_>) -> R) -> Option<R> {
        if self.raw.is_null() || !self.gate.in_callback() {
            return None;
        }
        // SAFETY: this thread is inside a callback of the file, or of one that is open only while
        // the file is: so its b-tree is there, has said who is calling, and this thread holds that
        // connection.
        let connection = unsafe { ConnectionRef::new(*self.raw, self.slot) }?;
        Some(visit(&connection))
    }

    /// The door of the file, for a log that is to share it.
    #[must_use]
    pub fn door(&self) -> Door {
        Door(Arc::clone(&self.gate))
    }
}

impl core::fmt::Debug for KeptConnection {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("KeptConnection").finish_non_exhaustive()
    }
}
