//! The file of a database in one of SQLite's rollback modes, as SQLite's unix VFS keeps it
//! (os_unix.c), with locks of an open file description: those of another copy of SQLite in the
//! process are in its way, and no close in the process drops them. It is closed as the engines'
//! files are, so that it drops no lock of stock SQLite, either.
//!
//! The journal is the host's, and its transaction's process's alone.

use std::ffi::CStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dash_engine::database::DatabaseFile;
use dash_engine::error::{Context, Error as EngineError, Operation};
use dash_ffi::{
    Code, DeviceCharacteristics, Error, File, FileControl, FileName, Handled, HostFile, HostVfs,
    LockLevel, OpenFlags, Opened, PagePointer, Result, SyncFlags, Window,
};
use dash_storage::real::{File as RealFile, Real, forks};
use dash_storage::{Directory, File as _, FileId, OpenMode, Storage};

use crate::controls::{
    answer_temporary_name, engine_level, in_chunks, lock_number, set_mmap_size, toggle,
};
use crate::delegate::delegate;
use crate::errors::{errno_of, inherited, to_sqlite};
use crate::file_system;
use crate::leftovers::Neighbours;
use crate::main_file::SECTOR;
use crate::mapping::Maps;
use crate::mode::Parameters;

/// The VFS whose rules these are, and its files' name.
const UNIX: &CStr = c"unix";

/// See the module.
pub struct OwnFile {
    database: DatabaseFile<RealFile>,
    path: PathBuf,
    maps: Maps,
    /// Of the last call that failed.
    errno: i32,
    powersafe_overwrite: bool,
    persist_wal: bool,
    /// Bytes of which the file's length is to be a multiple; 0: any length will do.
    chunk: u64,
}

/// Whether a database that this connection may write is to be kept so: not where a host's VFS has
/// other locks, nor on a file system where these don't hold between two descriptors.
pub fn is_possible(host: &HostVfs, path: &Path, beside: &Neighbours, asked: &Parameters) -> bool {
    host.name() == UNIX && file_system::check(path, beside, asked, false).is_ok()
}

/// A database's file, whose close drops no lock of stock SQLite.
pub(crate) fn open_file(path: &Path, mode: OpenMode) -> io::Result<RealFile> {
    let folder = Real.open_directory(path.parent().unwrap_or(Path::new("/")))?;
    folder.open(path.file_name().unwrap_or_default(), mode)
}

impl OwnFile {
    /// Opens it for reading and writing.
    ///
    /// # Errors
    ///
    /// Those of opening.
    pub fn open(
        path: &Path,
        mode: OpenMode,
        parameters: &Parameters,
        window: Arc<Window>,
    ) -> core::result::Result<Self, EngineError> {
        let shown = path.file_name().unwrap_or_default().to_string_lossy();
        let file = open_file(path, mode).during(Operation::Open, &*shown)?;
        Ok(Self {
            database: DatabaseFile::new(Arc::new(file), shown),
            path: path.to_path_buf(),
            maps: Maps::new(window),
            errno: 0,
            powersafe_overwrite: parameters.psow(),
            persist_wal: false,
            chunk: 0,
        })
    }

    /// Which file it is, whatever the name is by now.
    pub fn id(&self) -> FileId {
        self.database.file().id()
    }

    fn failed(&mut self, error: EngineError) -> Error {
        if !matches!(error, EngineError::Busy) {
            self.errno = errno_of(&error);
        }
        to_sqlite(error)
    }

    /// As [`Self::failed`], of a call that is not to take a lock, and has a code of its own.
    fn failed_with(&mut self, code: Code, error: EngineError) -> Error {
        let error = self.failed(error);
        if error.code == Code::IOERR_LOCK { Error { code, ..error } } else { error }
    }

    /// `SQLITE_FCNTL_SIZE_HINT`: without chunks it grows as it is written.
    fn expect_size(&mut self, size: i64) -> Result<()> {
        let size = in_chunks(u64::try_from(size).unwrap_or(0), self.chunk)?;
        if self.chunk == 0 || size <= self.size()? {
            return Ok(());
        }
        self.database.allocate(size).map_err(|error| self.failed(error))
    }
}

