//! `FileName`: the name that `xOpen` gets, with the URI parameters that SQLite keeps behind it.
//!
//! Invariants: paths are bytes and pass through unchanged, UTF-8 or not; only names of main
//! databases, their journals and their logs are asked for parameters, for only those have the
//! layout that carries them; a host's file opened with SQLite's own pointer is gone before SQLite
//! frees the name (`Lease`).

use crate::api::Api;
use crate::code::Code;
use crate::error::{Error, Result};
use crate::flags::OpenFlags;
use core::ffi::{CStr, c_char, c_int};
use core::fmt;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// The claim of a host's file on the name it was opened with. SQLite keeps a name until `xClose`
/// returns; whoever holds a clone of the lease still uses the name.
#[derive(Clone, Default)]
pub(crate) struct Lease(Arc<()>);

impl Lease {
    /// Ends the lease when SQLite is about to free the name. A host's file that is still open would
    /// go on reading freed memory: that is a mistake in the code that kept it, and the process ends
    /// here.
    pub(crate) fn end(self) {
        if Arc::strong_count(&self.0) > 1 {
            eprintln!("dash-ffi: a host file outlived the file that it was opened for");
            std::process::abort();
        }
    }
}

/// The name of a file that SQLite opens; none for a temporary file, whose name is the VFS's
/// business.
#[derive(Clone, Copy)]
pub struct FileName<'a> {
    name: Option<&'a CStr>,
    flags: OpenFlags,
    api: &'a Api,
    lease: &'a Lease,
}

impl<'a> FileName<'a> {
    /// The name that `xOpen` got.
    ///
    /// # Safety
    ///
    /// `name` is null or the pointer given to `xOpen` with `flags` by the SQLite of `api`, valid
    /// for `'a` and until `lease` is ended.
    pub(crate) unsafe fn new(
        name: *const c_char,
        flags: OpenFlags,
        api: &'a Api,
        lease: &'a Lease,
    ) -> Self {
        // SAFETY: not null, and a C string for 'a, as the caller states.
        let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) });
        Self { name, flags, api, lease }
    }

    /// The path; `None` for a temporary file.
    #[must_use]
    pub fn path(&self) -> Option<&'a Path> {
        self.name.map(path)
    }

    /// The value of a URI parameter of the database, also when this is the name of its journal or
    /// log.
    #[must_use]
    pub fn uri_parameter(&self, key: &str) -> Option<&'a OsStr> {
        let key = CString::new(key).ok()?;
        let database = self.database()?;
        // SAFETY: a name with the layout of a database, and a C string.
        let value = unsafe { (self.api.uri_parameter)(database, key.as_ptr()) };
        // SAFETY: null, or a C string inside the name's own memory, which lives for 'a.
        (!value.is_null()).then(|| os_str(unsafe { CStr::from_ptr(value) }))
    }

    /// All URI parameters, in order, as keys and values; those that SQLite itself reads included.
    pub fn parameters(&self) -> impl Iterator<Item = (&'a OsStr, &'a OsStr)> + use<'a> {
        let api = self.api;
        let database = self.database();
        (0 as c_int..).map_while(move |n| {
            let database = database?;
            // SAFETY: a name with the layout of a database; numbers behind the last parameter give
            // null.
            let key = unsafe { (api.uri_key)(database, n) };
            if key.is_null() {
                return None;
            }
            // SAFETY: a C string inside the name's own memory, which lives for 'a.
            let key = unsafe { CStr::from_ptr(key) };
            // The layout is key, zero byte, value, zero byte: reading on, not looking the key up,
            // keeps the values of a key that is given twice apart.
            // SAFETY: a value, perhaps empty, follows each key.
            let value = unsafe { CStr::from_ptr(key.as_ptr().add(key.count_bytes() + 1)) };
            Some((os_str(key), os_str(value)))
        })
    }

    /// The pointer to the database's name, which is what SQLite's URI routines take.
    fn database(&self) -> Option<*const c_char> {
        let with_parameters = [OpenFlags::MAIN_DB, OpenFlags::MAIN_JOURNAL, OpenFlags::WAL];
        if !with_parameters.iter().any(|kind| self.flags.contains(*kind)) {
            return None;
        }
        let name = self.name?;
        // SAFETY: SQLite made this name for a main database, its journal or its log, which is what
        // the routine asks for.
        Some(unsafe { (self.api.filename_database)(name.as_ptr()) })
    }

    pub(crate) fn as_ptr(&self) -> *const c_char {
        self.name.map_or(core::ptr::null(), CStr::as_ptr)
    }

    /// A claim on the name, for a host's file that keeps the pointer; none is needed for a null
    /// name.
    pub(crate) fn lease(&self) -> Option<Lease> {
        self.name.map(|_| self.lease.clone())
    }
}

impl fmt::Debug for FileName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileName").field("path", &self.path()).field("flags", &self.flags).finish()
    }
}

/// A C string as what Unix knows it for: bytes.
pub(crate) fn os_str(text: &CStr) -> &OsStr {
    OsStr::from_bytes(text.to_bytes())
}

/// A C string as a path.
pub(crate) fn path(text: &CStr) -> &Path {
    Path::new(os_str(text))
}

/// A path as a C string.
///
/// # Errors
///
/// `code` if there is a zero byte inside.
pub(crate) fn c_path(path: &Path, code: Code) -> Result<CString> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Error::new(code, format!("{}: a zero byte in a path", path.display())))
}

/// A name that we make ourselves, laid out as SQLite lays out its own (`sqlite3_create_filename`):
/// four zero bytes in front, the path, no parameters, no names of journal and log, and zero bytes
/// at the end, so that `sqlite3_uri_parameter` and `sqlite3_filename_*` work on it.
pub(crate) struct OwnName(Box<[u8]>);

impl OwnName {
    const FRONT: usize = 4;
    const BACK: usize = 8;

    /// Lays out a path.
    ///
    /// # Errors
    ///
    /// `SQLITE_CANTOPEN` if there is a zero byte inside.
    pub(crate) fn new(path: &Path) -> Result<Self> {
        let path = c_path(path, Code::CANTOPEN)?;
        let mut bytes = vec![0; Self::FRONT];
        bytes.extend_from_slice(path.as_bytes());
        bytes.extend_from_slice(&[0; Self::BACK]);
        Ok(Self(bytes.into_boxed_slice()))
    }

    pub(crate) fn as_ptr(&self) -> *const c_char {
        self.0[Self::FRONT..].as_ptr().cast()
    }
}
