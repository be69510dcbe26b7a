//! Checkpoints: pages are copied into the database only once they are durable elsewhere.

use crate::connection::state::Connection;
use crate::mutation::{Mutation, broken};
use dash_engine::error::Result;
use dash_storage::Storage;

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

    /// `SQLITE_FCNTL_CKPT_DONE`.
    pub fn checkpoint_done(&mut self) {
        self.checkpoint.barrier = false;
    }
}
