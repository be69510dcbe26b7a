//! Finishing, before reading, a transaction over several databases that was decided: see
//! [`crate::recovery::decided`].

use crate::connection::state::Connection;
use crate::recovery::decided::decided;
use dash_engine::error::{Error, Result};
use dash_storage::Storage;
use std::time::Duration;

/// How long a reader waits for a writer that is about to publish; then its busy handler decides.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often it looks.
const PAUSE: Duration = Duration::from_micros(100);

impl<S: Storage> Connection<S> {
    /// Whether a transaction over several databases has come as far as its flush since the first
    /// opener: whoever was killed in another one may have left its super-journal.
    #[must_use]
    pub fn has_had_several(&self) -> bool {
        self.pair.coordination.has_had_several()
    }

    /// Before reading: what was decided is finished, or waited for. `Busy` if that takes long.
    pub(crate) fn finish_decided(&mut self) -> Result<()> {
        let mut waited = Duration::ZERO;
        while self.pair.coordination.is_of_several() && self.is_decided()? {
            if self.pair.coordination.keep_writer()? {
                let finished = self.finish_if_decided();
                let released = self.release_exclusion();
                let unlocked = self.pair.coordination.give_writer_back();
                finished.and(released).and(unlocked)?;
                self.reload_if_pair_changed()?;
            } else if waited >= PATIENCE {
                return Err(Error::Busy);
            } else {
                self.pair.storage.sleep(PAUSE);
                waited += PAUSE;
            }
        }
        Ok(())
    }

    /// Under WRITER: its owner is dead, or could not publish.
    fn finish_if_decided(&mut self) -> Result<()> {
        match self.pair.coordination.is_of_several() && self.is_decided()? {
            true => self.finish_dead_writer(),
            false => Ok(()),
        }
    }

    /// Whether the super-journal that the shadow names is gone.
    fn is_decided(&self) -> Result<bool> {
        let current = self.pair.coordination.current();
        let Some(file) = &self.pair.files[1 - current.slot] else {
            return Ok(false);
        };
        let name = self.pair.names.shown_shadow();
        decided(&self.pair.storage, &**file, &self.pair.directory_path, current.sequence + 1, name)
    }
}
