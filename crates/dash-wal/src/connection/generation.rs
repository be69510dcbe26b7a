//! A new header of `-wal`: a generation begins, and the one before ends.
//!
//! In a session of the log the record that says so is durable before the header is in the page
//! cache: who finds the header then knows that the record is there (WAL-10). It is a record of the
//! former generation, too: where it would overwrite what that needs, `-wal` is flushed first
//! (WAL-8). Where the log can't be written that flush is all: the header is durable before any
//! frame behind it, and commits go on in stock fashion (WAL-9).

use crate::connection::files::Files;
use crate::connection::state::Connection;
use crate::connection::wal::Wal;
use crate::context::{
    Generation, HeadContext, RecordContext, WAL_HEADER, page_of, salts_of, salts_word,
};
use crate::frames::{FRAME_HEADER, FrameHeader, frame_offset, unpack};
use crate::mutation::{Mutation, broken};
use crate::process::Leader;
use crate::shared::coordination::Word;
use crate::stamp::Stamp;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::io::read_exact;
use dash_engine::memory::zeros;
use dash_log::head::State;
use dash_log::record::WINDOW_START;
use dash_log::session::{Means, open_log, with_log_waiting};
use dash_storage::Storage;

impl<S: Storage> Wal<S> {
    /// What the database is like: all of the generation before was copied there. Not known where
    /// that is not flushed, and need not be.
    fn stamp(&mut self, files: &Files<S>) -> Result<Stamp> {
        if files.shared.is(Word::DatabaseDirty) {
            return Ok(Stamp::default());
        }
        let stamp = Stamp::read(&**files.database.file(), files.names.shown())?;
        let durable = files.shared.durable();
        let ours = durable.covers(files.shared.get(Word::Generation), 1);
        let (true, Some(page)) = (ours, self.page_size(files)?) else { return Ok(stamp) };
        let (wal, mut header) = (self.file(files)?, [0; FRAME_HEADER]);
        let place = frame_offset(durable.frame, page);
        let whole = wal.read_exact(&mut header, place);
        if !whole.during(Operation::Read, files.names.shown_wal())? {
            return Ok(stamp);
        }
        let last = FrameHeader::decode(&header).page;
        let mut bytes = zeros(u64::from(page))?;
        let at = u64::from(last.saturating_sub(1)) * u64::from(page);
        let whole = read_exact(&**files.database.file(), &mut bytes, at);
        match whole.during(Operation::Read, files.names.shown())? {
            true => Ok(stamp.with_page(last, &bytes)),
            // A commit has cut it off.
            false => Ok(stamp),
        }
    }
}

impl<S: Storage> Connection<S> {
    /// SQLite is about to write a header. WRITER is held.
    pub(crate) fn begin_generation(&mut self, header: &[u8; WAL_HEADER]) -> Result<()> {
        // A checkpoint without flushes may have been what emptied the one before.
        self.flush_database_if_dirty()?;
        let stamp = self.wal.stamp(&self.files)?;
        self.counters.own.generations += 1;
        with_log_waiting(self, |connection, leader| connection.begin_in_log(leader, header, stamp))
    }

    fn begin_in_log(
        &mut self,
        leader: &mut Leader<S>,
        header: &[u8; WAL_HEADER],
        stamp: Stamp,
    ) -> Result<()> {
        let old = self.wal.header(&self.files)?;
        let c = &self.files.shared;
        let session = c.is(Word::Session);
        let again = session && c.get(Word::Salts) == salts_word(header);
        if again && old.as_ref() == Some(header) {
            // A transaction that began with it was rolled back.
            return Ok(());
        }
        // What is there counts, and not what was announced: a writer may have died in between.
        let [salt1, _] = salts_of(header);
        let [before, _] = old.map_or_else(|| unpack(c.get(Word::Salts)), |old| salts_of(&old));
        let blank = old.is_none();
        let (mut first, mut predecessor) = (c.get(Word::FirstSalt), c.get(Word::Predecessor));
        if again {
            // The same salts, and another checkpoint sequence, which belongs to a connection.
        } else if !session {
            // Nobody has looked at what the device holds: the session's beginning flushes it.
            (first, predecessor) = (0, 0);
        } else if blank {
            // The first frames of it become durable by a flush of `-wal`: a header that was never
            // on the device could not be told from one that was cut off by somebody else.
            (first, predecessor) = (0, 0);
        } else if session && (first == 0 || salt1 != before.wrapping_add(1)) {
            // The numbers don't tell which came first: only one header is left to be found.
            self.flush_wal_file()?;
            (first, predecessor) = (u64::from(salt1), u64::from(before));
        }
        let c = &self.files.shared;
        // It tells generations apart, and counts nothing.
        let number = c.get(Word::Generation).wrapping_add(1);
        let generation = Generation {
            number,
            header: *header,
            first: u32::try_from(first).unwrap_or(0),
            predecessor: u32::try_from(predecessor).unwrap_or(0),
            stamp,
        };
        let announces = session && !blank && !broken(Mutation::NoGenerationRecord);
        if !announces || !self.write_generation(leader, generation)? {
            // Nothing of it can be mistaken for what was there before: the first record says it.
            let c = &self.files.shared;
            c.set(Word::Window, 0);
            c.set(Word::HeaderNew, u64::from(!blank && !session));
        }
        let c = &self.files.shared;
        c.set(Word::FirstSalt, first);
        c.set(Word::Predecessor, predecessor);
        let [header_stamp, page_stamp] = stamp.words();
        c.set(Word::Stamp, header_stamp);
        c.set(Word::StampPage, page_stamp);
        c.set(Word::Salts, salts_word(header));
        c.set(Word::Generation, number);
        c.set_durable(0);
        self.wal.page = None;
        Ok(())
    }

