//! A record into the log: one write, one flush; where it goes (WAL-8), and how the ring grows.
//!
//! Growing moves nothing, and nothing need be made durable elsewhere. Where the window goes around
//! the ring's end the next record goes behind that end, and what lies before it at the ring's
//! beginning is kept, too, as long as the window is: all from the beginning on is one piece then.

use super::{Leader, Session, Word};
use crate::file::LogFile;
use crate::mutation::{Mutation, broken};
use crate::ring::Ring;
use dash_engine::error::{Error, Result};
use dash_storage::{File, Storage};
use std::ops::RangeInclusive;

/// Bytes that are added to the ring at once, at most.
const STEP: u64 = 1 << 20;

/// Of its length this part is.
const PART: u64 = 16;

/// The ring is a multiple of so many bytes.
const UNIT: u64 = 4096;

/// What a flush is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Means {
    /// Write a record and flush the log.
    Flush,
    /// Write it through the device's cache.
    Device,
    /// Write it, and leave it in the device's cache.
    Write,
}

/// What an engine shares with other processes.
type Memory<S> = <<S as Storage>::File as File>::Memory;

impl<S: Storage, M: Default> Session<S, M> {
    /// Begins the next record, whose context is the engine's. Images and notes are for the builder.
    pub fn begin_record(
        &self,
        leader: &mut Leader<S::File, M>,
        flags: u16,
        page: u32,
        meta: u16,
        context: &[u8],
    ) -> Result<()> {
        let sequence = self.words.get(Word::Sequence) + 1;
        leader.builder.set_form(leader.form());
        leader.builder.begin(leader.id, sequence, flags, page, meta, context)
    }

    /// Writes the record that was built where it overwrites nothing from `oldest` on, and makes it
    /// as durable as is asked for. `publish` says of it what is the engine's, before the window is
    /// there: whoever sees that sees what is in it. The word that a record is being written stays.
    /// Answers bytes of it, padding included; `None`: there is no room for it.
    ///
    /// # Errors
    ///
    /// Errors of the file system: the record may or may not be on the device then.
    pub fn write(
        &mut self,
        leader: &mut Leader<S::File, M>,
        means: Means,
        oldest: Option<u64>,
        publish: impl Fn(&Memory<S>, &M),
    ) -> Result<Option<u64>> {
        // What was kept for a record that is not written is gone.
        let kept = std::mem::take(&mut leader.kept);
        let log = leader.log.as_ref().ok_or(Error::OutOfMemory)?;
        let blocks = leader.builder.finish(log.block())?;
        let len = blocks.len() as u64;
        let is_first = !self.words.is(Word::Window);
        let Some(place) = self.room_for(log, len, oldest) else { return Ok(None) };
        self.words.set(Word::Writes, self.words.get(Word::Sequence) + 1);
        // The head may have been written just before, and is no part of this write. No record may
        // be on the device behind a head that calls the log one at rest (LOG-12).
        let asked = means == Means::Write && broken(Mutation::FirstRecordNotFlushed);
        let means = if is_first && !asked { Means::Flush } else { means };
        let early = broken(Mutation::WordsBeforeFlush);
        if early {
            publish(self.words.memory(), &kept);
            self.publish(place, len);
        }
        match means {
            Means::Device => log.write_durable(blocks, place),
            Means::Flush if !broken(Mutation::RecordNotFlushed) => {
                log.write_and_flush(blocks, place)
            }
            Means::Flush | Means::Write => log.write(blocks, place),
        }?;
        self.counts.records += 1;
        self.counts.bytes += len;
        self.counts.flushes += u64::from(means != Means::Write);
        if !early {
            publish(self.words.memory(), &kept);
            self.publish(place, len);
        }
        leader.kept = kept;
        if means != Means::Device {
            self.words.set(Word::Unflushed, u64::from(means == Means::Write));
        }
        Ok(Some(len))
    }

