//! A connection of dash's own, on the host's VFS, for the moment in which a database has to be seen
//! through stock eyes: rolling a hot journal back, taking a file out of WAL mode. And notes for
//! people about what succeeded, but not as they may think.
//!
//! `xOpen` may open a connection: SQLite holds no lock there but that of the connection being
//! opened.

use crate::api::Api;
use crate::code::Code;
use crate::error::{Error, Result, explain, remember};
use crate::flags::OpenFlags;
use crate::host::HostVfs;
use crate::name::c_path;
use crate::ours::opening;
use crate::sys::Connection;
use core::ffi::CStr;
use core::ptr::null_mut;
use std::ffi::CString;
use std::path::Path;

/// Closes the connection.
pub(crate) struct Nested {
    pub(crate) db: *mut Connection,
    pub(crate) api: &'static Api,
}

impl Nested {
    /// Opens a database through the VFS of this name in a connection of its own, which shares no
    /// cache.
    ///
    /// # Errors
    ///
    /// SQLite's code and message.
    pub(crate) fn open(
        api: &'static Api,
        path: &Path,
        flags: OpenFlags,
        vfs: &CStr,
    ) -> Result<Self> {
        let path = c_path(path, Code::CANTOPEN)?;
        let flags = flags | OpenFlags::PRIVATECACHE | OpenFlags::NOMUTEX;
        let mut nested = Self { db: null_mut(), api };
        let place = &raw mut nested.db;
        // SAFETY: C strings, and a place for the connection, which is closed in any case.
        let open = || unsafe { (api.open_v2)(path.as_ptr(), place, flags.raw(), vfs.as_ptr()) };
        let code = opening(open);
        nested.check(code)?;
        Ok(nested)
    }

    /// Runs statements.
    ///
    /// # Errors
    ///
    /// SQLite's code and message.
    pub(crate) fn run(&self, sql: &str) -> Result<()> {
        let sql = CString::new(sql).map_err(|_| Code::MISUSE)?;
        // SAFETY: an open connection and a C string; no callback, no message wanted.
        let code = unsafe { (self.api.exec)(self.db, sql.as_ptr(), None, null_mut(), null_mut()) };
        self.check(code)
    }

    /// The result of a call, with what SQLite says about a failure. "disk I/O error" alone tells
    /// nobody what to look at: the extended code says which call failed, and `errno` why.
    pub(crate) fn check(&self, code: i32) -> Result<()> {
        let Some(code) = Code::from_raw(code) else {
            return Ok(());
        };
        if self.db.is_null() {
            return Err(code.into());
        }
        // SAFETY: a connection that is open or has just failed to open; its message is a C string
        // that stays until the next call.
        let text = unsafe { CStr::from_ptr((self.api.errmsg)(self.db)) }.to_string_lossy();
        if !matches!(code.primary(), Code::IOERR | Code::CANTOPEN) {
            return Err(Error::new(code, text));
        }
        // SAFETY: the same connection, for both.
        let (extended, errno) =
            unsafe { ((self.api.extended_errcode)(self.db), (self.api.system_errno)(self.db)) };
        let code = Code::from_raw(extended).unwrap_or(code);
        let why = match errno {
            0 => String::new(),
            _ => format!(": {}", std::io::Error::from_raw_os_error(errno)),
        };
        Err(Error::new(code, format!("{text}: {code}{why}")))
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        // SAFETY: null or a connection that nobody else has; all its statements are finished.
        unsafe { (self.api.close)(self.db) };
    }
}

impl HostVfs {
    /// Opens a database through this VFS in a connection of its own, runs statements, and closes
    /// it. Nobody else sees the connection; it shares no cache.
    ///
    /// # Errors
    ///
    /// SQLite's code and message.
    pub fn run(&self, path: &Path, flags: OpenFlags, sql: &str) -> Result<()> {
        Nested::open(self.api, path, flags, self.name())?.run(sql)
    }

    /// Writes a line to the error log of the host and makes it the answer of
    /// [`last_error`](crate::last_error), for a call that failed before.
    pub fn fail(&self, code: Code, message: &str) {
        explain(message);
        self.log(code, message);
    }

    /// Writes a line to the error log of the host and makes it the answer of
    /// [`last_error`](crate::last_error), without any call failing.
    pub fn note(&self, code: Code, message: &str) {
        remember(message);
        self.log(code, message);
    }
}
