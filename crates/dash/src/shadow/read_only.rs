//! A database in mode shadow that is only read: `mode=ro`, `immutable=1`, media and folders that
//! can't be written.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dash_ffi::{
    Code, DeviceCharacteristics, Error, File, FileControl, Handled, HostVfs, LockLevel,
    PagePointer, Result, SyncFlags, Window,
};
use dash_shadow::{Error as EngineError, ReadOnly};
use dash_storage::FileId;
use dash_storage::real::Real;

use super::name::MODE;
use super::parameters;
use crate::controls::{answer_temporary_name, engine_level, set_mmap_size};
use crate::errors::{errno_of, to_sqlite};
use crate::leftovers::Neighbours;
use crate::main_file::SECTOR;
use crate::mapping::Maps;
use crate::mode::Shared;
use crate::mode::{Database, Parameters, Switching};
use crate::wake::Reader;

/// An open database.
pub struct ReadOnlyFile {
    engine: ReadOnly<Real>,
    path: PathBuf,
    neighbours: Neighbours,
    maps: Maps,
    errno: i32,
    immutable: bool,
    /// Why it can't be written, where somebody wanted to.
    pub(crate) why: Option<String>,
    shared: Arc<Shared>,
    /// Since when it reads.
    reader: Option<Reader>,
}

impl ReadOnlyFile {
    /// Opens a database for reading. With `immutable` SQLite takes no locks, so the one snapshot is
    /// held from here on.
    pub fn open(
        path: &Path,
        immutable: bool,
        window: Arc<Window>,
        shared: Arc<Shared>,
    ) -> core::result::Result<Self, EngineError> {
        let mut engine = ReadOnly::open(&Real, path, immutable)?;
        if immutable {
            engine.lock(dash_shadow::LockLevel::Shared)?;
        }
        Ok(Self {
            engine,
            path: path.to_path_buf(),
            neighbours: Neighbours::of(path),
            maps: Maps::new(window),
            errno: 0,
            immutable,
            why: None,
            shared,
            reader: None,
        })
    }

    /// What a change is answered.
    pub(crate) fn refusal(&self) -> Error {
        let refusal = refusal();
        match &self.why {
            Some(why) => Error::new(refusal.code, format!("{refusal}: {why}")),
            None => refusal,
        }
    }

    /// Whether the shadow lets in who has no right to the database, and nothing could be done about
    /// that.
    pub(crate) fn is_exposed(&self) -> bool {
        self.engine.is_exposed()
    }

    /// Refuses a copy in WAL mode that has not the name by which stock SQLite, which has to read
    /// it, would find it.
    ///
    /// # Errors
    ///
    /// `SQLITE_READONLY_RECOVERY`
    pub(crate) fn refuse_unnamed_wal(&self) -> Result<()> {
        if self.engine.is_named().map_err(to_sqlite)? {
            return Ok(());
        }
        let shown = self.path.display();
        Err(Error::new(
            Code::READONLY_RECOVERY,
            format!(
                "{shown}-shadow is the newer one of the two copies since a power loss, and it is in WAL mode; this connection \
                 may only read: open {shown} once for writing through dash, which gives it its name back"
            ),
        ))
    }

    fn failed(&mut self, error: EngineError) -> Error {
        self.errno = errno_of(&error);
        to_sqlite(error)
    }

    /// This connection keeps no stock writer out, so it looks what one left, as stock SQLite does:
    /// under its lock nobody writes, so what is there now stays as it is.
    fn begin(&mut self, level: LockLevel) -> Result<()> {
        let begins = self.engine.level() == dash_shadow::LockLevel::None;
        let locked = self.engine.lock(engine_level(level));
        if begins && !self.immutable && !matches!(locked, Err(EngineError::Busy)) {
            let engine = &self.engine;
            let reserved = || engine.is_reserved_by_stock().map_err(to_sqlite);
            if let Err(error) = self.neighbours.refuse_half_written(&self.path, false, reserved) {
                self.lower(LockLevel::None)?;
                return Err(error);
            }
        }
        locked.map_err(|error| self.failed(error))
    }

    fn lower(&mut self, level: LockLevel) -> Result<()> {
        if self.immutable {
            return Ok(());
        }
        self.engine.unlock(engine_level(level)).map_err(|error| self.failed(error))
    }

    /// Closes the engine.
    pub(super) fn finish(self) -> Result<()> {
        self.engine.close().map_err(to_sqlite)
    }
}

