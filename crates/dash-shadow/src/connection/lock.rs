//! The lock levels of SQLite, raised and lowered step by step.

use crate::connection::state::Connection;
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
        self.publish_at_last()?;
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

    /// Lowers the lock. A transaction that was not published is undone first.
    pub fn unlock(&mut self, level: LockLevel) -> Result<()> {
        let mut result = Ok(());
        if level <= LockLevel::Shared && self.view.level > LockLevel::Shared {
            result = self.end_write();
            self.view.level = LockLevel::Shared;
        }
        if level == LockLevel::None && self.view.level == LockLevel::Shared {
            self.pair.coordination.unpin();
            self.leave_kept();
            if let Some(slot) = self.view.shared_lock.take() {
                self.pair
                    .file(slot)?
                    .unlock(locks::SHARED)
                    .during(Operation::Lock, self.role(slot))?;
            }
            self.view.level = LockLevel::None;
            self.let_writers_in()?;
        }
        result
    }
}
