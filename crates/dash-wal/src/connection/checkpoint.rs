//! Checkpoints: pages are copied into the database only once they are durable elsewhere.

use crate::connection::files::Files;
use crate::connection::index::WalIndex;
use crate::frames::Salts;
use crate::index::{CKPT, WRITE};
use crate::mutation::{Mutation, broken};
use dash_engine::error::{Error, Result};
use dash_storage::Storage;
use std::ops::Range;

/// A checkpoint, as far as calls tell.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Checkpoint {
    /// Everything visible was made durable since the lock CKPT was taken.
    pub barrier: bool,
    /// It copies pages, and SQLite has not asked for the barrier, nor will it for a flush of the
    /// database.
    pub is_lazy: bool,
    /// Until when readers are kept back for it; 0: they are not.
    pub deadline: u64,
    /// It holds WRITER, which SQLite has not asked for.
    pub holds_writer: bool,
    /// The generation that was visible when CKPT was taken; `None`: that can't be told.
    pub generation: Option<Salts>,
}

impl Checkpoint {
    /// READ(0) was taken, under which pages are copied. SQLite has read the header of the index
    /// since it took CKPT; before 3.51.3 it doesn't look again whether a writer has begun `-wal`
    /// anew meanwhile, and would count frames as copied that never were ("WAL-reset bug"). Nobody
    /// begins it anew from here on, nor beside WRITER (WAL-47).
    ///
    /// # Errors
    ///
    /// `Busy`, with the lock given up: to a checkpoint that waits for nobody, readers are in the
    /// way, and it does nothing.
    pub fn same_generation<S: Storage>(
        &self,
        slots: &Range<usize>,
        index: &mut WalIndex<S>,
        files: &Files<S>,
    ) -> Result<()> {
        if !index.holds(CKPT) || index.holds(WRITE) || broken(Mutation::ResetUnseen) {
            return Ok(());
        }
        let (seen, now) = (self.generation, index.visible_generation());
        if seen.is_some() && seen == now {
            return Ok(());
        }
        index.unlock(slots.clone(), files)?;
        Err(Error::Busy)
    }
}
