//! The database file of one connection: reading, writing, and SQLite's five lock levels by the
//! protocol of os_unix.c (`unixLock`, `posixUnlock`), with locks of an open file description.
//!
//! | level | holds |
//! |---|---|
//! | SHARED | the SHARED range, shared; PENDING, shared, only while that is taken |
//! | RESERVED | and RESERVED, exclusive |
//! | PENDING | and PENDING, exclusive: new readers stay out |
//! | EXCLUSIVE | the SHARED range, exclusive |
//!
//! Each connection has a description of its own, so the kernel keeps those of one process apart,
//! too, whatever copy of SQLite each is of, and nothing need be counted here.
//!
//! Beside the level a connection may hold RESERVED, shared ([`DatabaseFile::hold_reserved`]). A
//! reader of stock SQLite that meets the name fence asks whether anybody holds RESERVED, which
//! tells it that this is no hot journal; and its writers in rollback mode stay out.

use crate::error::{Context, Error, Operation, Result};
use crate::io::read_some;
use crate::locks::{LockLevel, PENDING, RESERVED, SHARED, share};
use dash_storage::{File, LockKind};
use std::ops::Range;
use std::sync::Arc;

/// The database file of one connection, with its own open file description.
pub struct DatabaseFile<F: File> {
    file: Arc<F>,
    /// What messages call it.
    name: String,
    level: LockLevel,
    /// RESERVED is held exclusively. Not so at EXCLUSIVE if that was asked for at SHARED.
    reserved: bool,
    /// RESERVED is held shared at every level below.
    hold: bool,
}

impl<F: File> DatabaseFile<F> {
    /// A file on which this description holds no locks. `name` is for messages.
    #[must_use]
    pub fn new(file: Arc<F>, name: impl Into<String>) -> Self {
        let level = LockLevel::None;
        Self { file, name: name.into(), level, reserved: false, hold: false }
    }

    /// The file.
    pub fn file(&self) -> &Arc<F> {
        &self.file
    }

    /// Reads up to `buffer.len()` bytes; fewer only at the end of the file.
    ///
    /// # Errors
    ///
    /// Those of the file.
    pub fn read(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        read_some(&*self.file, buffer, offset).during(Operation::Read, &self.name)
    }

    /// Writes all of `data` into the page cache.
    ///
    /// # Errors
    ///
    /// Those of the file.
    pub fn write(&self, data: &[u8], offset: u64) -> Result<()> {
        self.file.write_at(data, offset).during(Operation::Write, &self.name)
    }

    /// Sets the length in bytes.
    ///
    /// # Errors
    ///
    /// Those of the file.
    pub fn truncate(&self, size: u64) -> Result<()> {
        self.file.set_len(size).during(Operation::Resize, &self.name)
    }

    /// Extends it to so many bytes, with blocks reserved.
    ///
    /// # Errors
    ///
    /// Those of the file.
    pub fn allocate(&self, size: u64) -> Result<()> {
        self.file.allocate(size).during(Operation::Resize, &self.name)
    }

    /// The length in bytes.
    ///
    /// # Errors
    ///
    /// Those of the file.
    pub fn size(&self) -> Result<u64> {
        Ok(self.file.metadata().during(Operation::Stat, &self.name)?.len)
    }

    /// `xSync`.
    ///
    /// # Errors
    ///
    /// Those of the file.
    pub fn sync(&self) -> Result<()> {
        self.file.flush().during(Operation::Flush, &self.name)
    }

    /// The level held.
    pub fn level(&self) -> LockLevel {
        self.level
    }

    /// Raises the lock; a level that is held already is nothing to do. SQLite asks for SHARED at
    /// NONE, for RESERVED at SHARED, for EXCLUSIVE at any but NONE, and never for PENDING; where
    /// SHARED is missing it is taken first.
    ///
    /// # Errors
    ///
    /// `Busy` where somebody is in the way: [`Self::level`] is what was got. A failed EXCLUSIVE
    /// that was asked for at RESERVED leaves PENDING: no reader begins, those that read may end.
    pub fn lock(&mut self, level: LockLevel) -> Result<()> {
        if self.level >= level {
            return Ok(());
        }
        if self.level == LockLevel::None {
            self.begin_reading()?;
        }
        match level {
            LockLevel::None | LockLevel::Shared => Ok(()),
            LockLevel::Reserved => self.reserve(),
            LockLevel::Pending | LockLevel::Exclusive => self.exclude(),
        }
    }