    /// Where a record of `len` bytes (padded) goes without overwriting the window, which begins at
    /// `oldest`, if there is one. `None`: nowhere, and the ring can't grow.
    fn room_for(&mut self, log: &LogFile<S::File>, len: u64, oldest: Option<u64>) -> Option<u64> {
        let words = &self.words;
        let (position, old) = (words.get(Word::Position), words.get(Word::Ring));
        let mut ring = Ring { len: old, block: log.block() };
        if ring.free(oldest, position, len) {
            return ring.next(position, len);
        }
        let goes_around = oldest.is_some_and(|oldest| oldest >= position);
        let behind = if goes_around { old } else { position };
        // Who wrote before may have padded to a smaller block.
        let behind = behind.checked_next_multiple_of(u64::from(ring.block).max(1))?;
        ring.len = longer(old, behind.saturating_add(len), &self.ring)?;
        // Where the file can't grow the log goes on as it is.
        log.grow(ring.len).ok()?;
        self.counts.growths += 1;
        let words = &self.words;
        words.set(Word::Ring, ring.len);
        if goes_around {
            // Whoever comes after a death here believes neither of the two (WAL-7).
            words.set(Word::Writes, words.get(Word::Sequence) + 1);
            words.set(Word::Position, behind);
            if !broken(Mutation::BeginningNotKept) {
                words.set(Word::Window, 1);
            }
        }
        ring.next(behind, len).filter(|&place| place == behind)
    }

    /// Says where the newest record ends. Only once it is flushed: the next leader after a death
    /// finds the log as it was before the unfinished record (WAL-7).
    fn publish(&self, place: u64, len: u64) {
        let words = &self.words;
        if !words.is(Word::Window) {
            words.set(Word::Window, place + 1);
        }
        words.set(Word::Position, place + len);
        words.set(Word::Sequence, words.get(Word::Sequence) + 1);
    }

    /// The log could not be written or flushed: told once, as commits go on.
    pub fn note_failed_flush(&mut self, error: &Error) {
        if self.counts.failed == 0 {
            let (otherwise, log) = (&self.otherwise, self.place.names.shown_log());
            self.notice = Some(format!("{error}; {otherwise}, where {log} can't be used"));
        }
        self.counts.failed += 1;
    }

    /// It could not, and the record that was to be written is given up.
    pub fn give_up(&mut self, error: &Error) {
        self.note_failed_flush(error);
        self.skip_sequence();
        self.words.set(Word::Unflushed, 0);
    }

    /// The number of a record that may be in the log, unfinished, is not used again: two records of
    /// one number would contradict each other (WAL-9).
    pub fn skip_sequence(&self) {
        if !broken(Mutation::SequenceReused) {
            self.words.set(Word::Sequence, self.words.get(Word::Sequence) + 1);
        }
        self.words.set(Word::Writes, 0);
        self.words.set(Word::Window, 0);
    }

    /// Flushes what was left in the device's cache.
    pub fn flush(&mut self, leader: &Leader<S::File, M>) -> Result<()> {
        self.counts.flushes += 1;
        leader.log.as_ref().map_or(Ok(()), LogFile::flush)?;
        self.words.set(Word::Unflushed, 0);
        Ok(())
    }
}

/// How long a ring of `len` bytes is to be for a record that ends at `end`: a commit waits for what
/// is added, and what is added too much is written for nothing.
fn longer(len: u64, end: u64, ring: &RangeInclusive<u64>) -> Option<u64> {
    // What others say in shared memory may be anything.
    if end > *ring.end() {
        return None;
    }
    let mut longer = len;
    while longer < end {
        let step = (longer / PART).clamp((*ring.start()).min(STEP), STEP);
        longer = (longer + step).next_multiple_of(UNIT);
    }
    // At the limit the last step may be a smaller one.
    let longer = longer.min(*ring.end());
    (longer > len && longer >= end).then_some(longer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_in_steps() {
        const KIB: u64 = 1 << 10;
        const MIB: u64 = 1 << 20;
        let of = |len, end| longer(len, end, &(256 * KIB..=64 * MIB));
        assert_eq!(of(256 * KIB, 260 * KIB), Some(512 * KIB));
        assert_eq!(of(256 * KIB, 1100 * KIB), Some(1280 * KIB));
        assert_eq!(of(4 * MIB, 4 * MIB + 1), Some(4 * MIB + 256 * KIB));
        assert_eq!(of(32 * MIB, 32 * MIB + 512), Some(33 * MIB));
        assert_eq!(of(64 * MIB - 4 * KIB, 64 * MIB), Some(64 * MIB));
        assert_eq!(of(64 * MIB, 64 * MIB + 1), None);
        assert_eq!(of(256 * KIB, u64::MAX), None);
        assert_eq!(longer(16 * KIB, 70 * KIB, &(16 * KIB..=32 * KIB)), None);
    }
}
