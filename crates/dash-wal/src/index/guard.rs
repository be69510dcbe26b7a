//! What keeps stock SQLite from checkpoints, from recovery of the index and from beginning `-wal`
//! anew, while a session of the log lasts (WAL-17): shared locks on three of its bytes.
//!
//! A checkpoint takes CKPT, a recovery RECOVER. A writer that begins `-wal` anew takes all slots of
//! readers but READ(0) exclusively (wal.c `walRestartLog`), and appends where it doesn't get them.
//! So one of them is held shared, and its mark is nobody's: no reader takes it, and no checkpoint
//! minds it.
//!
//! Where stock SQLite may checkpoint all of that is its own (WAL-53). Then, and at rest, a
//! checkpoint of SQLite before 3.51.3 counts frames as copied that never were where a writer begins
//! `-wal` anew between its first looks ("WAL-reset bug"). So a writer of dash does that under a
//! shared lock on CKPT, and appends where it doesn't get it.

use super::slots::{BASE, CKPT, GUARDED, READ, RECOVER, SLOTS, mask};
use super::{Index, header};
use crate::mutation::{Mutation, broken};
use crate::options::Stock;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::locks::share;
use dash_storage::{File, LockKind, Storage};
use std::ops::Range;

/// Of CKPT and RECOVER in `-shm`.
pub(super) const WORK: Range<u64> = BASE + CKPT as u64..BASE + RECOVER as u64 + 1;

/// Of CKPT there.
const CKPT_BYTE: Range<u64> = BASE + CKPT as u64..BASE + CKPT as u64 + 1;

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
        let is_due = self.stock == Stock::Write && !self.guards;
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

    /// These slots are about to be taken: keeps stock checkpoints out, if that is to begin `-wal`
    /// anew.
    ///
    /// # Errors
    ///
    /// `Busy` while somebody of stock SQLite checkpoints; those of the call.
    pub(super) fn begin_restart(&mut self, slots: &Range<usize>, kind: LockKind) -> Result<()> {
        let is_restart = *slots == (READ + 1..SLOTS) && kind == LockKind::Exclusive;
        let is_due = is_restart && self.lets_writers() && self.held(CKPT).is_none();
        if !is_due || self.restarts || self.guards || broken(Mutation::RestartsBesideCheckpoint) {
            return Ok(());
        }
        let Some(file) = self.file() else { return Ok(()) };
        share(file, CKPT_BYTE, &self.shown)?;
        self.restarts = true;
        Ok(())
    }

    /// Lets them in again.
    ///
    /// # Errors
    ///
    /// Those of the call.
    pub(super) fn end_restart(&mut self) -> Result<()> {
        let held = std::mem::take(&mut self.restarts) && self.held(CKPT).is_none() && !self.guards;
        match self.file().filter(|_| held) {
            Some(file) => file.unlock(CKPT_BYTE).during(Operation::Lock, &self.shown),
            None => Ok(()),
        }
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
