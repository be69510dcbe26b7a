//! The shim peer: the crate `sqlite-vfs` passing through to ordinary files. It shows what a VFS in
//! Rust costs beside SQLite's own, and dash's boundary beside it.
//!
//! One connection at a time: locks are only kept in mind, as the crate's own example does without
//! WAL.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use sqlite_vfs::wip::{WalIndex, WalIndexLock};
use sqlite_vfs::{DatabaseHandle, LockKind, OpenAccess, OpenKind, Vfs};

use crate::failure::{Failure, Result};

/// Its name as a VFS.
pub const NAME: &str = "through";

/// Registers it, once in a process.
pub fn register() -> Result<()> {
    static DONE: OnceLock<std::result::Result<(), String>> = OnceLock::new();
    DONE.get_or_init(|| {
        sqlite_vfs::register(NAME, Through, false).map_err(|error| error.to_string())
    })
    .clone()
    .map_err(|error| Failure::new(format!("registering the crate sqlite-vfs: {error}")))
}

struct Through;

struct Handle {
    file: File,
    lock: LockKind,
    /// The folder to flush with the first flush of a journal, as SQLite's own VFS does.
    folder: Option<File>,
}

/// There is none: the peer runs in a rollback mode.
struct NoIndex;

impl Vfs for Through {
    type Handle = Handle;

    fn open(&self, db: &str, options: sqlite_vfs::OpenOptions) -> std::io::Result<Handle> {
        let mut open = OpenOptions::new();
        open.read(true);
        match options.access {
            OpenAccess::Read => &mut open,
            OpenAccess::Write => open.write(true),
            OpenAccess::Create => open.write(true).create(true),
            OpenAccess::CreateNew => open.write(true).create_new(true),
        };
        if options.kind == OpenKind::Wal {
            return Err(Error::new(ErrorKind::Unsupported, "no WAL through this peer"));
        }
        let folder = match (options.kind, Path::new(db).parent()) {
            (OpenKind::MainJournal, Some(folder)) => Some(File::open(folder)?),
            _ => None,
        };
        Ok(Handle { file: open.open(db)?, lock: LockKind::None, folder })
    }

    fn delete(&self, db: &str) -> std::io::Result<()> {
        std::fs::remove_file(db)
    }

    fn exists(&self, db: &str) -> std::io::Result<bool> {
        std::fs::exists(db)
    }

    fn temporary_name(&self) -> String {
        let folder = std::env::temp_dir();
        folder.join(format!("dash-bench-{}", std::process::id())).to_string_lossy().into_owned()
    }

    fn random(&self, buffer: &mut [i8]) {
        // A number of no meaning here: it names journals and row ids of tables without one.
        for (at, byte) in buffer.iter_mut().enumerate() {
            *byte = i8::try_from(at % 127).unwrap_or(0);
        }
    }

    fn sleep(&self, duration: Duration) -> Duration {
        std::thread::sleep(duration);
        duration
    }

    fn access(&self, db: &str, _write: bool) -> std::io::Result<bool> {
        std::fs::exists(db)
    }
}

impl DatabaseHandle for Handle {
    type WalIndex = NoIndex;

    fn size(&self) -> std::io::Result<u64> {
        self.file.metadata().map(|found| found.len())
    }

    fn read_exact_at(&mut self, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    fn write_all_at(&mut self, buffer: &[u8], offset: u64) -> std::io::Result<()> {
        self.file.write_all_at(buffer, offset)
    }

    fn sync(&mut self, data_only: bool) -> std::io::Result<()> {
        if data_only { self.file.sync_data() } else { self.file.sync_all() }?;
        self.folder.take().map_or(Ok(()), |folder| folder.sync_all())
    }

    fn set_len(&mut self, size: u64) -> std::io::Result<()> {
        self.file.set_len(size)
    }

    fn lock(&mut self, lock: LockKind) -> std::io::Result<bool> {
        self.lock = lock;
        Ok(true)
    }

    fn reserved(&mut self) -> std::io::Result<bool> {
        Ok(matches!(self.lock, LockKind::Reserved | LockKind::Pending | LockKind::Exclusive))
    }

    fn current_lock(&self) -> std::io::Result<LockKind> {
        Ok(self.lock)
    }

    fn wal_index(&self, _readonly: bool) -> std::io::Result<NoIndex> {
        Err(Error::new(ErrorKind::Unsupported, "no WAL through this peer"))
    }
}

impl WalIndex for NoIndex {
    fn enabled() -> bool {
        false
    }

    fn map(&mut self, _region: u32) -> std::io::Result<[u8; 32768]> {
        Err(Error::from(ErrorKind::Unsupported))
    }

    fn lock(&mut self, _locks: Range<u8>, _lock: WalIndexLock) -> std::io::Result<bool> {
        Ok(false)
    }

    fn delete(self) -> std::io::Result<()> {
        Ok(())
    }
}
