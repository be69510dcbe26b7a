//! The VFS `dash-torture-stock`: what SQLite's own VFS "unix" does, call by call, on a simulated
//! machine. The SQLite on top is the real one, so its journals, its locks and its mistakes are,
//! too.
//!
//! A database is opened as `/stock-N/app.db`; N names the process. Whatever has no name of SQLite's
//! is the host's.

use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::{CStr, OsStr, OsString};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once};

use dash_ffi::{
    AccessCheck, ApiRoutines, Code, Connection, DeviceCharacteristics, Error, Extension, File,
    FileControl, FileKind, FileName, FullPathname, Handled, HostVfs, LockLevel, OpenFlags, Opened,
    Result, SlotInfo, SyncFlags, Vfs,
};
use dash_storage::simulated::{self, Simulated};
use dash_storage::{Directory, File as _, LockKind, OpenMode, Storage};

use crate::sim::explore::lock;

/// Bytes that SQLite locks (os.h).
const PENDING: Range<u64> = 0x4000_0000..0x4000_0001;
const RESERVED: Range<u64> = 0x4000_0001..0x4000_0002;
const SHARED: Range<u64> = 0x4000_0002..0x4000_0200;
const ALL: Range<u64> = PENDING.start..SHARED.end;

static PROCESSES: Mutex<BTreeMap<u64, Simulated>> = Mutex::new(BTreeMap::new());
static NEXT: AtomicU64 = AtomicU64::new(1);

/// A process, under the number that its paths name.
pub struct Numbered(u64);

impl Numbered {
    /// Gives a process a number.
    pub fn new(process: &Simulated) -> Self {
        register();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        lock(&PROCESSES).insert(number, process.clone());
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

static EXTENSION: Extension =
    Extension { make_vfs: |_: &SlotInfo| Box::new(Stock), functions: &[], tables: &[], automatic };

#[expect(unsafe_code, reason = "SQLite calls it for every connection")]
unsafe extern "C" fn automatic(
    db: *mut Connection,
    error: *mut *mut std::ffi::c_char,
    api: *const ApiRoutines,
) -> std::ffi::c_int {
    // SAFETY: the arguments are SQLite's own.
    unsafe { dash_ffi::load_automatically(db, error, api, &EXTENSION) }
}

#[expect(unsafe_code, reason = "a function of C is handed over")]
fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: this is the function of the SQLite that is linked in here.
        let registered =
            unsafe { dash_ffi::register_with(rusqlite::ffi::sqlite3_auto_extension, automatic) };
        // The VFS appears with the next connection; one that is missing fails every open.
        drop(registered.map(|()| rusqlite::Connection::open_in_memory()));
    });
}

struct Stock;

/// The process and the name that a path means.
fn place(path: &Path) -> Option<(Simulated, OsString)> {
    let folder = path.parent()?.to_str()?.strip_prefix("/stock-")?.parse().ok()?;
    Some((lock(&PROCESSES).get(&folder).cloned()?, path.file_name()?.to_owned()))
}

fn code(code: Code) -> impl Fn(io::Error) -> Error {
    move |error| match error.raw_os_error() {
        Some(libc::ENOSPC) => Code::FULL.into(),
        _ => Error::new(code, error.to_string()),
    }
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
        let (process, name) = name.path().and_then(place).ok_or(Code::CANTOPEN)?;
        let folder = process.open_directory(Path::new("/")).map_err(code(Code::CANTOPEN))?;
        let create = flags.contains(OpenFlags::CREATE);
        let mode = match flags.contains(OpenFlags::READWRITE) {
            _ if create => OpenMode::Create { permissions: 0o644 },
            true => OpenMode::ReadWrite,
            false => OpenMode::Read,
        };
        let file = folder.open(&name, mode).map_err(code(Code::CANTOPEN))?;
        let sync_folder = create && kind != Some(FileKind::MainDb);
        let database = Handle { folder, name, file, level: LockLevel::None, sync_folder };
        Ok(Opened { file: Box::new(database), flags })
    }

    fn delete(&self, host: &HostVfs, path: &Path, sync_dir: bool) -> Result<()> {
        let Some((process, name)) = place(path) else {
            return host.delete(path, sync_dir);
        };
        let folder = process.open_directory(Path::new("/")).map_err(code(Code::IOERR_DELETE))?;
        folder.unlink(&name).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Code::IOERR_DELETE_NOENT.into(),
            _ => code(Code::IOERR_DELETE)(error),
        })?;
        if sync_dir { folder.flush().map_err(code(Code::IOERR_DIR_FSYNC)) } else { Ok(()) }
    }

    /// An empty file is as good as none (os_unix.c `unixAccess`).
    fn access(&self, host: &HostVfs, path: &Path, check: AccessCheck) -> Result<bool> {
        let Some((process, name)) = place(path) else {
            return host.access(path, check);
        };
        let folder = process.open_directory(Path::new("/")).map_err(code(Code::IOERR_ACCESS))?;
        let found = folder.metadata(&name).map_err(code(Code::IOERR_ACCESS))?;
        let full = |found: dash_storage::Metadata| {
            found.kind != dash_storage::FileKind::Regular || found.len > 0
        };
        Ok(found.is_some_and(|found| check != AccessCheck::Exists || full(found)))
    }

    fn full_pathname(&self, _: &HostVfs, path: &Path) -> Result<FullPathname> {
        Ok(FullPathname { path: path.to_owned(), symlink: false })
    }
}

