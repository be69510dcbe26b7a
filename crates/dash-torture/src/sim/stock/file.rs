//! The files of stock SQLite: what `unix` does at each call (os_unix.c), on a simulated machine.

use std::ffi::{OsStr, OsString};
use std::io;
use std::ops::Range;
use std::path::Path;

use dash_ffi::{
    AccessCheck, Code, DeviceCharacteristics, File, FileControl, FileKind, Handled, LockLevel,
    OpenFlags, Result, ShmLock, ShmMapping, SyncFlags,
};
use dash_simulated::Simulated;
use dash_storage::{Directory, File as _, LockKind, OpenMode, Storage};

use super::code::code;
use super::index::Index;

/// Bytes that SQLite locks (os.h).
const PENDING: Range<u64> = 0x4000_0000..0x4000_0001;
const RESERVED: Range<u64> = 0x4000_0001..0x4000_0002;
const SHARED: Range<u64> = 0x4000_0002..0x4000_0200;
const ALL: Range<u64> = PENDING.start..SHARED.end;

/// How a process opens files.
#[derive(Clone)]
pub struct Files {
    /// The process.
    pub process: Simulated,
    /// Whether they have shared memory.
    pub shared_memory: bool,
}

/// `xOpen`.
///
/// # Errors
///
/// `SQLITE_CANTOPEN`.
pub fn open(files: &Files, name: &OsStr, flags: OpenFlags) -> Result<Handle> {
    let folder = files.process.open_directory(Path::new("/")).map_err(code(Code::CANTOPEN))?;
    let create = flags.contains(OpenFlags::CREATE);
    let mode = match flags.contains(OpenFlags::READWRITE) {
        _ if create => OpenMode::Create { permissions: 0o644 },
        true => OpenMode::ReadWrite,
        false => OpenMode::Read,
    };
    let file = folder.open(name, mode).map_err(code(Code::CANTOPEN))?;
    let is_database = flags.kind() == Some(FileKind::MainDb);
    let is_journal = flags.kind() == Some(FileKind::MainJournal);
    Ok(Handle {
        folder,
        name: name.to_owned(),
        file,
        level: LockLevel::None,
        sync_folder: is_journal || create && !is_database,
        keeps_log: false,
        is_database,
        shared_memory: files.shared_memory && is_database,
        index: None,
    })
}

/// `xDelete`.
///
/// # Errors
///
/// `SQLITE_IOERR_DELETE` and its kind.
pub fn delete(process: &Simulated, name: &OsStr, flush_folder: bool) -> Result<()> {
    let folder = process.open_directory(Path::new("/")).map_err(code(Code::IOERR_DELETE))?;
    folder.unlink(name).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Code::IOERR_DELETE_NOENT.into(),
        _ => code(Code::IOERR_DELETE)(error),
    })?;
    if flush_folder { folder.flush().map_err(code(Code::IOERR_DIR_FSYNC)) } else { Ok(()) }
}

/// `xAccess`: an empty file is as good as none (os_unix.c `unixAccess`).
///
/// # Errors
///
/// `SQLITE_IOERR_ACCESS`.
pub fn access(process: &Simulated, name: &OsStr, check: AccessCheck) -> Result<bool> {
    let folder = process.open_directory(Path::new("/")).map_err(code(Code::IOERR_ACCESS))?;
    let found = folder.metadata(name).map_err(code(Code::IOERR_ACCESS))?;
    let full = |found: dash_storage::Metadata| {
        found.kind != dash_storage::FileKind::Regular || found.len > 0
    };
    Ok(found.is_some_and(|found| check != AccessCheck::Exists || full(found)))
}

/// `SQLITE_FCNTL_PERSIST_WAL`: sets a flag, or answers it.
pub fn keep_log(flag: &mut bool, answer: &mut i32) {
    match *answer {
        0 => *flag = false,
        1.. => *flag = true,
        _ => *answer = i32::from(*flag),
    }
}

/// An open file of stock SQLite's.
pub struct Handle {
    folder: dash_simulated::Directory,
    name: OsString,
    file: dash_simulated::File,
    level: LockLevel,
    /// The first sync of a journal flushes its folder, too. SQLite does that for one that it made
    /// itself. Where it goes on with one that a killed process had made (pager.c `pager_playback`
    /// in EXCLUSIVE mode), it relies on file systems to keep the name of a new file with its
    /// fsync, as they do; the model's do not.
    sync_folder: bool,
    /// Whether the log stays when the last one closes.
    keeps_log: bool,
    is_database: bool,
    shared_memory: bool,
    index: Option<Index>,
}

impl Handle {
    /// Its first sync does not flush its folder.
    #[cfg(test)]
    pub fn forget_folder(&mut self) {
        self.sync_folder = false;
    }

    /// The shared memory of this database, opened at its first use.
    fn index(&mut self) -> Result<&mut Index> {
        let opened = match self.index.take() {
            Some(index) => index,
            None => Index::open(&self.folder, &self.name)?,
        };
        Ok(self.index.insert(opened))
    }

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

    /// SQLite cuts the database just after it removed the journal (`pager_end_transaction` of
    /// pager.c), in which the pages that are cut off need not be. It relies on file systems to keep
    /// these two in order, as those with a journal do; the model's do not.
    fn truncate(&mut self, size: u64) -> Result<()> {
        if self.is_database && size < self.size()? {
            self.folder.flush().map_err(code(Code::IOERR_DIR_FSYNC))?;
        }
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
            FileControl::PersistWal(answer) => keep_log(&mut self.keeps_log, answer),
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

    fn has_shared_memory(&self) -> bool {
        self.shared_memory
    }

    fn shm_map(&mut self, region: usize, size: usize, extend: bool) -> Result<ShmMapping> {
        self.index()?.map(region, size, extend)
    }

    fn shm_lock(&mut self, slot: usize, count: usize, lock: ShmLock) -> Result<()> {
        self.index()?.lock(slot, count, lock)
    }

    fn shm_unmap(&mut self, delete: bool) -> Result<()> {
        match self.index.take() {
            Some(index) if delete => index.delete(&self.folder),
            _ => Ok(()),
        }
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
