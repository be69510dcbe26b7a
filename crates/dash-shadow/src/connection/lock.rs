//! The lock levels of SQLite, raised and lowered step by step.

use crate::connection::state::Connection;
use crate::mutation::{Mutation, broken};
use crate::shared::locks::{self, LockLevel};
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::memory::{SMALL_THINGS, headroom};
use dash_storage::{File, Storage};

impl<S: Storage> Connection<S> {
    /// Raises the lock. `Busy` and `BusySnapshot` leave it where it was.
    pub fn lock(&mut self, level: LockLevel) -> Result<()> {
        let result = self.raise(level);
        if matches!(result, Err(Error::Busy | Error::BusySnapshot | Error::Held(_))) {
            self.statistics.busy += 1;
        }
        result
    }

    fn raise(&mut self, level: LockLevel) -> Result<()> {
        self.give_back_locks()?;
        if self.debts.unpublished.is_some() {
            self.publish_at_last()?;
        }
        if level >= LockLevel::Shared && self.view.level == LockLevel::None {
            self.begin_read()?;
            self.view.level = LockLevel::Shared;
        }
        if level >= LockLevel::Reserved && self.view.level == LockLevel::Shared {
            headroom(SMALL_THINGS)?;
            self.begin_write()?;
            self.view.level = LockLevel::Reserved;
        }
        if level == LockLevel::Exclusive && self.view.level < LockLevel::Exclusive {
            self.view.level = LockLevel::Pending;
            self.exclude_readers()?;
            self.view.level = LockLevel::Exclusive;
        }
        Ok(())
    }

    /// Lowers the lock. A transaction that was not published is undone first. What could not be
    /// given back is with the next lock.
    pub fn unlock(&mut self, level: LockLevel) -> Result<()> {
        let committed = self.transaction.is_none() && self.view.level > LockLevel::Shared;
        let lowered = self.lower(level);
        if lowered.is_err() {
            self.debts.locks = true;
        }
        // An error here is COMMIT's (pager.c `pager_end_transaction`). That commit stands,
        // and whoever is told that it failed makes it once more.
        if committed && !broken(Mutation::UnlockingFailsCommit) { Ok(()) } else { lowered }
    }

    fn lower(&mut self, level: LockLevel) -> Result<()> {
        let mut lowered = Ok(());
        if level <= LockLevel::Shared && self.view.level > LockLevel::Shared {
            lowered = self.end_write();
            self.view.level = LockLevel::Shared;
        }
        if level == LockLevel::None && self.view.level == LockLevel::Shared {
            self.view.level = LockLevel::None;
            self.pair.coordination.unpin();
            self.leave_kept();
            let left = self.leave_shared();
            lowered = lowered.and(left);
            if self.holds_off {
                lowered = lowered.and(self.let_writers_in());
            }
        }
        lowered
    }

    fn leave_shared(&mut self) -> Result<()> {
        let Some(slot) = self.view.shared_lock.take() else {
            return Ok(());
        };
        self.pair.file(slot)?.unlock(locks::SHARED).during(Operation::Lock, self.role(slot))
    }

    /// Gives back what could not be when the lock was lowered.
    fn give_back_locks(&mut self) -> Result<()> {
        if !self.debts.locks || self.view.level > LockLevel::None {
            return Ok(());
        }
        for slot in [0, 1] {
            let Some(file) = self.pair.files[slot].clone() else {
                continue;
            };
            for range in [locks::SHARED, locks::PENDING] {
                file.unlock(range).during(Operation::Lock, self.role(slot))?;
            }
        }
        let coordination = self.pair.names.shown_coordination();
        self.pair
            .coordination
            .file()
            .unlock(locks::WRITER)
            .during(Operation::Lock, coordination)?;
        self.debts.locks = false;
        Ok(())
    }
}