impl File for OwnFile {
    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.database.read(buffer, offset).map_err(|error| self.failed(error))
    }

    fn write(&mut self, data: &[u8], offset: u64) -> Result<()> {
        self.database.write(data, offset).map_err(|error| self.failed(error))
    }

    fn truncate(&mut self, size: u64) -> Result<()> {
        self.maps.forget();
        let size = in_chunks(size, self.chunk)?;
        self.database.truncate(size).map_err(|error| self.failed(error))
    }

    fn sync(&mut self, _: SyncFlags) -> Result<()> {
        self.database.sync().map_err(|error| self.failed(error))
    }

    fn size(&mut self) -> Result<u64> {
        self.database.size().map_err(|error| self.failed(error))
    }

    fn lock(&mut self, level: LockLevel) -> Result<()> {
        self.database.lock(engine_level(level)).map_err(|error| self.failed(error))
    }

    fn unlock(&mut self, level: LockLevel) -> Result<()> {
        let unlocked = self.database.unlock(engine_level(level));
        unlocked.map_err(|error| self.failed_with(Code::IOERR_UNLOCK, error))
    }

    fn check_reserved_lock(&mut self) -> Result<bool> {
        let reserved = self.database.is_reserved();
        reserved.map_err(|error| self.failed_with(Code::IOERR_CHECKRESERVEDLOCK, error))
    }

    fn file_control(&mut self, control: FileControl<'_>) -> Result<Handled> {
        match control {
            FileControl::LockState(level) => *level = lock_number(self.database.level()),
            FileControl::LastErrno(errno) => *errno = self.errno,
            FileControl::SizeHint(size) => self.expect_size(size)?,
            FileControl::ChunkSize(size) => self.chunk = u64::try_from(size).unwrap_or(0),
            FileControl::PersistWal(setting) => toggle(&mut self.persist_wal, setting),
            FileControl::PowersafeOverwrite(setting) => {
                toggle(&mut self.powersafe_overwrite, setting);
            }
            FileControl::VfsName(mut name) => name.answer(&UNIX.to_string_lossy()),
            FileControl::TempFilename(name) => return answer_temporary_name(name),
            FileControl::MmapSize(size) => set_mmap_size(&mut self.maps, size),
            FileControl::HasMoved(moved) => {
                use std::os::unix::fs::MetadataExt;
                let named = self.path.metadata();
                let id = named.map(|it| FileId { device: it.dev(), inode: it.ino() });
                *moved = id.ok() != Some(self.id());
            }
            FileControl::ExternalReader(reader) => *reader = 0,
            _ => return Ok(Handled::No),
        }
        Ok(Handled::Yes)
    }

    fn sector_size(&mut self) -> u32 {
        SECTOR
    }

    fn device_characteristics(&mut self) -> DeviceCharacteristics {
        let promises = DeviceCharacteristics::SUBPAGE_READ;
        match self.powersafe_overwrite {
            true => promises | DeviceCharacteristics::POWERSAFE_OVERWRITE,
            false => promises,
        }
    }

    /// Nobody else writes it while this connection reads, and SQLite gives all pages back where
    /// somebody has before.
    fn fetch(&mut self, offset: u64, amount: usize) -> Result<Option<PagePointer>> {
        let Some(range) = self.maps.range(offset, amount) else {
            return Ok(None);
        };
        // Where mapping fails, reading works.
        Ok(self.maps.page(self.database.file(), &range, Some(u64::MAX)).unwrap_or(None))
    }

    fn unfetch(&mut self, _: u64, page: Option<PagePointer>) -> Result<()> {
        match page {
            Some(_) => self.maps.give_back(),
            None => self.maps.forget(),
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

/// A rollback journal. In a forked child it is its parent's, and SQLite, which has to end the
/// transaction there, gets an error before it has changed or removed it.
pub struct Journal {
    file: HostFile,
    path: PathBuf,
    /// [`forks`] when it was opened.
    forks: u64,
}

impl Journal {
    /// Opens one by the host.
    ///
    /// # Errors
    ///
    /// The host's.
    pub fn open(
        host: &HostVfs,
        name: FileName<'_>,
        path: &Path,
        flags: OpenFlags,
    ) -> Result<Opened> {
        let (file, flags) = host.open(name, flags)?;
        let file = Self { file, path: path.to_path_buf(), forks: forks() };
        Ok(Opened { file: Box::new(file), flags })
    }

    fn file(&mut self) -> Result<&mut HostFile> {
        if self.forks == forks() { Ok(&mut self.file) } else { Err(inherited(&self.path)) }
    }
}

impl File for Journal {
    delegate!([file()?] read write truncate sync size);
    delegate!([file] file_control sector_size device_characteristics);

    fn close(self: Box<Self>) -> Result<()> {
        Box::new(self.file).close()
    }
}
