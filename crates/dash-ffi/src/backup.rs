//! `Snapshot`: one state of a database of the user's own connection, held while its pages are
//! copied (`sqlite3_backup`) into a file that a connection of dash's own has open.
//!
//! `sqlite3_backup_step` lets go of the source between two steps, and begins anew when somebody has
//! committed. So a statement is kept in the middle of its only row meanwhile, which keeps the read
//! transaction that it began, or that the user began before.

use crate::code::{Code, OK};
use crate::connection::ConnectionRef;
use crate::error::{Error, Result};
use crate::flags::OpenFlags;
use crate::guard::guarded;
use crate::nested::Nested;
use crate::rows::keep;
use crate::sys::backup::{Backup, DONE};
use crate::sys::statement::{ROW, RawStatement};
use core::ffi::{CStr, c_int, c_void};
use core::ptr::null_mut;
use std::ffi::CString;
use std::path::Path;

/// Bytes that are copied between two looks whether to go on.
const STEP: u32 = 1 << 20;

/// Instructions of SQLite's between two looks whether a check is to go on.
const INSTRUCTIONS: c_int = 10_000;

/// One state of a database, until this is dropped: a read transaction.
pub struct Snapshot<'a> {
    connection: &'a ConnectionRef<'a>,
    schema: CString,
    statement: *mut RawStatement,
}

impl<'a> ConnectionRef<'a> {
    /// Holds the present state of a database, or that which an open transaction sees.
    ///
    /// # Errors
    ///
    /// SQLite's code and message, such as `SQLITE_BUSY`.
    pub fn snapshot(&'a self, schema: &str) -> Result<Snapshot<'a>> {
        let sql = format!("SELECT count(*) FROM \"{}\".sqlite_master", schema.replace('"', "\"\""));
        let (sql, schema) = (CString::new(sql), CString::new(schema));
        let (Ok(sql), Ok(schema)) = (sql, schema) else {
            return Err(Code::MISUSE.into());
        };
        let (api, db) = (self.slot.api, self.as_ptr());
        let mut statement = null_mut();
        // SAFETY: an open connection that this thread holds, a C string and a place for the
        // statement.
        let code =
            unsafe { (api.prepare_v2)(db, sql.as_ptr(), -1, &raw mut statement, null_mut()) };
        self.check(code)?;
        let snapshot = Snapshot { connection: self, schema, statement };
        // SAFETY: a statement of that connection.
        match unsafe { (api.step)(statement) } {
            ROW => Ok(snapshot),
            code => Err(self.failure(code)),
        }
    }

    fn check(&self, code: c_int) -> Result<()> {
        if code == OK { Ok(()) } else { Err(self.failure(code)) }
    }

    /// The error of a call that failed on it.
    fn failure(&self, code: c_int) -> Error {
        // SAFETY: an open connection; its message is a C string that stays until the next call.
        let text = unsafe { CStr::from_ptr((self.slot.api.errmsg)(self.as_ptr())) };
        Error::new(Code::from_raw(code).unwrap_or(Code::INTERNAL), text.to_string_lossy())
    }

    /// What a statement answers, its first column as text, on the database at `path`, opened
    /// through `vfs` in a connection of its own. Whoever interrupts this connection interrupts it.
    ///
    /// # Errors
    ///
    /// `SQLITE_INTERRUPT`; SQLite's code and message.
    pub fn ask_elsewhere(&self, path: &Path, vfs: &CStr, sql: &str) -> Result<Vec<String>> {
        let sql = CString::new(sql).map_err(|_| Code::MISUSE)?;
        let api = self.slot.api;
        let nested = Nested::open(api, path, OpenFlags::READONLY, vfs)?;
        let this: *const Self = self;
        if let Some(handler) = api.progress_handler {
            // SAFETY: an open connection; this one, which the callback gets, outlives it.
            unsafe { handler(nested.db, INSTRUCTIONS, Some(look), this.cast_mut().cast()) };
        }
        let mut lines: Vec<String> = Vec::new();
        // SAFETY: an open connection and a C string; `keep` gets its place, which outlives the
        // call. No message is wanted.
        let code = unsafe {
            (api.exec)(nested.db, sql.as_ptr(), Some(keep), (&raw mut lines).cast(), null_mut())
        };
        nested.check(code).map(|()| lines)
    }
}

/// Whether the user's connection was interrupted, for `sqlite3_progress_handler`.
unsafe extern "C" fn look(connection: *mut c_void) -> c_int {
    let look = || {
        // SAFETY: the connection that `ask_elsewhere` passes, which it holds during the call.
        unsafe { &*connection.cast_const().cast::<ConnectionRef<'_>>() }.may_go_on()
    };
    c_int::from(guarded("a look", Code::INTERNAL, look, |_| ()).is_err())
}

impl Snapshot<'_> {
    /// Copies its pages, of `page_size` bytes, into the empty file at `to`, opened through the VFS
    /// of this name. They are written without a journal, and not flushed.
    ///
    /// # Errors
    ///
    /// `SQLITE_INTERRUPT`; `SQLITE_BUSY` while the connection itself writes the database; what the
    /// file answers, by its code alone.
    pub fn copy(&self, to: &Path, vfs: &CStr, page_size: u32) -> Result<()> {
        let api = self.connection.slot.api;
        let target = Nested::open(api, to, OpenFlags::READWRITE, vfs)?;
        target.run("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-1000")?;
        let pages = c_int::try_from(STEP / page_size.max(1)).unwrap_or(1).max(1);
        // SAFETY: two open connections, both this thread's, and C strings.
        let backup = unsafe {
            let (from, name) = (self.connection.as_ptr(), self.schema.as_ptr());
            (api.backup_init)(target.db, c"main".as_ptr(), from, name)
        };
        if backup.is_null() {
            // SAFETY: an open connection.
            target.check(unsafe { (api.extended_errcode)(target.db) })?;
            return Err(Code::INTERNAL.into());
        }
        let copied = self.steps(backup, pages);
        // SAFETY: made above, and finished once, before either connection is closed.
        let finished = unsafe { (api.backup_finish)(backup) };
        copied.and_then(|()| target.check(finished))
    }

    fn steps(&self, backup: *mut Backup, pages: c_int) -> Result<()> {
        loop {
            // SAFETY: a copy that is under way.
            match unsafe { (self.connection.slot.api.backup_step)(backup, pages) } {
                DONE => return Ok(()),
                OK => self.connection.may_go_on()?,
                code => return Error::check(code),
            }
        }
    }
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        // SAFETY: a statement of an open connection that this thread holds, finalized once.
        unsafe { (self.connection.slot.api.finalize)(self.statement) };
    }
}

impl core::fmt::Debug for Snapshot<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Snapshot").field("schema", &self.schema).finish_non_exhaustive()
    }
}
