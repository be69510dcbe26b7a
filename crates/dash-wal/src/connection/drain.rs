//! Checkpoints that readers and writers overlap. SQLite's own ones give way to everybody, so where
//! readers follow each other without a gap, or writers do, `-wal` never begins anew, and grows.
//!
//! From [`Tuning::drain_frames`](crate::Tuning) on, and then only once in [`EVERY`], a checkpoint
//! holds WRITER and keeps new readers back until the present ones have gone, or for [`PATIENCE`].
//! The writer that could begin `-wal` anew does the same. Readers that take longer are waited for
//! in vain; each try costs writers its patience, which is why there are not more.

use crate::connection::state::Connection;
use crate::index::{self, Index};
use crate::shared::coordination::Word;
use dash_engine::error::{Error, Result};
use dash_storage::{LockKind, Storage};
use std::ops::Range;
use std::time::Duration;

/// How long readers are kept back: those of 50 ms are to have ended then, and to have said so.
const PATIENCE: Duration = Duration::from_millis(54);

/// How often the locks are tried meanwhile.
const PAUSE: Duration = Duration::from_micros(100);

/// Time from one try to the next: a second, less what the try itself takes and the commits until
/// `-wal` begins anew, so that it is never longer by more than a second of frames.
const EVERY: Duration = Duration::from_millis(900);

impl<S: Storage> Connection<S> {
    /// CKPT was taken: if `-wal` has grown too long, WRITER is taken, too, so that no frame comes
    /// behind what is copied.
    pub(super) fn begin_draining(&mut self) -> Result<()> {
        if !self.is_due(Word::Drained)? {
            return Ok(());
        }
        let deadline = self.storage.monotonic_nanos() + nanos(PATIENCE);
        let writer = index::WRITE..index::WRITE + 1;
        let held = self.index.as_ref().is_some_and(|index| index.held(index::WRITE).is_some());
        if !held && !self.wait_for(writer, deadline)? {
            return Ok(());
        }
        self.checkpoint.holds_writer = !held;
        self.checkpoint.deadline = deadline;
        self.coordination.set(Word::HeldBack, deadline);
        self.statistics.drains += 1;
        Ok(())
    }

    /// CKPT is given up.
    pub(super) fn end_draining(&mut self) -> Result<()> {
        if std::mem::take(&mut self.checkpoint.deadline) == 0 {
            return Ok(());
        }
        self.coordination.set(Word::HeldBack, 0);
        match std::mem::take(&mut self.checkpoint.holds_writer) {
            true => self.index_unlock(index::WRITE..index::WRITE + 1),
            false => Ok(()),
        }
    }

    /// Readers are in the way of `slots`. Whether they have gone after all.
    pub(super) fn drain(&mut self, slots: Range<usize>) -> Result<bool> {
        let restarts = slots.len() > 1 && slots.start > index::READ;
        let mut deadline = self.checkpoint.deadline;
        if deadline == 0 {
            if !restarts || !self.is_due(Word::Restarted)? {
                return Ok(false);
            }
            deadline = self.storage.monotonic_nanos() + nanos(PATIENCE);
            self.coordination.set(Word::HeldBack, deadline);
        }
        let gone = self.wait_for(slots, deadline)?;
        if self.checkpoint.deadline == 0 {
            self.coordination.set(Word::HeldBack, 0);
        }
        Ok(gone)
    }

    /// A reader waits while others are kept back; whether it did. It looks again then: what it was
    /// about to read may be in the database by now.
    pub(super) fn waits_to_read(&self) -> bool {
        let mut waited = false;
        loop {
            let until = self.coordination.get(Word::HeldBack);
            let now = self.storage.monotonic_nanos();
            if until <= now || until > now + nanos(PATIENCE) {
                return waited;
            }
            self.storage.sleep(PAUSE);
            waited = true;
        }
    }

    /// Whether `-wal` is long enough, and the last try long enough ago.
    fn is_due(&mut self, word: Word) -> Result<bool> {
        let mx_frame =
            self.index.as_ref().and_then(Index::header).map_or(0, |header| header.mx_frame);
        if mx_frame < self.settings.tuning.drain_frames {
            return Ok(false);
        }
        let (last, now) = (self.coordination.get(word), self.storage.monotonic_nanos());
        if last != 0 && last <= now && now - last < nanos(EVERY) {
            return Ok(false);
        }
        self.coordination.set(word, now);
        Ok(true)
    }

    fn wait_for(&mut self, slots: Range<usize>, deadline: u64) -> Result<bool> {
        loop {
            let Some(index) = &mut self.index else { return Ok(false) };
            match index.lock(slots.clone(), LockKind::Exclusive, &self.coordination.file) {
                Ok(()) => return Ok(true),
                Err(Error::Busy) if self.storage.monotonic_nanos() < deadline => {}
                Err(Error::Busy) => return Ok(false),
                Err(error) => return Err(error),
            }
            self.storage.sleep(PAUSE);
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
