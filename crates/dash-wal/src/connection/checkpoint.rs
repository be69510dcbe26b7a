//! Checkpoints: pages are copied into the database only once they are durable elsewhere.

use crate::connection::state::Connection;
use crate::frames::Salts;
use crate::index;
use crate::mutation::{Mutation, broken};
use dash_engine::error::{Error, Result};
use dash_storage::{LockKind, Storage};
use std::ops::Range;

/// How often the header of the index is read until it is whole.
const LOOKS: usize = 1000;

impl<S: Storage> Connection<S> {
    /// `SQLITE_FCNTL_CKPT_START`, before the first page. A connection under `synchronous=OFF` has
    /// not asked for the barrier; others may have commits there that are to survive (WAL-12).
    ///
    /// # Errors
    ///
    /// Those of the flush.
    pub fn checkpoint_starts(&mut self) -> Result<()> {
        self.statistics.checkpoints += 1;
        match self.checkpoint.barrier || broken(Mutation::NoForcedBarrier) {
            true => Ok(()),
            false => self.barrier(),
        }
    }

    /// READ(0) was taken, under which pages are copied. SQLite has read the header of the index
    /// since it took CKPT; before 3.51.3 it doesn't look again whether a writer has begun `-wal`
    /// anew meanwhile, and would count frames as copied that never were ("WAL-reset bug"). Nobody
    /// begins it anew from here on, nor beside WRITER (WAL-47).
    ///
    /// # Errors
    ///
    /// `Busy`, with the lock given up: to a checkpoint that waits for nobody, readers are in the
    /// way, and it does nothing.
    pub(super) fn same_generation(&mut self, slots: &Range<usize>) -> Result<()> {
        let holds = |slot| {
            let held = self.index.as_ref().and_then(|index| index.held(slot));
            held == Some(LockKind::Exclusive)
        };
        if !holds(index::CKPT) || holds(index::WRITE) || broken(Mutation::ResetUnseen) {
            return Ok(());
        }
        let (seen, now) = (self.checkpoint.generation, self.visible_generation());
        if seen.is_some() && seen == now {
            return Ok(());
        }
        if let Some(index) = &mut self.index {
            index.unlock(slots.clone(), &self.coordination.file)?;
        }
        Err(Error::Busy)
    }

    /// The salts in the header of the index. It is torn while a writer writes it, for as long as
    /// that takes.
    pub(super) fn visible_generation(&self) -> Option<Salts> {
        let index = self.index.as_ref()?;
        let looks = std::iter::repeat_with(|| index.header()).take(LOOKS);
        looks.flatten().next().map(|header| header.salts)
    }

    /// `SQLITE_FCNTL_CKPT_DONE`.
    pub fn checkpoint_done(&mut self) {
        self.checkpoint.barrier = false;
    }
}
