//! Keeping others from writing while this connection only reads (locking_mode=EXCLUSIVE).
//!
//! Such a connection keeps its SHARED lock for good, and SQLite relies on what that means with a
//! rollback journal: nobody commits, so it never looks again whether its pages are right. Here a
//! reader stops no commit; without this it would show the state of its first read for ever, and
//! could never write. So it shares the WRITER lock: any number of such readers may, and no writer
//! beside them.

use crate::connection::state::Connection;
use crate::shared::locks::{self, LockLevel};
use dash_engine::error::{Context, Error, Operation, Result};
use dash_storage::{File, LockKind, Storage};

impl<S: Storage> Connection<S> {
    /// Lets nobody write from here on until the read transaction ends; it reads the newest state
    /// then. `Busy` while somebody is writing; the read lock is given up then, as with any error.
    pub fn hold_off_writers(&mut self) -> Result<()> {
        if self.view.level != LockLevel::Shared || self.holds_off {
            return Ok(());
        }
        let held = self.share_writer();
        if held.is_err() {
            self.unlock(LockLevel::None)?;
        }
        held
    }

    fn share_writer(&mut self) -> Result<()> {
        loop {
            self.holds_off = self
                .pair
                .coordination
                .file()
                .try_lock(locks::WRITER, LockKind::Shared)
                .during(Operation::Lock, self.pair.names.shown_coordination())?;
            if !self.holds_off {
                return Err(Error::Busy);
            }
            if self.pair.coordination.current() == self.view.current
                && self.pair.coordination.generation() == self.pair.generation
            {
                return Ok(());
            }
            // Somebody committed since it was read; nobody does any more, unless reading anew met a
            // file that was copied over this one, and gave the lock up.
            self.begin_read()?;
        }
    }

    /// Lets others write again.
    pub(crate) fn let_writers_in(&mut self) -> Result<()> {
        if std::mem::take(&mut self.holds_off) {
            let file = self.pair.coordination.file();
            file.unlock(locks::WRITER)
                .during(Operation::Lock, self.pair.names.shown_coordination())?;
        }
        Ok(())
    }
}
