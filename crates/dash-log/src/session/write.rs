//! A record into the log: one write, one flush.

use super::{Leader, Session, Word};
use crate::file::LogFile;
use crate::mutation::{Mutation, broken};
use dash_engine::error::{Error, Result};
use dash_storage::{File, Storage};

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
