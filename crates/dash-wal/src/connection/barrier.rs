//! What must be durable before pages are copied into the database.

use crate::connection::state::Connection;
use crate::mutation::{Mutation, broken};
use crate::options::Barrier;
use dash_engine::error::{Error, Result};
use dash_log::session::{Means, commit};
use dash_storage::Storage;
use std::time::Duration;

/// How often it is looked whether a writer has summed its frames up that is about to.
const SUM_ATTEMPTS: usize = 50;

/// For how long it is waited for each time.
const SUM_PAUSE: Duration = Duration::from_millis(1);

impl<S: Storage> Connection<S> {
    /// `SQLITE_FCNTL_CKPT_START`, before the first page. A connection under `synchronous=OFF` has
    /// not asked for the barrier; others may have commits there that are to survive (WAL-12).
    ///
    /// # Errors
    ///
    /// Those of the flush.
    pub fn checkpoint_starts(&mut self) -> Result<()> {
        self.counters.own.checkpoints += 1;
        self.checkpoint.is_lazy = !self.checkpoint.barrier;
        match self.checkpoint.barrier || broken(Mutation::NoForcedBarrier) {
            true => Ok(()),
            false => self.barrier(),
        }
    }

    /// `SQLITE_FCNTL_CKPT_DONE`.
    pub fn checkpoint_done(&mut self) {
        self.checkpoint.barrier = false;
    }

    /// Everything visible, before pages are copied into the database (WAL-14).
    pub(crate) fn barrier(&mut self) -> Result<()> {
        self.wal.write_held(&self.files)?;
        self.checkpoint.barrier = true;
        self.counters.own.barriers += 1;
        if broken(Mutation::NoBarrier) {
            return Ok(());
        }
        self.files.check_sound()?;
        self.adopt()?;
        if self.settings.barrier == Barrier::Wal || self.needs_wal() {
            return self.flush_wal_alone();
        }
        let Some(end) = self.visible_end()? else {
            // The index can't be read: a flush of `-wal` asks nobody how far it goes.
            return self.flush_wal_alone();
        };
        if end == 0 {
            return Ok(());
        }
        commit(self, end, Means::Flush)?;
        // What was not durable may be so by its statements now.
        match self.needs_wal() {
            true => self.flush_wal_alone(),
            false => Ok(()),
        }
    }

    /// Whether what is durable has to be so in `-wal`, before pages are copied: statements are run
    /// again on the database as it was before (WAL-33).
    fn needs_wal(&self) -> bool {
        self.files.shared.is_carried() && !broken(Mutation::CarriedNotFlushed)
    }

    /// The last visible frame of this generation. `None`: there is no index that says so.
    ///
    /// # Errors
    ///
    /// `Busy` where frames lack checksums, and their writer was stopped (WAL-19).
    pub(crate) fn visible_end(&mut self) -> Result<Option<u32>> {
        let Some(end) = self.index.end(&self.files) else { return Ok(None) };
        for _ in 0..SUM_ATTEMPTS {
            if self.files.shared.summed_end(end) == end {
                return Ok(Some(end));
            }
            self.look_at_sums(end)?;
            if self.files.shared.summed_end(end) == end {
                return Ok(Some(end));
            }
            self.try_sum_up_for_the_dead()?;
            self.files.storage.sleep(SUM_PAUSE);
        }
        Err(Error::Busy)
    }
}
