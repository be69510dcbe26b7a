//! Reading a database at rest where the engine can't be opened: it would write, and there is no
//! space, or nothing may be written any more. A full disk keeps nobody from reading, as beside
//! stock SQLite. Each transaction tries the engine first, so that all goes on as soon as there is
//! space.

use dash_ffi::{Code, Error, File, LockLevel, Result};

use super::file::ShadowFile;
use super::read_only::ReadOnlyFile;
use crate::errors::to_sqlite;
use crate::leftovers::{self, HEADER};

/// A read transaction without the engine.
pub struct WithoutEngine {
    pub file: ReadOnlyFile,
    /// What is answered to whoever wants to write.
    why: Error,
}

impl WithoutEngine {
    /// SQLite asks for `level`: it may read, not write.
    pub fn raise(&self, level: LockLevel) -> Result<()> {
        if level <= LockLevel::Shared {
            return Ok(());
        }
        let Error { code, message } = self.why.clone();
        // It is open: only a file beside it can't be.
        let code = if code.primary() == Code::CANTOPEN { Code::READONLY } else { code };
        Err(Error { code, message })
    }
}

impl ShadowFile {
    /// Begins to read without the engine.
    ///
    /// # Errors
    ///
    /// `why`, unless what is there can be read.
    pub(super) fn begin_without_engine(&mut self, why: Error) -> Result<()> {
        match self.open_without_engine() {
            Ok(file) => {
                self.without_engine = Some(WithoutEngine { file, why });
                Ok(())
            }
            Err(_) => Err(why),
        }
    }

    fn open_without_engine(&self) -> Result<ReadOnlyFile> {
        self.link.is_read_at_rest();
        let (window, shared) = (self.link.window(), self.shared.clone());
        let file = ReadOnlyFile::open(&self.link.path, false, window, shared);
        let mut file = file.map_err(to_sqlite)?;
        file.lock(LockLevel::Shared)?;
        let mut header = [0; HEADER];
        file.read(&mut header, 0)?;
        if leftovers::says_wal(&header) {
            // The newest commits may be in a log, which has to be dealt with first.
            return Err(Code::CANTOPEN.into());
        }
        Ok(file)
    }

    /// The lock that SQLite has.
    pub(super) fn level(&self) -> dash_shadow::LockLevel {
        match self.without_engine {
            Some(_) => dash_shadow::LockLevel::Shared,
            None => self.link.level(),
        }
    }

    /// Ends that.
    pub(super) fn end_without_engine(&mut self) -> Result<()> {
        self.without_engine.take().map_or(Ok(()), |without| without.file.finish())
    }

    /// What SQLite reads while it has no lock, which is the header alone, once.
    pub(super) fn read_unlocked(
        &self,
        buffer: &mut [u8],
        offset: u64,
        why: Error,
    ) -> Result<usize> {
        let mut file = self.open_without_engine().map_err(|_| why)?;
        let read = file.read(buffer, offset);
        file.finish().and(read)
    }
}
