//! Frames into the log: one record, one write, one flush (header embedding, WALDIO).
//!
//! They were read back from `-wal`, whoever wrote them, or kept as one's own ([`super::wal`]).

use crate::connection::state::Connection;
use crate::context::RecordContext;
use crate::frames::{FRAME_HEADER, FrameHeader, frame_offset, frame_size, unpack};
use crate::logged::put_ends;
use crate::mutation::{Mutation, broken};
use crate::process::{Leader, Window};
use crate::shared::coordination::Word;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_log::format::Form;
use dash_log::record::WINDOW_START;
use dash_log::session::Batch;
use dash_storage::Storage;

impl<S: Storage> Connection<S> {
    /// Makes a record of them; answers how many transactions end in it.
    pub(super) fn build_frames(&mut self, leader: &mut Leader<S>, batch: Batch) -> Result<u32> {
        let mut commits = 0;
        leader.kept.carried = 0;
        let starts = self.files.shared.get(Word::Window) == 0;
        let start = if starts { Some(self.wal.generation(&self.files)?) } else { None };
        let page = batch.page;
        self.catch_up(leader, batch, starts)?;
        let context = RecordContext {
            generation: self.files.shared.get(Word::Generation),
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
            let salts = unpack(self.files.shared.get(Word::Salts));
            if parsed.salts != salts && !broken(Mutation::SaltsNotChecked) {
                return Err(self.files.strange("a visible frame has other salts"));
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
                    let wal = self.wal.open.as_ref().ok_or(Error::OutOfMemory)?;
                    let whole = wal.read_exact(&mut leader.kept.old, place);
                    whole.during(Operation::Read, self.files.names.shown_wal())?;
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
        self.counters.own.frames += u64::from(batch.last - batch.first + 1);
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
        let c = &self.files.shared;
        let generation = c.get(Word::Generation);
        let first = match starts && !broken(Mutation::BaseBeforeWindow) {
            true => batch.first,
            false => u32::try_from(c.get(Word::WindowFrame)).unwrap_or(u32::MAX),
        };
        let window = &mut leader.kept.window;
        let known =
            window.generation == generation && window.first == first && window.upto < batch.first;
        if !known || starts {
            *window =
                Window { generation, first, upto: first.saturating_sub(1), ..Window::default() };
        }
        for number in window.upto + 1..batch.first {
            let page =
                self.wal.page_in(number, batch.page, self.index.open.as_ref(), &self.files)?;
            leader.kept.window.last.try_reserve(1).map_err(|_| Error::OutOfMemory)?;
            leader.kept.window.last.insert(page, number);
        }
        leader.kept.window.upto = batch.first - 1;
        Ok(())
    }
}

/// The image in the frame that is so many behind the first of `frames`.
fn image_in(frames: &[u8], index: u32, size: usize) -> Option<&[u8]> {
    let from = usize::try_from(index).ok()?.checked_mul(size)?;
    frames.get(from + FRAME_HEADER..from + size)
}
