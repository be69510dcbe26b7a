//! The VFS `dash-torture`: an SQLite linked in here, whose main databases are an engine's on a
//! simulated machine. Everything else of SQLite's is in memory.
//!
//! A database is opened as `file:/app.db?vfs=dash-torture&world=N`; N names a [`World`].

use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once};

use dash_ffi::{
    AccessCheck, ApiRoutines, Code, Connection, DeviceCharacteristics, Error, Extension, File,
    FileControl, FileKind, FileName, Handled, HostVfs, LockLevel, OpenFlags, Opened, Result,
    SlotInfo, SyncFlags, Vfs,
};
use dash_storage::simulated::Simulated;

use crate::sim::explore::lock;
use crate::sim::subject::{DB, Outcome, Session, Setup, Subject, Trouble};

/// A process of a simulated machine, and the engine that it uses.
#[derive(Clone)]
pub struct World {
    /// The process.
    pub process: Simulated,
    /// The engine.
    pub subject: Arc<dyn Subject>,
    /// How it is opened.
    pub setup: Setup,
}

static WORLDS: Mutex<BTreeMap<u64, World>> = Mutex::new(BTreeMap::new());
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Opens the database of a world.
pub fn open(world: World) -> rusqlite::Result<rusqlite::Connection> {
    register();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    lock(&WORLDS).insert(number, world);
    let opened = rusqlite::Connection::open(format!("file:{DB}?vfs=dash-torture&world={number}"));
    lock(&WORLDS).remove(&number);
    opened
}

static EXTENSION: Extension = Extension {
    make_vfs: |_: &SlotInfo| Box::new(Torture),
    functions: &[],
    tables: &[],
    automatic,
};

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

struct Torture;

impl Vfs for Torture {
    fn name(&self) -> &'static CStr {
        c"dash-torture"
    }

    fn open(&self, host: &HostVfs, name: FileName<'_>, flags: OpenFlags) -> Result<Opened> {
        if flags.kind() != Some(FileKind::MainDb) {
            let (file, flags) = host.open(name, flags)?;
            return Ok(Opened { file: Box::new(file), flags });
        }
        let number = name.uri_parameter("world").and_then(|text| text.to_str()?.parse().ok());
        let world = number.and_then(|number: u64| lock(&WORLDS).get(&number).cloned());
        let World { process, subject, setup } = world.ok_or(Code::CANTOPEN)?;
        let session = engine(subject.open(&process, DB, &setup), Code::CANTOPEN)?;
        Ok(Opened { file: Box::new(Database { session, level: LockLevel::None }), flags })
    }

    fn delete(&self, _: &HostVfs, _: &Path, _: bool) -> Result<()> {
        Ok(())
    }

    /// There are no journals beside it, hot or not.
    fn access(&self, _: &HostVfs, _: &Path, _: AccessCheck) -> Result<bool> {
        Ok(false)
    }
}

/// An engine's result as SQLite's.
fn engine<T>(outcome: Outcome<T>, code: Code) -> Result<T> {
    outcome.map_err(|trouble| match trouble {
        Trouble::Busy => Code::BUSY.into(),
        Trouble::Failed(message) | Trouble::Wrong(message) => Error::new(code, message),
    })
}

struct Database {
    session: Box<dyn Session>,
    level: LockLevel,
}

impl File for Database {
    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        engine(self.session.read(buffer, offset), Code::IOERR_READ)
    }

    fn write(&mut self, data: &[u8], offset: u64) -> Result<()> {
        engine(self.session.write(data, offset), Code::IOERR_WRITE)
    }

    fn truncate(&mut self, size: u64) -> Result<()> {
        engine(self.session.truncate(size), Code::IOERR_TRUNCATE)
    }

    fn sync(&mut self, _: SyncFlags) -> Result<()> {
        engine(self.session.flush(), Code::IOERR_FSYNC)
    }

    fn size(&mut self) -> Result<u64> {
        Ok(self.session.size())
    }

    fn lock(&mut self, level: LockLevel) -> Result<()> {
        if self.level == LockLevel::None {
            engine(self.session.begin_read(), Code::IOERR_LOCK)?;
            self.level = LockLevel::Shared;
        }
        if level >= LockLevel::Reserved && self.level < LockLevel::Reserved {
            engine(self.session.reserve(), Code::IOERR_LOCK)?;
            self.level = LockLevel::Reserved;
        }
        if level == LockLevel::Exclusive && self.level < level {
            engine(self.session.exclude(), Code::IOERR_LOCK)?;
            self.level = level;
        }
        Ok(())
    }

    fn unlock(&mut self, level: LockLevel) -> Result<()> {
        let done = match level {
            LockLevel::None => self.session.end(),
            _ if self.level > LockLevel::Shared => self.session.end_write(),
            _ => Ok(()),
        };
        self.level = self.level.min(level);
        engine(done, Code::IOERR_UNLOCK)
    }

    fn check_reserved_lock(&mut self) -> Result<bool> {
        Ok(self.level >= LockLevel::Reserved)
    }

    fn file_control(&mut self, control: FileControl<'_>) -> Result<Handled> {
        match control {
            FileControl::Sync { .. } => engine(self.session.prepare(None), Code::IOERR_WRITE)?,
            FileControl::CommitPhaseTwo => engine(self.session.publish(), Code::IOERR)?,
            _ => return Ok(Handled::No),
        }
        Ok(Handled::Yes)
    }

    fn sector_size(&mut self) -> u32 {
        4096
    }

    fn device_characteristics(&mut self) -> DeviceCharacteristics {
        DeviceCharacteristics::POWERSAFE_OVERWRITE
            | DeviceCharacteristics::SAFE_APPEND
            | DeviceCharacteristics::SUBPAGE_READ
    }

    fn close(self: Box<Self>) -> Result<()> {
        engine(self.session.close(), Code::IOERR_CLOSE)
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