/// An open file of stock SQLite's.
struct Handle {
    folder: simulated::Directory,
    name: OsString,
    file: simulated::File,
    level: LockLevel,
    /// The first sync of a journal flushes its folder, too.
    sync_folder: bool,
}

impl Handle {
    fn take(&self, range: Range<u64>, kind: LockKind) -> Result<()> {
        match self.file.try_lock(range, kind).map_err(code(Code::IOERR_LOCK))? {
            true => Ok(()),
            false => Err(Code::BUSY.into()),
        }
    }

    fn give(&self, range: Range<u64>) -> Result<()> {
        self.file.unlock(range).map_err(code(Code::IOERR_UNLOCK))
    }

    fn has_moved(&self) -> bool {
        let named = self.folder.metadata(OsStr::new(&self.name)).ok().flatten();
        named.is_none_or(|named| named.id != self.file.id())
    }
}

impl File for Handle {
    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.file.read_at(buffer, offset).map_err(code(Code::IOERR_READ))
    }

    fn write(&mut self, data: &[u8], offset: u64) -> Result<()> {
        self.file.write_at(data, offset).map_err(code(Code::IOERR_WRITE))
    }

    fn truncate(&mut self, size: u64) -> Result<()> {
        self.file.set_len(size).map_err(code(Code::IOERR_TRUNCATE))
    }

    fn sync(&mut self, _: SyncFlags) -> Result<()> {
        self.file.flush().map_err(code(Code::IOERR_FSYNC))?;
        if std::mem::take(&mut self.sync_folder) {
            self.folder.flush().map_err(code(Code::IOERR_DIR_FSYNC))?;
        }
        Ok(())
    }

    fn size(&mut self) -> Result<u64> {
        self.file.metadata().map(|found| found.len).map_err(code(Code::IOERR_FSTAT))
    }

    /// os_unix.c `unixLock`, for a process with one connection.
    fn lock(&mut self, level: LockLevel) -> Result<()> {
        if self.level >= level {
            return Ok(());
        }
        match level {
            LockLevel::None => {}
            LockLevel::Shared => {
                self.take(PENDING, LockKind::Shared)?;
                let got = self.take(SHARED, LockKind::Shared);
                self.give(PENDING)?;
                got?;
            }
            LockLevel::Reserved => self.take(RESERVED, LockKind::Exclusive)?,
            LockLevel::Pending | LockLevel::Exclusive => {
                self.take(PENDING, LockKind::Exclusive)?;
                self.level = self.level.max(LockLevel::Pending);
                self.take(SHARED, LockKind::Exclusive)?;
            }
        }
        self.level = level;
        Ok(())
    }

    fn unlock(&mut self, level: LockLevel) -> Result<()> {
        if self.level <= level {
            return Ok(());
        }
        if level == LockLevel::Shared {
            self.take(SHARED, LockKind::Shared)?;
            self.give(PENDING.start..RESERVED.end)?;
        } else {
            self.give(ALL)?;
        }
        self.level = level;
        Ok(())
    }

    fn check_reserved_lock(&mut self) -> Result<bool> {
        let elsewhere = || self.file.lock_conflict(RESERVED, LockKind::Exclusive);
        Ok(self.level >= LockLevel::Reserved
            || elsewhere().map_err(code(Code::IOERR_CHECKRESERVEDLOCK))?.is_some())
    }

    fn file_control(&mut self, control: FileControl<'_>) -> Result<Handled> {
        match control {
            FileControl::HasMoved(moved) => *moved = self.has_moved(),
            _ => return Ok(Handled::No),
        }
        Ok(Handled::Yes)
    }

    fn sector_size(&mut self) -> u32 {
        4096
    }

    fn device_characteristics(&mut self) -> DeviceCharacteristics {
        DeviceCharacteristics::POWERSAFE_OVERWRITE | DeviceCharacteristics::SUBPAGE_READ
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
