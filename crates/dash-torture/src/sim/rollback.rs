//! A rollback mode of the real SQLite on an engine: the database is the engine's, its journal is in
//! memory, and the steps of a commit are done when SQLite asks for them.

use std::any::Any;
use std::ffi::OsStr;
use std::sync::Arc;

use dash_ffi::{
    Code, DeviceCharacteristics, Error, File, FileControl, FileKind, Handled, LockLevel, OpenFlags,
    Result, SyncFlags,
};

use crate::sim::commit::SqliteCall;
use crate::sim::subject::{DB, Outcome, Session, SqliteFiles, Trouble, World};

/// See above. For engines that undo by themselves what was not committed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rollback;

impl SqliteFiles for Rollback {
    fn journal_mode(&self) -> &'static str {
        "MEMORY"
    }

    fn undoes_by_writing(&self) -> bool {
        true
    }

    fn open(
        &self,
        world: &Arc<World>,
        _: &OsStr,
        flags: OpenFlags,
    ) -> Result<Option<Box<dyn File>>> {
        if flags.kind() != Some(FileKind::MainDb) {
            return Ok(None);
        }
        let opened = world.subject.open(&world.process, DB, &world.setup);
        let session = engine(opened, Code::CANTOPEN)?;
        let level = LockLevel::None;
        Ok(Some(Box::new(Database { session, level, _world: Arc::clone(world) })))
    }

    fn delete(&self, _: &World, _: &OsStr, _: bool) -> Result<()> {
        Ok(())
    }

    /// There are no journals beside it, hot or not.
    fn exists(&self, _: &World, _: &OsStr) -> Result<bool> {
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
    _world: Arc<World>,
}

impl Database {
    /// The steps of a commit that SQLite asks for with this call.
    fn commit(&mut self, call: SqliteCall, code: Code) -> Result<()> {
        let steps = self.session.commit_steps().iter().enumerate();
        let mut asked = steps.filter(|(_, step)| step.at == call);
        asked.try_for_each(|(at, _)| engine(self.session.commit_step(at, None), code))
    }
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
        self.commit(SqliteCall::Sync, Code::IOERR_FSYNC)
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
            FileControl::Sync { .. } => self.commit(SqliteCall::ControlSync, Code::IOERR_WRITE)?,
            FileControl::CommitPhaseTwo => self.commit(SqliteCall::CommitPhaseTwo, Code::IOERR)?,
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
