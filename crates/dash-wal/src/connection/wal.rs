//! `-wal`: the file as SQLite has it open, and the frames of the transaction in hand as they went
//! there.
//!
//! SQLite writes a frame in two calls, its header and its page (wal.c `walWriteOneFrame`). It goes
//! to the file in one, with the page. A connection that flushes its own transaction alone need not
//! read it back, as long as no frame of it was written twice: SQLite writes a spilled page's frame
//! again in place, and all headers behind it, until the transaction is committed, so what was
//! written first is not what counts.

use crate::bounds::is_page_size;
use crate::connection::files::Files;
use crate::context::{Generation, WAL_HEADER, page_of, salts_word};
use crate::frames::{
    FRAME_HEADER, FrameHeader, Place, frame_offset, frame_size, is_unsummed, place_of,
};
use crate::index::Index;
use crate::memory::InMemory;
use crate::memory::wal::WalFile;
use crate::mutation::{Mutation, broken};
use crate::shared::coordination::Word;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::open::{ATTEMPTS, is_named_so, is_surely_named_so, open_if_there, replaced};
use dash_log::session::Batch;
use dash_storage::{File, FileId, OpenMode, Storage};
use std::sync::Arc;

/// Bytes of frames kept at the most. Larger transactions are read back.
const MOST: usize = 256 << 10;

/// `-wal`, and what is known of it.
pub(crate) struct Wal<S: Storage> {
    /// While SQLite has it open.
    pub open: Option<WalFile<S::File>>,
    /// What takes the place of its page cache, and of that of `-shm`; `None`: nothing does.
    pub memory: Option<Arc<InMemory<S>>>,
    /// Bytes of a page, in the generation of this number.
    pub page: Option<(u64, u32)>,
    pub own: OwnFrames,
    /// What of it is in the database.
    pub backfill: Backfill,
    /// It was not deleted, and SQLite takes it for that, as long as it has the database locked.
    pub is_kept: bool,
    /// This connection refused what it found beside the log: it must not end that session.
    pub is_refused: bool,
    /// Flushes of it.
    pub flushes: u64,
    /// Bytes that have reached its file, but for those since SQLite opened it.
    pub file_bytes: u64,
}

impl<S: Storage> Default for Wal<S> {
    fn default() -> Self {
        let (own, backfill) = (OwnFrames::default(), Backfill::default());
        let (open, memory, page) = (None, None, None);
        let (is_kept, is_refused, flushes, file_bytes) = (false, false, 0, 0);
        Self { open, memory, page, own, backfill, is_kept, is_refused, flushes, file_bytes }
    }
}

impl<S: Storage> Wal<S> {
    /// Which file it is, if SQLite has it open.
    pub fn id(&self) -> Option<FileId> {
        self.open.as_ref().map(|wal| wal.file().id())
    }

    /// The file.
    pub fn file(&self, files: &Files<S>) -> Result<&WalFile<S::File>> {
        let is_not_open = || Error::CantOpen(format!("{} is not open", files.names.shown_wal()));
        self.open.as_ref().ok_or_else(is_not_open)
    }

    /// The file by its name, if it is there, for what is read and written beside SQLite: as SQLite
    /// has it open, if it has, since each descriptor more costs at its closing.
    ///
    /// # Errors
    ///
    /// `CantOpen` for one that is another file, too: whatever lay there before, it may be by now;
    /// or for one that somebody goes on replacing.
    pub fn find(&self, files: &Files<S>) -> Result<Option<Arc<S::File>>> {
        let (name, shown) = (&files.names.wal, files.names.shown_wal());
        if let Some(open) = self.open.as_ref().map(WalFile::file)
            && is_named_so(&*files.directory, (name, shown), &**open)?
        {
            return Ok(Some(Arc::clone(open)));
        }
        for _ in 0..ATTEMPTS {
            let wal = open_if_there::<S>(&files.directory, name, OpenMode::ReadWrite)?;
            match &wal {
                Some(file) if !is_surely_named_so(&*files.directory, (name, shown), file)? => {}
                _ => return Ok(wal.map(Arc::new)),
            }
        }
        Err(replaced(shown))
    }

    /// Bytes of a page in it; `None`: it has no header.
    pub fn page_size(&mut self, files: &Files<S>) -> Result<Option<u32>> {
        let generation = files.shared.get(Word::Generation);
        if let Some((_, page)) = self.page.filter(|(of, _)| *of == generation) {
            return Ok(Some(page));
        }
        let page =
            self.header(files)?.map(|header| page_of(&header)).filter(|it| is_page_size(*it));
        self.page = page.map(|page| (generation, page));
        Ok(page)
    }

