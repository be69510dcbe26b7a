//! What keeps stock SQLite from checkpoints, from recovery of the index and from beginning `-wal`
//! anew, while a session of the log lasts (WAL-17): shared locks on three of its bytes.
//!
//! A checkpoint takes CKPT, a recovery RECOVER. A writer that begins `-wal` anew takes all slots of
//! readers but READ(0) exclusively (wal.c `walRestartLog`), and appends where it doesn't get them.
//! So one of them is held shared, and its mark is nobody's: no reader takes it, and no checkpoint
//! minds it.

use super::slots::{BASE, CKPT, GUARDED, READ, RECOVER, mask};
use super::{Index, header};
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::locks::share;
use dash_storage::{File, LockKind, Storage};
use std::ops::Range;

/// Of CKPT and RECOVER in `-shm`.
pub(super) const WORK: Range<u64> = BASE + CKPT as u64..BASE + RECOVER as u64 + 1;

/// Of the slot that nobody reads by.
const LAST: Range<u64> = BASE + GUARDED as u64..BASE + GUARDED as u64 + 1;

impl<S: Storage> Index<S> {
    /// Takes it, if it is not held. Region 0 is mapped.
    ///
    /// # Errors
    ///
    /// `Busy` while somebody of stock SQLite checkpoints or recovers, or somebody reads by the last
    /// slot; errors of the calls.
    pub(crate) fn guard(&mut self) -> Result<()> {
        let is_due = self.lets_writers && !self.guards;
        let Some(file) = self.file().filter(|_| is_due) else { return Ok(()) };
        let taken = share(file, WORK, &self.shown).and_then(|()| self.guard_last(file));
        if taken.is_err() {
            self.guards = true;
            self.unguard()?;
        }
        taken?;
        self.guards = true;
        Ok(())
    }

    /// Gives it up.
    ///
    /// # Errors
    ///
    /// As the calls for the locks.
    pub(crate) fn unguard(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.guards) {
            return Ok(());
        }
        let held = self.shared | self.exclusive;
        let Some(file) = self.file() else { return Ok(()) };
        for slot in [CKPT, RECOVER, GUARDED] {
            if held & mask(&(slot..slot + 1)) == 0 {
                let byte = BASE + slot as u64;
                file.unlock(byte..byte + 1).during(Operation::Lock, &self.shown)?;
            }
        }
        Ok(())
    }

    /// The last slot of readers, whose mark is nobody's then.
    fn guard_last(&self, file: &S::File) -> Result<()> {
        let memory = self.regions.first().and_then(Option::as_ref).ok_or(Error::Busy)?;
        // This connection has it for something else: the lock would be no other one.
        if (self.shared | self.exclusive) & mask(&(GUARDED..GUARDED + 1)) != 0 {
            return Err(Error::Busy);
        }
        let number = GUARDED - READ;
        if file.try_lock(LAST, LockKind::Exclusive).during(Operation::Lock, &self.shown)? {
            header::unmark(memory, number);
        }
        share(file, LAST, &self.shown)?;
        // Else it is a reader's.
        if header::is_unused(memory, number) { Ok(()) } else { Err(Error::Busy) }
    }
}
