//! Frames into the log: one record, one write, one flush (header embedding, WALDIO).
//!
//! They are read back from `-wal`, whoever wrote them, except a transaction of one's own of which
//! no frame was written twice: SQLite writes a spilled page's frame again in place, and all headers
//! behind it, until the transaction is committed, so what was written first is not what counts.

use crate::connection::state::Connection;
use crate::context::{Generation, RecordContext, WAL_HEADER, salts_word};
use crate::frames::{FRAME_HEADER, FrameHeader, frame_offset, frame_size};
use crate::logged::put_ends;
use crate::mutation::{Mutation, broken};
use crate::process::{Leader, Window};
use crate::shared::coordination::Word;
use crate::shared::durable::unpack;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_log::format::Form;
use dash_log::record::WINDOW_START;
use dash_log::session::Batch;
use dash_storage::Storage;
use std::sync::Arc;

impl<S: Storage> Connection<S> {
    /// Reads frames of `-wal`.
    pub(super) fn read_back(&mut self, leader: &mut Leader<S>, batch: Batch) -> Result<()> {
        let size = usize::try_from(frame_size(batch.page)).map_err(|_| Error::OutOfMemory)?;
        if self.own.take_whole((batch.first, batch.last), size, &mut leader.kept.read) {
            return Ok(());
        }
        let page = batch.page;
        let count = u64::from(batch.last - batch.first + 1);
        let len = count * frame_size(page);
        let len = usize::try_from(len).map_err(|_| Error::OutOfMemory)?;
        let more = len.saturating_sub(leader.kept.read.len());
        leader.kept.read.try_reserve(more).map_err(|_| Error::OutOfMemory)?;
        leader.kept.read.resize(len, 0);
        let name = Arc::clone(self.names.shown_wal());
        let whole = self.wal()?.read_exact(&mut leader.kept.read, frame_offset(batch.first, page));
        match whole.during(Operation::Read, &name)? {
            true => Ok(()),
            false => Err(self.strange("it is shorter than the index says")),
        }
    }

    /// Makes a record of them; answers how many transactions end in it.
    pub(super) fn build_frames(&mut self, leader: &mut Leader<S>, batch: Batch) -> Result<u32> {
        let mut commits = 0;
        leader.kept.carried = 0;
        let starts = self.coordination.get(Word::Window) == 0;
        let start = if starts { Some(self.generation_in_wal()?) } else { None };
        let page = batch.page;
        self.catch_up(leader, batch, starts)?;
        let context = RecordContext {
            generation: self.coordination.get(Word::Generation),
            first_frame: batch.first,
            carried: None,
            start,
        };
        let size = usize::try_from(frame_size(page)).map_err(|_| Error::OutOfMemory)?;
        let is_short = self.begin_record(leader, page, &context, size)?;
        for (number, frame) in (batch.first..).zip(leader.kept.read.chunks_exact(size)) {
            let (header, image) = frame.split_at(FRAME_HEADER);
            let Ok(bytes) = header.try_into() else { continue };
            let parsed = FrameHeader::decode(bytes);
            let salts = unpack(self.coordination.get(Word::Salts));
            if parsed.salts != salts && !broken(Mutation::SaltsNotChecked) {
                return Err(self.strange("a visible frame has other salts"));
            }
            let before = leader.kept.window.last.get(&parsed.page).copied();
            let old = match before {
                None => None,
                Some(at) if at >= batch.first => {
                    image_in(&leader.kept.read, at - batch.first, size)
                }
                Some(at) if leader.kept.holds(at, size) => {
                    image_in(&leader.kept.before, at - leader.kept.window.before, size)
                }
                Some(at) => {
                    leader.kept.old.resize(size - FRAME_HEADER, 0);
                    let place = frame_offset(at, page) + FRAME_HEADER as u64;
                    let wal = self.wal.as_ref().ok_or(Error::OutOfMemory)?;
                    let whole = wal.read_exact(&mut leader.kept.old, place);
                    whole.during(Operation::Read, self.names.shown_wal())?;
                    Some(&leader.kept.old[..])
                }
            };
            let meta = if is_short { &[] } else { header };
            leader.builder.push(parsed.page, meta, old, image)?;
            commits += u32::from(parsed.is_commit());
            leader.kept.window.last.try_reserve(1).map_err(|_| Error::OutOfMemory)?;
            leader.kept.window.last.insert(parsed.page, number);
            leader.kept.window.upto = number;
        }
        std::mem::swap(&mut leader.kept.read, &mut leader.kept.before);
        leader.kept.window.before = batch.first;
        self.statistics.frames += u64::from(batch.last - batch.first + 1);
        Ok(commits)
    }

