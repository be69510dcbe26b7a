//! Keeping others from writing while this connection only reads (locking_mode=EXCLUSIVE).
//!
//! Such a connection keeps its SHARED lock for good, and SQLite relies on what that means with a rollback journal:
//! nobody commits, so it never looks again whether its pages are right. Here a reader stops no commit; without
//! this it would show the state of its first read for ever, and could never write. So it shares the
//! WRITER lock: any number of such readers may, and no writer beside them.

use dash_storage::{File, LockKind, Storage};

use crate::connection::Connection;
use crate::error::{Context, Error, Operation, Result};
use crate::locks::{self, LockLevel};

impl<S: Storage> Connection<S> {
    /// Lets nobody write from here on until the read transaction ends; it reads the newest state then.
    /// `Busy`, with the read lock given up, while somebody is writing.
    pub fn hold_off_writers(&mut self) -> Result<()> {
        if self.level != LockLevel::Shared || self.holds_off {
            return Ok(());
        }
        self.holds_off = self
            .coordination
            .file()
            .try_lock(locks::WRITER, LockKind::Shared)
            .during(Operation::Lock, self.names.shown_coordination())?;
        if !self.holds_off {
            self.unlock(LockLevel::None)?;
            return Err(Error::Busy);
        }
        let stale = |connection: &Self| {
            connection.coordination.current() != connection.current
                || connection.coordination.generation() != connection.generation
        };
        if stale(self) {
            // Somebody committed since it was read; nobody does any more.
            self.begin_read()?;
        }
        Ok(())
    }

    /// Lets others write again.
    pub(crate) fn let_writers_in(&mut self) -> Result<()> {
        if std::mem::take(&mut self.holds_off) {
            let file = self.coordination.file();
            file.unlock(locks::WRITER).during(Operation::Lock, self.names.shown_coordination())?;
        }
        Ok(())
    }
}
