//! `Vfs`: what an extension makes of `sqlite3_vfs`, as a safe trait.
//!
//! The trampolines in `vfs_calls` are its only callers. Randomness, both forms of the current time,
//! the dlopen family and the system-call table have no method: they go straight to the host's VFS.

use crate::error::Result;
use crate::file::File;
use crate::flags::{AccessCheck, OpenFlags};
use crate::host::HostVfs;
use crate::name::FileName;
use core::ffi::CStr;
use core::time::Duration;
use std::path::{Path, PathBuf};

/// A virtual file system. `host` is the one that was the default when it was registered.
pub trait Vfs: Send + Sync + 'static {
    /// The name that `?vfs=` takes, such as `c"dash"`.
    fn name(&self) -> &'static CStr;

    /// Opens a file.
    ///
    /// # Errors
    ///
    /// `SQLITE_CANTOPEN` and the like; the message goes to the log and to
    /// [`last_error`](crate::last_error), for SQLite has no other way to show it.
    fn open(&self, host: &HostVfs, name: FileName<'_>, flags: OpenFlags) -> Result<Opened>;

    /// Deletes a file; with `sync_dir`, makes the directory durable afterwards.
    ///
    /// # Errors
    ///
    /// `SQLITE_IOERR_DELETE_NOENT` if there is none, which SQLite often takes for success.
    fn delete(&self, host: &HostVfs, path: &Path, sync_dir: bool) -> Result<()>;

    /// Whether a path exists or can be used.
    ///
    /// # Errors
    ///
    /// `SQLITE_IOERR_ACCESS`.
    fn access(&self, host: &HostVfs, path: &Path, check: AccessCheck) -> Result<bool>;

    /// The absolute form of a path; the host's by default.
    ///
    /// # Errors
    ///
    /// `SQLITE_CANTOPEN` and the like.
    fn full_pathname(&self, host: &HostVfs, path: &Path) -> Result<FullPathname> {
        host.full_pathname(path)
    }

    /// Sleeps for about `time`; answers how long it was. The host's by default.
    fn sleep(&self, host: &HostVfs, time: Duration) -> Duration {
        host.sleep(time)
    }

    /// The `errno` of the last failure on this thread, for `sqlite3_system_errno`; the host's by
    /// default.
    fn last_error(&self, host: &HostVfs) -> i32 {
        host.last_error()
    }
}

/// A file that was opened, and how.
pub struct Opened {
    /// The file.
    pub file: Box<dyn File>,
    /// How it was opened: above all `READONLY` instead of `READWRITE` where that was all there was.
    pub flags: OpenFlags,
}

/// An absolute path, and how it came about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullPathname {
    /// The path.
    pub path: PathBuf,
    /// Whether a symbolic link was followed: SQLite needs to know for `SQLITE_OPEN_NOFOLLOW`.
    pub symlink: bool,
}
