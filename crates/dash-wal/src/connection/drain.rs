//! Checkpoints that readers and writers overlap. SQLite's own ones give way to everybody, so where
//! readers follow each other without a gap, or writers do, `-wal` never begins anew, and grows.
//!
//! From [`Tuning::drain_frames`](crate::Tuning) on, and then only once in [`EVERY`], a checkpoint
//! holds WRITER and keeps new readers back until the present ones have gone, or for [`PATIENCE`].
//! The writer that could begin `-wal` anew does the same. Readers that take longer are waited for
//! in vain; each try costs writers its patience, which is why there are not more.

use crate::connection::checkpoint::Checkpoint;
use crate::connection::files::Files;
use crate::connection::index::{WRITER, WalIndex, nanos};
use crate::index;
use crate::shared::coordination::Word;
use dash_engine::error::Result;
use dash_storage::Storage;
use std::ops::Range;
use std::time::Duration;

/// How long readers are kept back: those of 50 ms are to have ended then, and to have said so.
const PATIENCE: Duration = Duration::from_millis(54);

/// How often the locks are tried meanwhile.
const PAUSE: Duration = Duration::from_micros(100);

/// Time from one try to the next: a second, less what the try itself takes and the commits until
/// `-wal` begins anew, so that it is never longer by more than a second of frames.
const EVERY: Duration = Duration::from_millis(900);

impl Checkpoint {
    /// CKPT was taken: if `-wal` has `least` frames or more, WRITER is taken, too, so that no frame
    /// comes behind what is copied. Whether it is drained.
    pub fn begin_draining<S: Storage>(
        &mut self,
        index: &mut WalIndex<S>,
        least: u32,
        files: &Files<S>,
    ) -> Result<bool> {
        if !is_due(Word::Drained, index, least, files) {
            return Ok(false);
        }
        let deadline = files.storage.monotonic_nanos() + nanos(PATIENCE);
        let held = index.holds(index::WRITE);
        if !held && !index.wait_for(WRITER, deadline, files)? {
            return Ok(false);
        }
        self.holds_writer = !held;
        self.deadline = deadline;
        files.shared.set(Word::HeldBack, deadline);
        Ok(true)
    }

    /// CKPT is given up. Whether WRITER is to be so, too.
    pub fn end_draining<S: Storage>(&mut self, files: &Files<S>) -> bool {
        if std::mem::take(&mut self.deadline) == 0 {
            return false;
        }
        files.shared.set(Word::HeldBack, 0);
        std::mem::take(&mut self.holds_writer)
    }

    /// Readers are in the way of `slots`: `-wal` is drained, or begun anew from `least` frames on.
    /// Whether they have gone after all.
    pub fn drain<S: Storage>(
        &self,
        slots: Range<usize>,
        index: &mut WalIndex<S>,
        least: u32,
        files: &Files<S>,
    ) -> Result<bool> {
        let restarts = slots.len() > 1 && slots.start > index::READ;
        let mut deadline = self.deadline;
        if deadline == 0 {
            if !restarts || !is_due(Word::Restarted, index, least, files) {
                return Ok(false);
            }
            deadline = files.storage.monotonic_nanos() + nanos(PATIENCE);
            files.shared.set(Word::HeldBack, deadline);
        }
        let gone = index.wait_for(slots, deadline, files)?;
        if self.deadline == 0 {
            files.shared.set(Word::HeldBack, 0);
        }
        Ok(gone)
    }
}

/// A reader waits while others are kept back; whether it did. It looks again then: what it was
/// about to read may be in the database by now.
pub(crate) fn waits_to_read<S: Storage>(files: &Files<S>) -> bool {
    let mut waited = false;
    loop {
        let until = files.shared.get(Word::HeldBack);
        let now = files.storage.monotonic_nanos();
        if until <= now || until > now + nanos(PATIENCE) {
            return waited;
        }
        files.storage.sleep(PAUSE);
        waited = true;
    }
}

/// Whether `-wal` has `least` frames, and the last try was long enough ago.
fn is_due<S: Storage>(word: Word, index: &WalIndex<S>, least: u32, files: &Files<S>) -> bool {
    if index.header().map_or(0, |header| header.mx_frame) < least {
        return false;
    }
    let (last, now) = (files.shared.get(word), files.storage.monotonic_nanos());
    if last != 0 && last <= now && now - last < nanos(EVERY) {
        return false;
    }
    files.shared.set(word, now);
    true
}
