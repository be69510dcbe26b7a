//! A commit over several databases that could not be published: past the super-journal's end it is
//! committed, whatever fails, and SQLite has said so (vdbeaux.c `vdbeCommit` passes over the errors
//! of the second phase). It stays in flight, as a killed writer's, until somebody rolls it forward:
//! this connection at the end of the transaction or at its next lock, another one's writer, or the
//! next opener.

use crate::connection::state::Connection;
use crate::shared::locks::LockLevel;
use dash_engine::error::{Error, Result};
use dash_storage::Storage;

impl<S: Storage> Connection<S> {
    /// Keeps what was prepared, so that it can be published later.
    pub(crate) fn leave_unpublished(&mut self) {
        self.transaction = None;
        self.debts.unpublished = Some(self.view.current.sequence + 1);
    }

    /// Publishes what this connection could not, before it reads or writes anything else.
    pub(crate) fn publish_at_last(&mut self) -> Result<()> {
        let Some(sequence) = self.debts.unpublished else {
            return Ok(());
        };
        if self.pair.coordination.current().sequence < sequence {
            self.roll_forward()?;
        }
        self.view.current = self.pair.coordination.current();
        self.view.snapshot = self.pair.coordination.snapshot(self.view.current.slot);
        (self.memo.header, self.memo.page_list) = (None, None);
        self.debts.unpublished = None;
        if self.view.level == LockLevel::Shared { self.move_pin() } else { Ok(()) }
    }

    fn roll_forward(&mut self) -> Result<()> {
        if self.view.level >= LockLevel::Reserved {
            return self.finish_dead_writer();
        }
        if !self.pair.coordination.try_writer()? {
            return Err(Error::Busy);
        }
        let finished = match self.pair.coordination.in_flight() {
            0 => Ok(()),
            _ => self.finish_dead_writer(),
        };
        let released = self.release_exclusion();
        let unlocked = self.pair.coordination.release_writer();
        finished.and(released).and(unlocked)
    }
}
