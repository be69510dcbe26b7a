//! What SQLite does while it has a view of the index that is its own ([`super`]).
//!
//! - What it has not read yet it reads as it is now.
//! - Its frames, which it numbers from the snapshot's end on, go to the end of `-wal`, with the
//!   salts and checksums of that place.
//! - What it adds to the index is added to the shared one when it gives WRITER up.
//!
//! The view lasts until SQLite stops reading. Everything else here knows true numbers alone.

use crate::connection::state::Connection;
use crate::connection::upgrade::reads::LEAST;
use crate::connection::upgrade::view::View;
use crate::frames::{FRAME_HEADER, FrameHeader, Place, WalHeader, frame_offset, place_of};
use crate::index::{self, End};
use crate::mutation::{Mutation, broken};
use dash_engine::error::{Error, Result};
use dash_engine::io::read_header;
use dash_storage::{LockKind, Storage};
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

impl<S: Storage> Connection<S> {
    /// Reads the database's file, as SQLite does.
    ///
    /// # Errors
    ///
    /// The files fail.
    pub fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        if self.reads.size.is_none() && offset + buffer.len() as u64 > LEAST {
            let header = read_header(&**self.files.database.file(), self.files.names.shown())?;
            self.reads.size = header.and_then(|header| header.page_size());
        }
        self.reads.note(offset, buffer.len());
        let viewed = self.view.as_ref().zip(self.index.open.as_ref());
        match viewed.and_then(|(view, index)| view.newest_place(index, offset)) {
            Some(at) => self.read_wal_file(buffer, at),
            None => self.files.database.read(buffer, offset),
        }
    }

    /// SQLite asks for pages of the database's file in mapped memory, and reads there from here on
    /// without a call. `false`: what is there is not what it is to read.
    pub fn may_be_mapped(&mut self) -> bool {
        let may = self.view.is_none();
        if may {
            self.reads.are_mapped();
        }
        may
    }

    /// Where in `-wal` what SQLite reads at `offset` is.
    pub(crate) fn wal_place(&mut self, offset: u64) -> u64 {
        let size = self.view.as_ref().map(|view| view.page).or(self.reads.size);
        // A checkpoint reads what goes into no cache.
        let Some(size) = size.filter(|_| !self.index.holds(index::CKPT)) else { return offset };
        let Some(Place::Frame { number, within }) = place_of(offset, size) else { return offset };
        let (Some(index), reads) = (&self.index.open, &mut self.reads) else { return offset };
        if let Some(view) = self.view.as_ref().filter(|view| number > view.last) {
            let (frame, _) = view.true_numbers(number).unwrap_or((number, number));
            return frame_offset(frame, size) + within;
        }
        if within < FRAME_HEADER as u64 {
            return offset;
        }
        let Some(page) = index.page_of(number) else {
            reads.pages.insert_all();
            return offset;
        };
        reads.pages.insert(page);
        match self.view.as_ref().and_then(|view| view.newest(index, page)) {
            Some(frame) => frame_offset(frame, size) + within,
            None => offset,
        }
    }

    /// Whether SQLite reads the header of a frame that its snapshot has, for a checksum that is not
    /// used: frames get those of their true place, and that frame may be there no more.
    pub(crate) fn is_of_no_use(&self, offset: u64) -> bool {
        self.view.as_ref().is_some_and(|view| match place_of(offset, view.page) {
            Some(Place::Frame { number, within }) => {
                number <= view.last && within < FRAME_HEADER as u64
            }
            _ => false,
        })
    }

    /// Takes what SQLite writes into `-wal`.
    pub(crate) fn view_write(&mut self, data: &[u8], offset: u64) -> Result<()> {
        let Some(view) = &mut self.view else { return Ok(()) };
        // The header of an empty one; and what pads a sector behind the commit.
        let place = place_of(offset, view.page).filter(|_| view.writing.end.is_none());
        let Some(Place::Frame { number, within }) = place else { return Ok(()) };
        if !view.writing.is_begun {
            // Its frames would go over those of others.
            return Err(Error::BusySnapshot);
        }
        match <&[u8; FRAME_HEADER]>::try_from(data) {
            Ok(header) if within == 0 => {
                view.writing.header = Some((number, FrameHeader::decode(header)));
                let index = self.index.open.as_mut().ok_or(Error::BusySnapshot)?;
                index.view_frame(number)
            }
            _ => match view.writing.header.take().filter(|(expected, _)| *expected == number) {
                Some((_, header)) => self.move_frame(number, &header, data),
                // A page that was spilled before.
                None => {
                    let stale = &mut view.writing.stale;
                    *stale = if *stale == 0 { number } else { (*stale).min(number) };
                    let (frame, _) = view.true_numbers(number).ok_or(Error::BusySnapshot)?;
                    let at = frame_offset(frame, view.page) + within;
                    self.write_wal_file(data, at)
                }
            },
        }
    }

    /// Writes a frame to its true place.
    fn move_frame(&mut self, number: u32, header: &FrameHeader, page: &[u8]) -> Result<()> {
        let Some(view) = &mut self.view else { return Ok(()) };
        let (frame, first) = view.true_numbers(number).ok_or(Error::BusySnapshot)?;
        let (salts, offset) = (view.salts, frame_offset(frame, view.page));
        let at = usize::try_from(frame - first).map_err(|_| Error::OutOfMemory)?;
        let mut before = view.writing.before(at, number);
        let stale = view.writing.stale;
        if header.is_commit() && stale != 0 && !broken(Mutation::ViewedUnsummed) {
            let (from, _) = view.true_numbers(stale).ok_or(Error::BusySnapshot)?;
            before = self.wal.sum_up_from(from, frame - 1, &self.files)?;
        }
        let name = Arc::clone(self.files.names.shown_wal());
        let bytes = self.wal.header(&self.files)?;
        let wal = bytes.map(|bytes| WalHeader::decode(&bytes, &name)).transpose()?.flatten();
        let wal = wal.filter(|wal| wal.salts == salts);
        let wal = wal.ok_or_else(|| self.files.strange("it has another header than the index"))?;
        let bytes = FrameHeader::behind(&wal, before, (header.page, header.commit), page);
        let checksum = FrameHeader::decode(&bytes).checksum;
        if let Some(view) = &mut self.view {
            view.writing.push(header.page, checksum)?;
        }
        if header.is_commit() {
            let index = self.index.open.as_mut().ok_or(Error::BusySnapshot)?;
            index.reach(first..=frame)?;
            if let Some(next) = &mut self.transaction.saying.next {
                // Statements that are run again find the rows of others (WAL-32).
                next.runner = None;
            }
        }
        self.write_wal_file(&bytes, offset)?;
        self.write_wal_file(page, offset + FRAME_HEADER as u64)?;
        if let (true, Some(view)) = (header.is_commit(), &mut self.view) {
            view.writing.end = Some(End { frame, checksum, pages: header.commit });
        }
        Ok(())
    }

    /// Whether a flush of `-wal` is for something that was written there.
    pub(crate) fn has_view_committed(&self) -> bool {
        self.view.as_ref().is_none_or(|view| view.writing.end.is_some())
    }

    /// SQLite gives WRITER up: what it has committed in the view all see from here on.
    pub(crate) fn publish_view(&mut self) {
        let (Some(view), Some(index)) = (&mut self.view, &self.index.open) else { return };
        let writing = std::mem::take(&mut view.writing);
        let is_committed = index.viewed_header() != writing.began;
        let Some(end) = writing.end.filter(|_| is_committed) else { return };
        let count = u32::try_from(writing.pages().len()).unwrap_or(u32::MAX);
        let frames: RangeInclusive<u32> = end.frame + 1 - count.min(end.frame)..=end.frame;
        let added = frames.zip(writing.pages()).all(|(frame, page)| index.append(frame, page));
        match added {
            true => index.show(end),
            // A table that is none of SQLite's: it is made anew, with these frames.
            false => index.void_header(),
        }
        view.ended(end.frame);
    }

    /// Whether SQLite's call for slots is answered here. It asks for none while it has a view but
    /// WRITER, and what [`Self::view_lock`] tells of.
    ///
    /// # Errors
    ///
    /// `Busy` for the others; those of ending a view that could not be ended before.
    pub(crate) fn lock_in_view(&mut self, slots: &Range<usize>, kind: LockKind) -> Result<bool> {
        let writer = slots.contains(&index::WRITE) && kind == LockKind::Exclusive;
        let view = self.view.as_ref().filter(|_| !writer);
        let Some(shown) = view.map(|view| view.shown) else { return Ok(false) };
        match shown {
            Some(shown) if kind == LockKind::Shared => {
                let held = self.end_view(shown..shown + 1)?;
                self.index.unlock(held, &self.files)?;
                Ok(false)
            }
            _ if self.view_lock(slots, Some(kind)) => Ok(true),
            _ => Err(Error::Busy),
        }
    }

    /// Whether a call about slots is answered here: one about what SQLite takes itself to have. It
    /// gives READ(0) up before its first frame, and takes a mark instead (wal.c `walRestartLog`).
    pub(crate) fn view_lock(&mut self, slots: &Range<usize>, kind: Option<LockKind>) -> bool {
        let writes = self.index.holds(index::WRITE);
        let Some(view) = &mut self.view else { return false };
        match kind {
            None if slots.len() == 1 && writes && view.shown == Some(slots.start) => {
                view.shown = None;
                true
            }
            Some(LockKind::Shared) if view.shown.is_none() => {
                view.shown = Some(slots.start);
                true
            }
            _ => false,
        }
    }

    /// SQLite gives slots up in the view; which ones these are. Where it stops reading the view
    /// ends, and what SQLite knows of the index is the view's.
    pub(crate) fn end_view(&mut self, slots: Range<usize>) -> Result<Range<usize>> {
        if slots.contains(&index::WRITE) {
            self.publish_view();
            if self.view.as_ref().is_some_and(View::is_unused) {
                // SQLite reads another snapshot than it began with (`sqlite3_snapshot_open`).
                if let Some(index) = &mut self.index.open {
                    index.end_view()?;
                }
                self.view = None;
            }
            return Ok(slots);
        }
        let (Some(view), Some(index)) = (&self.view, &mut self.index.open) else {
            return Ok(slots);
        };
        if view.shown.is_some_and(|shown| shown != slots.start) {
            return Ok(slots);
        }
        let held = view.held;
        if let Some(header) = index.viewed_header() {
            self.reads.go_by(&header);
        }
        index.end_view()?;
        self.view = None;
        Ok(held..held + 1)
    }
}
