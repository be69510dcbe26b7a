//! The VFS `dash-torture-stock`: what SQLite's own VFS "unix" does, call by call, on a simulated
//! machine. The SQLite on top is the real one, so its journals, its locks and its mistakes are,
//! too.
//!
//! A database is opened as `/stock-N/app.db`; N names the process. Whatever has no name of SQLite's
//! is the host's.

use std::collections::BTreeMap;
use std::ffi::{CStr, OsString};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dash_ffi::{
    AccessCheck, Code, FileKind, FileName, FullPathname, HostVfs, OpenFlags, Opened, Result, Vfs,
};
use dash_simulated::Simulated;

use super::file::{self, Files};
use crate::sim::explore::lock;

static PROCESSES: Mutex<BTreeMap<u64, Files>> = Mutex::new(BTreeMap::new());
static NEXT: AtomicU64 = AtomicU64::new(1);

/// A process, under the number that its paths name.
pub struct Numbered(u64);

impl Numbered {
    /// Gives a process a number. `shared_memory`: whether its files have any, as WAL mode needs it
    /// unless `locking_mode=EXCLUSIVE`.
    pub fn new(process: &Simulated, shared_memory: bool) -> Self {
        register();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        lock(&PROCESSES).insert(number, Files { process: process.clone(), shared_memory });
        Self(number)
    }

    /// The URI of a file in the root of its machine.
    pub fn uri(&self, name: &str) -> String {
        format!("file:/stock-{}/{name}?vfs=dash-torture-stock", self.0)
    }
}

impl Drop for Numbered {
    fn drop(&mut self) {
        lock(&PROCESSES).remove(&self.0);
    }
}

registered_vfs!(Stock);

struct Stock;

/// The files of a process, and the name that a path means.
fn place(path: &Path) -> Option<(Files, OsString)> {
    let folder = path.parent()?.to_str()?.strip_prefix("/stock-")?.parse().ok()?;
    Some((lock(&PROCESSES).get(&folder).cloned()?, path.file_name()?.to_owned()))
}

impl Vfs for Stock {
    fn name(&self) -> &'static CStr {
        c"dash-torture-stock"
    }

    fn open(&self, host: &HostVfs, name: FileName<'_>, flags: OpenFlags) -> Result<Opened> {
        let kind = flags.kind();
        if !matches!(kind, Some(FileKind::MainDb | FileKind::MainJournal | FileKind::Wal)) {
            let (file, flags) = host.open(name, flags)?;
            return Ok(Opened { file: Box::new(file), flags });
        }
        let (files, name) = name.path().and_then(place).ok_or(Code::CANTOPEN)?;
        Ok(Opened { file: Box::new(file::open(&files, &name, flags)?), flags })
    }

    fn delete(&self, host: &HostVfs, path: &Path, sync_dir: bool) -> Result<()> {
        match place(path) {
            Some((files, name)) => file::delete(&files.process, &name, sync_dir),
            None => host.delete(path, sync_dir),
        }
    }

    fn access(&self, host: &HostVfs, path: &Path, check: AccessCheck) -> Result<bool> {
        match place(path) {
            Some((files, name)) => file::access(&files.process, &name, check),
            None => host.access(path, check),
        }
    }

    fn full_pathname(&self, _: &HostVfs, path: &Path) -> Result<FullPathname> {
        Ok(FullPathname { path: path.to_owned(), symlink: false })
    }

    /// Nobody else gets anywhere meanwhile.
    fn sleep(&self, _: &HostVfs, time: Duration) -> Duration {
        time
    }
}
