//! A database in mode shadow that is only read: `mode=ro`, `immutable=1`, media and folders that can't be
//! written.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dash_ffi::{
    Code, DeviceCharacteristics, Error, FileControl, Handled, LockLevel, PagePointer, Result,
    Window,
};
use dash_shadow::{Error as EngineError, ReadOnly};
use dash_storage::real::Real;

use crate::errors::{errno_of, to_sqlite};
use crate::leftovers::Neighbours;
use crate::mapping::Maps;
use crate::shadow_control::temporary_name;
use crate::shadow_file::engine_level;
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
    /// Since when it reads.
    pub(crate) reader: Option<Reader>,
}

impl ReadOnlyFile {
    /// Opens a database for reading. With `immutable` SQLite takes no locks, so the one snapshot is held
    /// from here on.
    pub fn open(
        path: &Path,
        immutable: bool,
        window: Arc<Window>,
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

    /// Whether the shadow lets in who has no right to the database, and nothing could be done about that.
    pub(crate) fn is_exposed(&self) -> bool {
        self.engine.is_exposed()
    }

    /// Refuses a copy in WAL mode that has not the name by which stock SQLite, which has to read it, would find it.
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

    pub(crate) fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.engine.read(buffer, offset).map_err(|error| self.failed(error))
    }

    pub(crate) fn size(&self) -> u64 {
        self.engine.size()
    }

    /// This connection keeps no stock writer out, so it looks what one left, as stock SQLite does:
    /// under its lock nobody writes, so what is there now stays as it is.
    pub(crate) fn lock(&mut self, level: LockLevel) -> Result<()> {
        let begins = self.engine.level() == dash_shadow::LockLevel::None;
        let locked = self.engine.lock(engine_level(level));
        if begins && !self.immutable && !matches!(locked, Err(EngineError::Busy)) {
            let engine = &self.engine;
            let reserved = || engine.is_reserved_by_stock().map_err(to_sqlite);
            if let Err(error) = self.neighbours.refuse_half_written(&self.path, false, reserved) {
                self.unlock(LockLevel::None)?;
                return Err(error);
            }
        }
        locked.map_err(|error| self.failed(error))
    }

    /// Whether a stock writer is at work.
    pub(crate) fn check_reserved_lock(&mut self) -> Result<bool> {
        self.engine.is_reserved_by_stock().map_err(|error| self.failed(error))
    }

    pub(crate) fn unlock(&mut self, level: LockLevel) -> Result<()> {
        if self.immutable {
            return Ok(());
        }
        self.engine.unlock(engine_level(level)).map_err(|error| self.failed(error))
    }

    pub(crate) fn device_characteristics(&self) -> DeviceCharacteristics {
        let promises = DeviceCharacteristics::POWERSAFE_OVERWRITE
            .union(DeviceCharacteristics::SAFE_APPEND)
            .union(DeviceCharacteristics::SUBPAGE_READ);
        if self.immutable { promises | DeviceCharacteristics::IMMUTABLE } else { promises }
    }

    pub(crate) fn fetch(&mut self, offset: u64, amount: usize) -> Result<Option<PagePointer>> {
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

    pub(crate) fn unfetch(&mut self, page: Option<PagePointer>) {
        if page.is_some() {
            self.maps.give_back();
        }
    }

    pub(crate) fn control(&mut self, control: FileControl<'_>) -> Result<Handled> {
        match control {
            FileControl::VfsName(mut name) => name.answer("shadow"),
            FileControl::MmapSize(size) => {
                let old = match u64::try_from(*size) {
                    Ok(limit) => self.maps.set_limit(limit),
                    Err(_) => self.maps.limit(),
                };
                *size = i64::try_from(old).unwrap_or(i64::MAX);
            }
            FileControl::HasMoved(moved) => *moved = false,
            FileControl::LastErrno(errno) => *errno = self.errno,
            FileControl::TempFilename(mut name) => name.answer(&temporary_name())?,
            FileControl::BusyHandler(_) | FileControl::Pdb(_) => {}
            FileControl::Sync { .. } | FileControl::CommitPhaseTwo => {}
            _ => return Ok(Handled::No),
        }
        Ok(Handled::Yes)
    }

    pub(crate) fn close(self) -> Result<()> {
        self.engine.close().map_err(to_sqlite)
    }
}

/// What a write is answered.
pub(crate) fn refusal() -> Error {
    Error::new(Code::READONLY, "the database was opened for reading only")
}