    /// Writes the record that a generation begins with, and flushes it. `false`: that failed, and
    /// all of the generation before is durable in `-wal` and in the database. Whether the record is
    /// on the device makes no difference then.
    fn write_generation(&mut self, leader: &mut Leader<S>, generation: Generation) -> Result<bool> {
        open_log(self, leader)?;
        let context = RecordContext {
            generation: generation.number,
            first_frame: 1,
            carried: None,
            start: Some(generation),
        };
        let bytes = context.encode();
        for _ in 0..3 {
            if self.files.shared.get(Word::Writes) != 0 {
                self.session.skip_sequence();
                self.flush_wal_file()?;
            }
            let c = &self.files.shared;
            let page = page_of(&generation.header);
            self.session.begin_record(leader, WINDOW_START, page, 0, &bytes)?;
            let oldest = c.get(Word::Window).checked_sub(1);
            let oldest = oldest.filter(|_| !broken(Mutation::GenerationOverFullRing));
            let flushed = !broken(Mutation::GenerationNotFlushed);
            let means = if flushed { Means::Flush } else { Means::Write };
            let written = self.session.write(leader, means, oldest, |_, _| {
                c.set(Word::Window, 0);
                c.set(Word::Carried, 0);
                c.set(Word::WindowFrame, 1);
            });
            match written {
                Ok(Some(_)) => {
                    c.set(Word::Writes, 0);
                    return Ok(true);
                }
                Ok(None) => {
                    self.flush_wal_file()?;
                    self.files.shared.set(Word::Window, 0);
                }
                Err(Error::OutOfMemory) => return Err(Error::OutOfMemory),
                Err(error) => {
                    self.session.give_up(&error);
                    self.flush_wal_file()?;
                    return Ok(false);
                }
            }
        }
        Ok(false)
    }

    /// `-wal` is about to be cut to nothing: what it held is in the database, durably, and nothing
    /// of it may count again (WAL-6). That is said before it is cut: frames that begin within a
    /// generation could not be told from those of a file that lost its beginning.
    pub(crate) fn end_generation(&mut self) -> Result<()> {
        self.flush_database_if_dirty()?;
        if self.files.shared.is(Word::Session) {
            with_log_waiting(self, |connection, leader| connection.void_generation(leader))?;
        }
        self.files.shared.set(Word::Salts, 0);
        self.files.shared.set_durable(0);
        Ok(())
    }

    /// Says in the log, durably, that `-wal` with the header of this generation, or of one before,
    /// is void.
    pub(crate) fn void_generation(&mut self, leader: &mut Leader<S>) -> Result<()> {
        // Cut to nothing, it has been said already.
        if self.files.shared.get(Word::Salts) == 0 || broken(Mutation::NoEnd) {
            return Ok(());
        }
        let salts = unpack(self.files.shared.get(Word::Salts));
        let mut header = [0; WAL_HEADER];
        header[16..20].copy_from_slice(&salts[0].to_be_bytes());
        header[20..24].copy_from_slice(&salts[1].to_be_bytes());
        let context = HeadContext::Void(self.files.shared.generation(&header));
        self.write_head(leader, &context)?;
        self.session.flush(leader)?;
        self.files.shared.set(Word::Window, 0);
        self.files.shared.set(Word::HeadVoid, 1);
        Ok(())
    }

    /// Takes that back, durably, once `-wal` has another header and what is behind it became
    /// durable without a record: its salts may be drawn, and look like older ones.
    pub(crate) fn take_back_void(&mut self, leader: &mut Leader<S>) -> Result<()> {
        if !self.files.shared.is(Word::HeadVoid) || !self.files.shared.is(Word::Session) {
            return Ok(());
        }
        self.write_head(leader, &HeadContext::Nothing)?;
        self.session.flush(leader)?;
        self.files.shared.set(Word::HeadVoid, 0);
        Ok(())
    }

    /// Says in the log's head that no record counts, and what that means for `-wal`. Not flushed.
    pub(crate) fn write_head(
        &mut self,
        leader: &mut Leader<S>,
        context: &HeadContext,
    ) -> Result<()> {
        open_log(self, leader)?;
        let next = match context {
            HeadContext::Closed { .. } => Some(self.files.shared.get(Word::Position)),
            HeadContext::Nothing | HeadContext::Void(_) => None,
        };
        self.session.write_head(leader, State::Clean, next, context.encode())
    }
}