    /// Begins the record of frames of `size` bytes that were read back. Whether it is one without
    /// their headers.
    fn begin_record(
        &self,
        leader: &mut Leader<S>,
        page: u32,
        context: &RecordContext,
        size: usize,
    ) -> Result<bool> {
        let form = leader.form();
        let is_short = form == Form::Lines && context.start.is_none();
        let headers = leader.kept.read.chunks_exact(size).filter_map(|frame| frame.first_chunk());
        let (mut bytes, meta) = match is_short {
            true => (context.encode_short(), 0),
            false => (context.encode(), FRAME_HEADER),
        };
        if is_short && !broken(Mutation::EndsUnsaid) {
            put_ends(headers, &mut bytes);
        }
        let flags = if context.start.is_some() { WINDOW_START } else { 0 };
        let meta = u16::try_from(meta).unwrap_or_default();
        self.session.begin_record(leader, flags, page, meta, &bytes)?;
        Ok(is_short)
    }

    /// Brings the map of the window up to the frame before the batch: other processes may have
    /// written records. Only images that the window holds are built on (WAL-15).
    fn catch_up(&mut self, leader: &mut Leader<S>, batch: Batch, starts: bool) -> Result<()> {
        let generation = self.coordination.get(Word::Generation);
        let first = if starts && !broken(Mutation::BaseBeforeWindow) {
            batch.first
        } else {
            u32::try_from(self.coordination.get(Word::WindowFrame)).unwrap_or(u32::MAX)
        };
        let window = &mut leader.kept.window;
        let known =
            window.generation == generation && window.first == first && window.upto < batch.first;
        if !known || starts {
            *window =
                Window { generation, first, upto: first.saturating_sub(1), ..Window::default() };
        }
        for number in window.upto + 1..batch.first {
            let page = self.page_of(number, batch.page)?;
            leader.kept.window.last.try_reserve(1).map_err(|_| Error::OutOfMemory)?;
            leader.kept.window.last.insert(page, number);
        }
        leader.kept.window.upto = batch.first - 1;
        Ok(())
    }

    /// The page in frame `number`. The index knows it without a call of the system, of which there
    /// would be one for each frame that other processes have written.
    pub(super) fn page_of(&self, number: u32, page: u32) -> Result<u32> {
        let index = self.index.as_ref();
        let asked = if broken(Mutation::FrameBefore) { (number - 1).max(1) } else { number };
        if let Some(page) = index.and_then(|index| index.page_of(asked)) {
            return Ok(page);
        }
        let mut header = [0; FRAME_HEADER];
        let whole = self.wal()?.read_exact(&mut header, frame_offset(number, page));
        match whole.during(Operation::Read, self.names.shown_wal())? {
            true => Ok(FrameHeader::decode(&header).page),
            false => Err(self.strange("it is shorter than the index says")),
        }
    }

    /// The generation that `-wal` is in, by the header that is there.
    pub(super) fn generation_in_wal(&mut self) -> Result<Generation> {
        let header = self.wal_header()?;
        let current = |header: &[u8; WAL_HEADER]| {
            salts_word(header) == self.coordination.get(Word::Salts)
                || broken(Mutation::SaltsNotChecked)
        };
        match header.filter(current) {
            Some(header) => Ok(self.generation(&header)),
            None => {
                Err(self.strange("its header is not the one that its frames were written under"))
            }
        }
    }

    /// A generation with this header, and the present numbers.
    pub(crate) fn generation(&self, header: &[u8; WAL_HEADER]) -> Generation {
        let c = &self.coordination;
        let salt = |word| u32::try_from(c.get(word)).unwrap_or(0);
        Generation {
            number: c.get(Word::Generation),
            header: *header,
            first: salt(Word::FirstSalt),
            predecessor: salt(Word::Predecessor),
            stamp: c.stamp(),
        }
    }
}

/// The image in the frame that is so many behind the first of `frames`.
fn image_in(frames: &[u8], index: u32, size: usize) -> Option<&[u8]> {
    let from = usize::try_from(index).ok()?.checked_mul(size)?;
    frames.get(from + FRAME_HEADER..from + size)
}
