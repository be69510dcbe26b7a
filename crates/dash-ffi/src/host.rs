//! `HostVfs`: the VFS that ours stands on, "unix" as a rule; or else the host's default one when
//! ours was registered.
//!
//! What dash does not store in its own way (temporary files, statement journals, stock journals,
//! what stock SQLite's rules read) passes through here, with names, flags and codes untouched.

use crate::api::Api;
use crate::code::{Code, OK};
use crate::error::{Error, Result};
use crate::flags::{AccessCheck, OpenFlags};
use crate::host_file::HostFile;
use crate::name::{FileName, OwnName, c_path, os_str, path};
use crate::sys::{OK_SYMLINK, RawVfs};
use crate::vfs::FullPathname;
use core::ffi::{CStr, c_char, c_int};
use core::fmt;
use core::ptr::NonNull;
use core::time::Duration;
use std::path::Path;

/// The host's VFS.
#[derive(Clone, Copy)]
pub struct HostVfs {
    vfs: NonNull<RawVfs>,
    pub(crate) api: &'static Api,
}

// SAFETY: SQLite calls the methods of a VFS from any thread, several at once; so may we.
unsafe impl Send for HostVfs {}
// SAFETY: as above.
unsafe impl Sync for HostVfs {}

impl HostVfs {
    /// Wraps a registered VFS.
    ///
    /// # Safety
    ///
    /// `vfs` was found by `sqlite3_vfs_find` of the SQLite of `api`. VFSes are registered for the
    /// life of the process; one that its owner frees earlier while it is the default breaks SQLite
    /// itself.
    pub(crate) unsafe fn new(vfs: NonNull<RawVfs>, api: &'static Api) -> Self {
        Self { vfs, api }
    }

    /// The pointer that every method of the VFS takes.
    pub(crate) fn as_ptr(&self) -> *mut RawVfs {
        self.vfs.as_ptr()
    }

    /// The methods. Copied one by one: SQLite itself writes to `next` at any time.
    pub(crate) fn version(&self) -> c_int {
        // SAFETY: a registered VFS stays in place, and nobody changes its version.
        unsafe { (*self.as_ptr()).version }
    }

    /// The name of the VFS, such as "unix".
    #[must_use]
    pub fn name(&self) -> &CStr {
        // SAFETY: a registered VFS has a name, which is a C string and stays.
        unsafe { CStr::from_ptr((*self.as_ptr()).name) }
    }

    /// The longest path that [`HostVfs::full_pathname`] answers, in bytes.
    #[must_use]
    pub fn max_pathname(&self) -> usize {
        // SAFETY: a registered VFS stays in place, and nobody changes this field.
        usize::try_from(unsafe { (*self.as_ptr()).max_pathname }).unwrap_or(0)
    }

    /// Opens the file that SQLite asked for, under SQLite's own name pointer, which carries the URI
    /// parameters. The file must be closed or dropped before the file that `xOpen` makes is closed:
    /// a file that outlives it ends the process, as it would read memory that SQLite frees.
    ///
    /// # Errors
    ///
    /// The host's code.
    pub fn open(&self, name: FileName<'_>, flags: OpenFlags) -> Result<(HostFile, OpenFlags)> {
        // SAFETY: the name is SQLite's; the lease keeps it until the host's file is gone.
        unsafe { HostFile::open(self, name.as_ptr(), flags, name.lease().map(Into::into)) }
    }

    /// Opens a file under a name of our own, which has no URI parameters.
    ///
    /// # Errors
    ///
    /// The host's code.
    pub fn open_path(&self, path: &Path, flags: OpenFlags) -> Result<(HostFile, OpenFlags)> {
        let name = OwnName::new(path)?;
        // SAFETY: the name has SQLite's layout; the file owns it, so it is there until the file is
        // gone.
        unsafe { HostFile::open(self, name.as_ptr(), flags, Some(name.into())) }
    }

    /// Deletes a file; with `sync_dir`, makes the directory durable.
    ///
    /// # Errors
    ///
    /// The host's code, such as `SQLITE_IOERR_DELETE_NOENT`.
    pub fn delete(&self, path: &Path, sync_dir: bool) -> Result<()> {
        let path = c_path(path, Code::IOERR_DELETE)?;
        // SAFETY: every VFS has this method; it gets its own VFS and a C string.
        let code = unsafe {
            let delete = (*self.as_ptr()).delete.ok_or(Code::IOERR_DELETE)?;
            delete(self.as_ptr(), path.as_ptr(), c_int::from(sync_dir))
        };
        Error::check(code)
    }

    /// Whether a path exists or can be used.
    ///
    /// # Errors
    ///
    /// The host's code.
    pub fn access(&self, path: &Path, check: AccessCheck) -> Result<bool> {
        let path = c_path(path, Code::IOERR_ACCESS)?;
        let mut answer = 0;
        // SAFETY: every VFS has this method; it gets its own VFS, a C string and a place for its
        // answer.
        let code = unsafe {
            let access = (*self.as_ptr()).access.ok_or(Code::IOERR_ACCESS)?;
            access(self.as_ptr(), path.as_ptr(), check.raw(), &raw mut answer)
        };
        Error::check(code).map(|()| answer != 0)
    }