    fn begin_reading(&mut self) -> Result<()> {
        // A writer that holds PENDING waits for readers to end: no new one begins.
        self.take(PENDING, LockKind::Shared)?;
        let got = self.take(SHARED, LockKind::Shared);
        if let Err(error) = self.release(PENDING) {
            // At NONE nothing is left that would keep writers out until this one is closed.
            self.release(SHARED)?;
            return Err(error);
        }
        got?;
        self.level = LockLevel::Shared;
        Ok(())
    }

    fn reserve(&mut self) -> Result<()> {
        // Where RESERVED is held shared this converts it: nobody comes between.
        self.take(RESERVED, LockKind::Exclusive)?;
        self.reserved = true;
        self.level = LockLevel::Reserved;
        Ok(())
    }

    fn exclude(&mut self) -> Result<()> {
        if self.level == LockLevel::Reserved {
            self.take(PENDING, LockKind::Exclusive)?;
            self.level = LockLevel::Pending;
        }
        self.take(SHARED, LockKind::Exclusive)?;
        self.level = LockLevel::Exclusive;
        Ok(())
    }

    /// Lowers the lock to SHARED or NONE; a level below that stays. What is held of RESERVED by
    /// [`Self::hold_reserved`] stays, too.
    ///
    /// # Errors
    ///
    /// Those of the file.
    pub fn unlock(&mut self, level: LockLevel) -> Result<()> {
        if self.level > LockLevel::Shared && level <= LockLevel::Shared {
            if level == LockLevel::Shared {
                self.take(SHARED, LockKind::Shared)?;
            }
            self.give_reserved_back()?;
            self.level = LockLevel::Shared;
        }
        if self.level == LockLevel::Shared && level == LockLevel::None {
            self.release(SHARED)?;
            self.level = LockLevel::None;
        }
        Ok(())
    }

    /// And PENDING, with which it goes in one call.
    fn give_reserved_back(&mut self) -> Result<()> {
        match (self.reserved, self.hold) {
            (true, false) => self.release(PENDING.start..RESERVED.end)?,
            (true, true) => {
                self.take(RESERVED, LockKind::Shared)?;
                self.release(PENDING)?;
            }
            (false, _) => self.release(PENDING)?,
        }
        self.reserved = false;
        Ok(())
    }

    /// Whether this or any other connection, stock ones included, holds RESERVED, shared or not;
    /// then a journal is not hot. What this one holds only to keep stock writers out is not told:
    /// others' is.
    ///
    /// # Errors
    ///
    /// Those of the file.
    pub fn is_reserved(&self) -> Result<bool> {
        if self.level > LockLevel::Shared {
            return Ok(true);
        }
        let conflict = self.file.lock_conflict(RESERVED, LockKind::Exclusive);
        Ok(conflict.during(Operation::Lock, &self.name)?.is_some())
    }

    /// Holds RESERVED, shared, from here on, whatever becomes of the level.
    ///
    /// # Errors
    ///
    /// `Busy` where a writer in rollback mode has it.
    pub fn hold_reserved(&mut self) -> Result<()> {
        if !self.hold && !self.reserved {
            share(&*self.file, RESERVED, &self.name)?;
        }
        self.hold = true;
        Ok(())
    }

    /// Holds it no longer.
    ///
    /// # Errors
    ///
    /// Those of the file.
    pub fn release_hold(&mut self) -> Result<()> {
        if self.hold && !self.reserved {
            self.release(RESERVED)?;
        }
        self.hold = false;
        Ok(())
    }

    fn take(&self, range: Range<u64>, kind: LockKind) -> Result<()> {
        match self.file.try_lock(range, kind).during(Operation::Lock, &self.name)? {
            true => Ok(()),
            false => Err(Error::Busy),
        }
    }

    fn release(&self, range: Range<u64>) -> Result<()> {
        self.file.unlock(range).during(Operation::Lock, &self.name)
    }
}

#[cfg(test)]
mod tests;
