//! A database in mode shadow that is only read: `mode=ro`, `immutable=1`, media and folders that can't be
//! written.

use std::path::Path;
use std::sync::Arc;

use dash_ffi::{
    Code, DeviceCharacteristics, Error, FileControl, Handled, LockLevel, PagePointer, Result,
    Window,
};
use dash_shadow::{Error as EngineError, ReadOnly};
use dash_storage::real::Real;

use crate::errors::{errno_of, to_sqlite};
use crate::mapping::Maps;
use crate::shadow_file::engine_level;
use crate::wake::Reader;

/// An open database.
pub struct ReadOnlyFile {
    engine: ReadOnly<Real>,
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
        Ok(Self { engine, maps: Maps::new(window), errno: 0, immutable, why: None, reader: None })
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

    pub(crate) fn lock(&mut self, level: LockLevel) -> Result<()> {
        self.engine.lock(engine_level(level)).map_err(|error| self.failed(error))
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