    /// The absolute form of a path.
    ///
    /// # Errors
    ///
    /// The host's code.
    pub fn full_pathname(&self, relative: &Path) -> Result<FullPathname> {
        let relative = c_path(relative, Code::CANTOPEN)?;
        // One byte more, which stays zero whatever the host writes.
        let mut buffer = vec![0_u8; self.max_pathname() + 2];
        let size = c_int::try_from(buffer.len() - 1).map_err(|_| Code::CANTOPEN)?;
        // SAFETY: every VFS has this method; it writes at most `size` bytes, and the buffer is
        // longer.
        let code = unsafe {
            let full = (*self.as_ptr()).full_pathname.ok_or(Code::CANTOPEN)?;
            full(self.as_ptr(), relative.as_ptr(), size, buffer.as_mut_ptr().cast())
        };
        if code != OK_SYMLINK {
            Error::check(code)?;
        }
        let text = CStr::from_bytes_until_nul(&buffer).map_err(|_| Code::CANTOPEN)?;
        Ok(FullPathname { path: path(text).to_path_buf(), symlink: code == OK_SYMLINK })
    }

    /// Sleeps for about `time`; answers how long the host says it was.
    pub fn sleep(&self, time: Duration) -> Duration {
        let micros = c_int::try_from(time.as_micros()).unwrap_or(c_int::MAX);
        // SAFETY: the method gets its own VFS.
        let slept = unsafe {
            match (*self.as_ptr()).sleep {
                Some(sleep) => sleep(self.as_ptr(), micros),
                None => 0,
            }
        };
        Duration::from_micros(u64::try_from(slept).unwrap_or(0))
    }

    /// Fills a buffer with random bytes, as good as the host has; answers how many there are.
    pub fn randomness(&self, buffer: &mut [u8]) -> usize {
        let Ok(size) = c_int::try_from(buffer.len()) else {
            return 0;
        };
        // SAFETY: the method gets its own VFS and a buffer with its size.
        let filled = unsafe {
            match (*self.as_ptr()).randomness {
                Some(randomness) => randomness(self.as_ptr(), size, buffer.as_mut_ptr().cast()),
                None => 0,
            }
        };
        usize::try_from(filled).unwrap_or(0).min(buffer.len())
    }

    /// The current time: milliseconds since noon of 24 November 4714 BC, UTC (the Julian day times
    /// 86,400,000).
    ///
    /// # Errors
    ///
    /// `SQLITE_ERROR` if the host has no clock.
    pub fn current_time(&self) -> Result<i64> {
        let mut milliseconds = 0;
        // SAFETY: the field exists from version 2 on; the method gets its own VFS and a place to
        // write to.
        let code = unsafe {
            let method = match self.version() {
                ..2 => None,
                _ => (*self.as_ptr()).current_time_int64,
            };
            match method {
                Some(time) => time(self.as_ptr(), &raw mut milliseconds),
                None => return self.current_time_in_days(),
            }
        };
        Error::check(code).map(|()| milliseconds)
    }

    fn current_time_in_days(&self) -> Result<i64> {
        let mut days = 0.0_f64;
        // SAFETY: the method gets its own VFS and a place to write to.
        let code = unsafe {
            let time = (*self.as_ptr()).current_time.ok_or(Code::ERROR)?;
            time(self.as_ptr(), &raw mut days)
        };
        Error::check(code)?;
        let milliseconds = days * 86_400_000.0;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the cast saturates, and no date is near the ends of i64"
        )]
        Ok(milliseconds as i64)
    }

    /// The `errno` of the host's last failure on this thread.
    #[must_use]
    pub fn last_error(&self) -> i32 {
        // SAFETY: the method gets its own VFS and may be given no buffer, as SQLite itself does.
        unsafe {
            (*self.as_ptr())
                .get_last_error
                .map_or(OK, |last| last(self.as_ptr(), 0, core::ptr::null_mut::<c_char>()))
        }
    }

    /// Whether this SQLite was built with an option, named without `SQLITE_` (`SECURE_DELETE`). No,
    /// where it was built without the means to tell.
    #[must_use]
    pub fn is_built_with(&self, option: &CStr) -> bool {
        self.api.is_built_with(option)
    }

    /// Writes a line to the error log of the host (`sqlite3_log`).
    pub fn log(&self, code: Code, message: &str) {
        crate::error::log(self.api, code, message);
    }

    /// The size of the host's file handles.
    pub(crate) fn file_size(&self) -> usize {
        // SAFETY: a registered VFS stays in place, and nobody changes this field.
        usize::try_from(unsafe { (*self.as_ptr()).file_size }).unwrap_or(0)
    }
}

impl fmt::Debug for HostVfs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HostVfs").field(&os_str(self.name())).finish()
    }
}