    /// Its header, as it is in the page cache.
    pub fn header(&self, files: &Files<S>) -> Result<Option<[u8; WAL_HEADER]>> {
        let mut header = [0; WAL_HEADER];
        let whole = self.file(files)?.read_exact(&mut header, 0);
        let whole = whole.during(Operation::Read, files.names.shown_wal())?;
        Ok(whole.then_some(header))
    }

    /// The generation that it is in, by the header that is there.
    pub fn generation(&self, files: &Files<S>) -> Result<Generation> {
        let current = |header: &[u8; WAL_HEADER]| {
            salts_word(header) == files.shared.get(Word::Salts) || broken(Mutation::SaltsNotChecked)
        };
        match self.header(files)?.filter(current) {
            Some(header) => Ok(files.shared.generation(&header)),
            None => {
                Err(files.strange("its header is not the one that its frames were written under"))
            }
        }
    }

    /// The page in frame `number`. The index knows it without a call of the system, of which there
    /// would be one for each frame that other processes have written.
    pub fn page_in(
        &self,
        number: u32,
        page: u32,
        index: Option<&Index<S>>,
        files: &Files<S>,
    ) -> Result<u32> {
        let asked = if broken(Mutation::FrameBefore) { (number - 1).max(1) } else { number };
        if let Some(page) = index.and_then(|index| index.page_of(asked)) {
            return Ok(page);
        }
        let mut header = [0; FRAME_HEADER];
        let whole = self.file(files)?.read_exact(&mut header, frame_offset(number, page));
        match whole.during(Operation::Read, files.names.shown_wal())? {
            true => Ok(FrameHeader::decode(&header).page),
            false => Err(files.strange("it is shorter than the index says")),
        }
    }

    /// Reads frames, which are appended by nobody meanwhile, into `frames`.
    pub fn read_back(
        &mut self,
        batch: Batch,
        frames: &mut Vec<u8>,
        files: &Files<S>,
    ) -> Result<()> {
        let size = usize::try_from(frame_size(batch.page)).map_err(|_| Error::OutOfMemory)?;
        if self.own.take_whole((batch.first, batch.last), size, frames) {
            return Ok(());
        }
        let len = u64::from(batch.last - batch.first + 1) * frame_size(batch.page);
        let len = usize::try_from(len).map_err(|_| Error::OutOfMemory)?;
        let more = len.saturating_sub(frames.len());
        frames.try_reserve(more).map_err(|_| Error::OutOfMemory)?;
        frames.resize(len, 0);
        let whole = self.file(files)?.read_exact(frames, frame_offset(batch.first, batch.page));
        match whole.during(Operation::Read, files.names.shown_wal())? {
            true => Ok(()),
            false => Err(files.strange("it is shorter than the index says")),
        }
    }

    /// Takes what SQLite writes, if it is a new frame's header, which waits for its page, or that
    /// page.
    pub fn take_frame(&mut self, data: &[u8], offset: u64, files: &Files<S>) -> Result<bool> {
        let Some(page) = self.page_size(files)? else { return Ok(false) };
        if data.len() == page as usize {
            let Some(wal) = &self.open else { return Ok(false) };
            let Some((frame, at)) = self.own.complete(data, offset)? else { return Ok(false) };
            let written = wal.write_at(frame, at);
            if written.is_err() {
                self.own.spoil();
            }
            return written.during(Operation::Write, files.names.shown_wal()).map(|()| true);
        }
        let header = <&[u8; FRAME_HEADER]>::try_from(data).ok();
        match (header, place_of(offset, page)) {
            (Some(header), Some(Place::Frame { number, within: 0 })) => {
                self.write_held(files)?;
                if is_unsummed(header) {
                    self.own.pass(number);
                    return Ok(false);
                }
                self.own.hold(header, number, offset)
            }
            _ => Ok(false),
        }
    }

    /// Writes a header whose page has not come, before anything else is done with the file.
    pub fn write_held(&mut self, files: &Files<S>) -> Result<()> {
        let Some((header, at)) = self.own.take_held() else { return Ok(()) };
        let Some(wal) = &self.open else { return Ok(()) };
        wal.write_at(header, at).during(Operation::Write, files.names.shown_wal())
    }

    /// The same, where what is written next is no new frame.
    pub fn spoil_own(&mut self, files: &Files<S>) -> Result<()> {
        self.write_held(files)?;
        self.own.spoil();
        Ok(())
    }
}

