//! Reading a database at rest where the engine can't be opened: it would write, and there is no
//! space, or nothing may be written any more. A full disk keeps nobody from reading, as beside
//! stock SQLite. Each transaction tries the engine first, so that all goes on as soon as there is
//! space.

use std::sync::Arc;

use dash_ffi::{Code, Error, File, LockLevel, Result};

use super::read_only::ReadOnlyFile;
use crate::errors::to_sqlite;
use crate::leftovers::{self, HEADER};
use crate::rollback::engine::Rollback;
use crate::rollback::link::Link;

/// A read transaction without the engine.
pub struct WithoutEngine {
    pub file: ReadOnlyFile,
    /// What is answered to whoever wants to write.
    why: Error,
}

impl WithoutEngine {
    /// Begins to read without the engine.
    ///
    /// # Errors
    ///
    /// `why`, unless what is there can be read.
    pub fn begin<E: Rollback>(link: &Link<E>, why: Error) -> Result<Self> {
        match open(link) {
            Ok(file) => Ok(Self { file, why }),
            Err(_) => Err(why),
        }
    }

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

/// What SQLite reads while it has no lock, which is the header alone, once.
///
/// # Errors
///
/// `why`, unless what is there can be read.
pub fn read_unlocked<E: Rollback>(
    link: &Link<E>,
    buffer: &mut [u8],
    offset: u64,
    why: Error,
) -> Result<usize> {
    let mut file = open(link).map_err(|_| why)?;
    let read = file.read(buffer, offset);
    file.finish().and(read)
}

fn open<E: Rollback>(link: &Link<E>) -> Result<ReadOnlyFile> {
    link.is_read_at_rest();
    let file = ReadOnlyFile::open(&link.path, false, link.window(), Arc::clone(link.shared()));
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
