//! A rollback mode of the real SQLite on an engine: the database is the engine's, its journal is in
//! memory, and the steps of a commit are done when SQLite asks for them. `PRAGMA rest` closes the
//! engine until SQLite wants the database again.

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
        let world = Arc::clone(world);
        let mut database = Database { session: None, level: LockLevel::None, world };
        database.session()?;
        Ok(Some(Box::new(database)))
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
    /// None: at rest.
    session: Option<Box<dyn Session>>,
    level: LockLevel,
    world: Arc<World>,
}

impl Database {
    /// The engine's; opened, if it was at rest.
    fn session(&mut self) -> Result<&mut dyn Session> {
        let session = match self.session.take() {
            Some(session) => session,
            None => {
                let World { subject, process, setup, .. } = &*self.world;
                engine(subject.open(process, DB, setup), Code::CANTOPEN)?
            }
        };
        Ok(&mut **self.session.insert(session))
    }

    fn rest(&mut self) -> Result<()> {
        match self.session.take_if(|_| self.level == LockLevel::None) {
            Some(session) => engine(session.close(), Code::IOERR_CLOSE),
            None => Err(Code::BUSY.into()),
        }
    }

    /// The steps of a commit that SQLite asks for with this call.
    fn commit(&mut self, call: SqliteCall, code: Code) -> Result<()> {
        let session = self.session()?;
        let steps = session.commit_steps().iter().enumerate();
        let mut asked = steps.filter(|(_, step)| step.at == call);
        asked.try_for_each(|(at, _)| engine(session.commit_step(at, None), code))
    }
}

impl File for Database {
    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        engine(self.session()?.read(buffer, offset), Code::IOERR_READ)
    }

    fn write(&mut self, data: &[u8], offset: u64) -> Result<()> {
        engine(self.session()?.write(data, offset), Code::IOERR_WRITE)
    }

    fn truncate(&mut self, size: u64) -> Result<()> {
        engine(self.session()?.truncate(size), Code::IOERR_TRUNCATE)
    }

    fn sync(&mut self, _: SyncFlags) -> Result<()> {
        self.commit(SqliteCall::Sync, Code::IOERR_FSYNC)
    }

    fn size(&mut self) -> Result<u64> {
        Ok(self.session()?.size())
    }

    fn lock(&mut self, level: LockLevel) -> Result<()> {
        if self.level == LockLevel::None {
            engine(self.session()?.begin_read(), Code::IOERR_LOCK)?;
            self.level = LockLevel::Shared;
        }
        if level >= LockLevel::Reserved && self.level < LockLevel::Reserved {
            engine(self.session()?.reserve(), Code::IOERR_LOCK)?;
            self.level = LockLevel::Reserved;
        }
        if level == LockLevel::Exclusive && self.level < level {
            engine(self.session()?.exclude(), Code::IOERR_LOCK)?;
            self.level = level;
        }
        Ok(())
    }

    fn unlock(&mut self, level: LockLevel) -> Result<()> {
        let Some(session) = &mut self.session else {
            return Ok(());
        };
        let done = match level {
            LockLevel::None => session.end(),
            _ if self.level > LockLevel::Shared => session.end_write(),
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
            FileControl::Pragma(mut pragma) if pragma.name() == "rest" => {
                self.rest()?;
                pragma.answer("at rest");
            }
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
        self.session.map_or(Ok(()), |session| engine(session.close(), Code::IOERR_CLOSE))
    }
}