/// The frames of the transaction in hand.
#[derive(Debug, Default)]
pub(crate) struct OwnFrames {
    /// Frames, one after the other; behind them a header that waits for its page.
    bytes: Vec<u8>,
    /// Number of the first one; 0: there is none.
    first: u32,
    /// Number of the last one of the transaction.
    last: u32,
    /// Where the header goes that waits.
    held: Option<u64>,
    /// Not all frames of the transaction are here, or not as they are in `-wal`.
    is_partial: bool,
}

impl OwnFrames {
    /// Another transaction begins.
    pub(crate) fn begin(&mut self) {
        self.bytes.clear();
        *self = Self { bytes: std::mem::take(&mut self.bytes), ..Self::default() };
    }

    /// The transaction is durable, or was rolled back: others may write frames of these numbers.
    pub(crate) fn end(&mut self) {
        if !broken(Mutation::OwnFramesOutlive) {
            self.is_partial = true;
        }
    }

    /// The header that waits for its page no more, and where it goes.
    pub(crate) fn take_held(&mut self) -> Option<(&[u8], u64)> {
        let at = self.held.take()?;
        self.spoil();
        Some((&self.bytes[self.bytes.len() - FRAME_HEADER..], at))
    }

    /// Something was written into `-wal` that is not the next frame of the transaction.
    pub(crate) fn spoil(&mut self) {
        self.is_partial |= !broken(Mutation::SpoiltFramesLogged);
    }

    /// Makes `frames` the frames `first` to `last`, if those are the whole transaction, and it is
    /// here; `size` bytes each. It is here no more then.
    pub(crate) fn take_whole(
        &mut self,
        (first, last): (u32, u32),
        size: usize,
        frames: &mut Vec<u8>,
    ) -> bool {
        let count = last.checked_sub(first).and_then(|more| usize::try_from(more).ok());
        let len = count.and_then(|more| more.checked_add(1)?.checked_mul(size));
        let is_whole = !self.is_partial && self.held.is_none();
        let is_it = (self.first, self.last) == (first, last) && len == Some(self.bytes.len());
        if is_whole && is_it {
            std::mem::swap(&mut self.bytes, frames);
            self.is_partial = true;
        }
        is_whole && is_it
    }

    /// A header that is to get its salts and its checksum later: then it is written again, without
    /// its page.
    pub(crate) fn pass(&mut self, number: u32) {
        self.last = self.last.max(number);
    }

    /// Keeps a header back until its page comes. No, where the frame is not a new one: nothing need
    /// follow then, for SQLite writes some headers again without their pages.
    pub(crate) fn hold(&mut self, header: &[u8], number: u32, offset: u64) -> Result<bool> {
        if number <= self.last {
            return Ok(false);
        }
        if self.first == 0 {
            self.first = number;
        } else if number != self.last + 1 || self.bytes.len() > MOST {
            self.spoil();
        }
        if self.is_partial {
            self.bytes.clear();
        }
        self.bytes.try_reserve(header.len()).map_err(|_| Error::OutOfMemory)?;
        self.bytes.extend_from_slice(header);
        (self.last, self.held) = (number, Some(offset));
        Ok(true)
    }

    /// The frame whose page this is, and where it goes, if its header waits for it.
    pub(crate) fn complete(&mut self, page: &[u8], offset: u64) -> Result<Option<(&[u8], u64)>> {
        let Some(at) = self.held.filter(|at| at + FRAME_HEADER as u64 == offset) else {
            return Ok(None);
        };
        self.bytes.try_reserve(page.len()).map_err(|_| Error::OutOfMemory)?;
        self.held = None;
        let start = self.bytes.len() - FRAME_HEADER;
        self.bytes.extend_from_slice(page);
        Ok(Some((&self.bytes[start..], at)))
    }
}

/// What of `-wal` is in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Backfill {
    /// Every commit.
    #[default]
    Whole,
    /// Not every commit.
    Partial,
    /// What SQLite found there when it opened it may not be: commits before frame `before`.
    Unknown { before: u32 },
}

impl Backfill {
    /// As long as nothing is known of a `-wal` that was opened.
    pub(crate) const OPENED: Self = Self::Unknown { before: u32::MAX };

    /// A transaction begins with frame `number`: what is from there on was not found, and does not
    /// count before it is committed.
    pub(crate) fn is_written_from(&mut self, number: u32) {
        if let Self::Unknown { before } = self {
            *before = number.min(*before);
        }
    }
}