impl Database for ReadOnlyFile {
    fn engine(&self) -> &'static str {
        MODE.engine()
    }

    fn pragma(&mut self, name: &str, _: Option<&str>) -> Option<Result<String>> {
        parameters::PRAGMAS.contains(&name).then(|| {
            let path = self.path.display();
            let message = format!("{name}: {path} was opened for reading only");
            Err(Error::new(Code::ERROR, message))
        })
    }

    fn is_of(&self, file: FileId) -> Option<bool> {
        Some(self.engine.is_of(file))
    }

    fn may_leave(&mut self) -> Result<()> {
        Err(self.refusal())
    }

    fn leave(self: Box<Self>, _: &mut Parameters, _: &Path, _: &HostVfs) -> Result<()> {
        Err(self.refusal())
    }

    /// Each transaction looks up anew which file it reads.
    fn renew(&mut self, switching: &Switching<'_>, _: LockLevel) -> Result<Box<dyn Database>> {
        let Switching { path, window, membership, .. } = switching;
        let shared = Arc::clone(membership.shared());
        let file = Self::open(path, self.immutable, Arc::clone(window), shared);
        let mut file = file.map_err(to_sqlite)?;
        file.why = self.why.take();
        Ok(Box::new(file))
    }

    fn end(self: Box<Self>, _: &HostVfs) -> Result<()> {
        self.finish()
    }
}

impl File for ReadOnlyFile {
    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.engine.read(buffer, offset).map_err(|error| self.failed(error))
    }

    fn write(&mut self, _: &[u8], _: u64) -> Result<()> {
        Err(refusal())
    }

    fn truncate(&mut self, _: u64) -> Result<()> {
        Err(refusal())
    }

    fn sync(&mut self, _: SyncFlags) -> Result<()> {
        Ok(())
    }

    fn size(&mut self) -> Result<u64> {
        Ok(self.engine.size())
    }

    fn lock(&mut self, level: LockLevel) -> Result<()> {
        if level == LockLevel::Shared {
            self.reader = Some(self.shared.queue.reader(None));
        }
        self.begin(level)
    }

    fn unlock(&mut self, level: LockLevel) -> Result<()> {
        let unlocked = self.lower(level);
        if let Some(reader) = self.reader.take_if(|_| level == LockLevel::None) {
            self.shared.queue.reader_left(reader, || u64::MAX);
        }
        unlocked
    }

    /// Whether a stock writer is at work.
    fn check_reserved_lock(&mut self) -> Result<bool> {
        self.engine.is_reserved_by_stock().map_err(|error| self.failed(error))
    }

    fn file_control(&mut self, control: FileControl<'_>) -> Result<Handled> {
        match control {
            FileControl::VfsName(mut name) => name.answer("shadow"),
            FileControl::MmapSize(size) => set_mmap_size(&mut self.maps, size),
            FileControl::HasMoved(moved) => *moved = false,
            FileControl::LastErrno(errno) => *errno = self.errno,
            FileControl::TempFilename(name) => return answer_temporary_name(name),
            FileControl::BusyHandler(_) | FileControl::Pdb(_) => {}
            FileControl::Sync { .. } | FileControl::CommitPhaseTwo => {}
            _ => return Ok(Handled::No),
        }
        Ok(Handled::Yes)
    }

    fn sector_size(&mut self) -> u32 {
        SECTOR
    }

    fn device_characteristics(&mut self) -> DeviceCharacteristics {
        let promises = DeviceCharacteristics::POWERSAFE_OVERWRITE
            .union(DeviceCharacteristics::SAFE_APPEND)
            .union(DeviceCharacteristics::SUBPAGE_READ);
        if self.immutable { promises | DeviceCharacteristics::IMMUTABLE } else { promises }
    }

    fn fetch(&mut self, offset: u64, amount: usize) -> Result<Option<PagePointer>> {
        let Some(range) = self.maps.range(offset, amount) else {
            return Ok(None);
        };
        match self.engine.mappable(range.clone()) {
            Some(file) => {
                let all = Some(self.engine.size());
                Ok(self.maps.page(file, &range, all).unwrap_or(None))
            }
            None => Ok(None),
        }
    }

    fn unfetch(&mut self, _: u64, page: Option<PagePointer>) -> Result<()> {
        if page.is_some() {
            self.maps.give_back();
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.finish()
    }
}

/// What a write is answered.
pub(crate) fn refusal() -> Error {
    Error::new(Code::READONLY, "the database was opened for reading only")
}
