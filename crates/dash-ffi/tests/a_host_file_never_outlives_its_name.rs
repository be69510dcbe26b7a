//! SQLite frees a file's name when `xClose` returns; a host's file that still uses the name ends
//! the process there, loudly, instead of reading freed memory later.

#![expect(unsafe_code, reason = "tests call SQLite's C interface directly")]
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use core::ffi::{CStr, c_char, c_int};
use dash_ffi::{
    AccessCheck, ApiRoutines, Connection, DeviceCharacteristics, Extension, File, FileControl,
    FileName, Handled, HostFile, HostVfs, LockLevel, OpenFlags, Opened, Result, SyncFlags, Vfs,
};
use dash_testing::roles::{again, role};
use std::path::Path;
use std::sync::Mutex;

/// A VFS with a mistake: its files leave the host's file behind.
struct Careless;

static LEFT_BEHIND: Mutex<Vec<HostFile>> = Mutex::new(Vec::new());

struct CarelessFile(Option<HostFile>);

impl Vfs for Careless {
    fn name(&self) -> &'static CStr {
        c"careless"
    }

    fn open(&self, host: &HostVfs, name: FileName<'_>, flags: OpenFlags) -> Result<Opened> {
        let (file, flags) = host.open(name, flags)?;
        Ok(Opened { file: Box::new(CarelessFile(Some(file))), flags })
    }

    fn delete(&self, host: &HostVfs, path: &Path, sync_dir: bool) -> Result<()> {
        host.delete(path, sync_dir)
    }

    fn access(&self, host: &HostVfs, path: &Path, check: AccessCheck) -> Result<bool> {
        host.access(path, check)
    }
}

impl CarelessFile {
    fn host(&mut self) -> &mut HostFile {
        self.0.as_mut().unwrap()
    }
}

impl File for CarelessFile {
    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.host().read(buffer, offset)
    }
    fn write(&mut self, data: &[u8], offset: u64) -> Result<()> {
        self.host().write(data, offset)
    }
    fn truncate(&mut self, size: u64) -> Result<()> {
        self.host().truncate(size)
    }
    fn sync(&mut self, flags: SyncFlags) -> Result<()> {
        self.host().sync(flags)
    }
    fn size(&mut self) -> Result<u64> {
        self.host().size()
    }
    fn lock(&mut self, level: LockLevel) -> Result<()> {
        self.host().lock(level)
    }
    fn unlock(&mut self, level: LockLevel) -> Result<()> {
        self.host().unlock(level)
    }
    fn check_reserved_lock(&mut self) -> Result<bool> {
        self.host().check_reserved_lock()
    }
    fn file_control(&mut self, control: FileControl<'_>) -> Result<Handled> {
        self.host().file_control(control)
    }
    fn sector_size(&mut self) -> u32 {
        self.host().sector_size()
    }
    fn device_characteristics(&mut self) -> DeviceCharacteristics {
        self.host().device_characteristics()
    }
    fn close(mut self: Box<Self>) -> Result<()> {
        LEFT_BEHIND.lock().unwrap().extend(self.0.take());
        Ok(())
    }
}

static CARELESS: Extension = Extension {
    make_vfs: |_| Box::new(Careless),
    stands_on: None,
    functions: &[],
    tables: &[],
    capture: |_| None,
    without_fork: |work| work(),
    automatic,
};

unsafe extern "C" fn automatic(
    db: *mut Connection,
    error: *mut *mut c_char,
    api: *const ApiRoutines,
) -> c_int {
    // SAFETY: SQLite's own arguments.
    unsafe { dash_ffi::load_automatically(db, error, api, &CARELESS) }
}

#[test]
#[ignore = "ends the process; run by the test below"]
fn leave_a_file_behind() {
    if role("leave_a_file_behind").is_none() {
        return;
    }
    // SAFETY: this is sqlite3_auto_extension.
    unsafe { dash_ffi::register_with(rusqlite::ffi::sqlite3_auto_extension, automatic) }.unwrap();
    drop(rusqlite::Connection::open_in_memory().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let uri = format!("file:{}/app.db?vfs=careless", directory.path().display());
    let db = rusqlite::Connection::open(uri).unwrap();
    db.execute_batch("PRAGMA journal_mode=MEMORY; CREATE TABLE t(x)").unwrap();
    println!("closing");
    drop(db);
    println!("still here");
}

#[test]
fn a_host_file_never_outlives_its_name() {
    let output = again("leave_a_file_behind", "").output().unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!output.status.success());
    assert!(out.contains("closing") && !out.contains("still here"), "{out}");
    assert!(err.contains("outlived"), "{err}");
}
