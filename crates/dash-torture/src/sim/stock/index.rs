//! The shared memory of stock SQLite's WAL mode, `-shm`, as os_unix.c keeps it: regions that are
//! mapped, eight locks, and the dead man's switch by which the first one to come finds out that it
//! is.

use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::path::Path;
use std::ptr::NonNull;

use dash_ffi::{Code, Error, Result, SharedRegion, ShmLock, ShmMapping};
use dash_simulated::{Machine, Memory};
use dash_storage::{Directory, File as _, LockKind, OpenMode, SharedMemory, Storage};

use super::code::code;

/// The first of the eight bytes that are locked (`UNIX_SHM_BASE`).
const LOCKS: u64 = 120;
/// Held by everybody who has it open (`UNIX_SHM_DMS`).
const SWITCH: Range<u64> = 128..129;
/// Bytes of a region (`WALINDEX_PGSZ`).
const REGION: usize = 32_768;

/// The name beside a database.
fn named(database: &OsStr) -> OsString {
    let mut name = database.to_owned();
    name.push("-shm");
    name
}

/// One connection's shared memory.
pub struct Index {
    name: OsString,
    file: dash_simulated::File,
    regions: Vec<Memory>,
}

impl Index {
    /// Opens it; the first one empties it (os_unix.c `unixLockSharedMemory`).
    pub fn open(folder: &dash_simulated::Directory, database: &OsStr) -> Result<Self> {
        let (name, mode) = (named(database), OpenMode::Create { permissions: 0o644 });
        let file = folder.open(&name, mode).map_err(code(Code::CANTOPEN))?;
        let lock = |kind| file.try_lock(SWITCH, kind).map_err(code(Code::IOERR_SHMLOCK));
        if lock(LockKind::Exclusive)? {
            file.set_len(3).map_err(code(Code::IOERR_SHMOPEN))?;
        }
        match lock(LockKind::Shared)? {
            true => Ok(Self { name, file, regions: Vec::new() }),
            false => Err(Code::BUSY.into()),
        }
    }

    /// `xShmMap`.
    pub fn map(&mut self, region: usize, size: usize, extend: bool) -> Result<ShmMapping> {
        if size != REGION {
            return Err(Error::new(Code::IOERR_SHMMAP, format!("a region of {size} bytes")));
        }
        let failed = || code(Code::IOERR_SHMMAP);
        while self.regions.len() <= region {
            let offset = (self.regions.len() * REGION) as u64;
            let len = self.file.metadata().map_err(failed())?.len;
            if len < offset + REGION as u64 && !extend {
                return Ok(ShmMapping { region: None, read_only: false });
            }
            let mapped = self.file.shared_region(offset, REGION / 8).map_err(failed())?;
            self.regions.push(mapped);
        }
        let start = NonNull::new(self.regions[region].start());
        // SAFETY: a region of 4,096 words lies in one piece, which moves as little as the words do,
        // and is held until `self` is dropped, at xShmUnmap or after the file was closed.
        #[expect(unsafe_code, reason = "SQLite has a pointer to it")]
        let region = start.map(|start| unsafe { SharedRegion::new(start) });
        Ok(ShmMapping { region, read_only: false })
    }

    /// `xShmLock`.
    pub fn lock(&self, slot: usize, count: usize, lock: ShmLock) -> Result<()> {
        let range = LOCKS + slot as u64..LOCKS + (slot + count) as u64;
        let kind = match lock {
            ShmLock::LockShared => LockKind::Shared,
            ShmLock::LockExclusive => LockKind::Exclusive,
            ShmLock::UnlockShared | ShmLock::UnlockExclusive => {
                return self.file.unlock(range).map_err(code(Code::IOERR_SHMLOCK));
            }
        };
        match self.file.try_lock(range, kind).map_err(code(Code::IOERR_SHMLOCK))? {
            true => Ok(()),
            false => Err(Code::BUSY.into()),
        }
    }

    /// `xShmUnmap`, of the last one.
    pub fn delete(self, folder: &dash_simulated::Directory) -> Result<()> {
        // As in os_unix.c: whether it worked is nobody's concern.
        drop(folder.unlink(&self.name));
        Ok(())
    }
}

/// What was in the shared memory of a database at some moment: a process that is dead, and whose
/// SQLite goes on for some instructions, may write there what nobody must see.
pub struct Saved {
    machine: Machine,
    name: OsString,
    /// The regions, in words.
    regions: Vec<Vec<u64>>,
}

impl Saved {
    /// Looks.
    pub fn take(machine: &Machine, database: &str) -> Self {
        let name = named(OsStr::new(database.trim_start_matches('/')));
        let read = |region: Memory| {
            let word = |at| region.word(at).load(std::sync::atomic::Ordering::SeqCst);
            (0..region.len()).map(word).collect()
        };
        let regions = regions(machine, &name).into_iter().map(read).collect();
        Self { machine: machine.clone(), name, regions }
    }

    /// Puts it back.
    pub fn restore(self) {
        for (region, words) in regions(&self.machine, &self.name).into_iter().zip(self.regions) {
            for (at, word) in words.into_iter().enumerate() {
                region.word(at).store(word, std::sync::atomic::Ordering::SeqCst);
            }
        }
    }
}

/// All regions that there are.
fn regions(machine: &Machine, name: &OsStr) -> Vec<Memory> {
    let file = machine
        .process()
        .open_directory(Path::new("/"))
        .and_then(|folder| folder.open(name, OpenMode::ReadWrite));
    let Ok(file) = file else { return Vec::new() };
    let len = file.metadata().map_or(0, |found| found.len);
    let offsets = (0..len / REGION as u64).map(|at| at * REGION as u64);
    offsets.filter_map(|offset| file.shared_region(offset, REGION / 8).ok()).collect()
}
