//! The frames of the transaction in hand, as they went into `-wal`.
//!
//! SQLite writes a frame in two calls, its header and its page (wal.c `walWriteOneFrame`). It goes
//! to the file in one, with the page. And whoever flushes its own transaction alone need not read
//! it back, as long as no frame of it was written twice.

use crate::connection::state::Connection;
use crate::connection::sums::is_unsummed;
use crate::frames::{FRAME_HEADER, Place, place_of};
use crate::mutation::{Mutation, broken};
use dash_engine::error::{Context, Error, Operation, Result};
use dash_storage::{File, Storage};

/// Bytes kept at the most. Larger transactions are read back.
const MOST: usize = 256 << 10;

/// See the module.
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
        (self.first, self.last, self.is_partial) = (0, 0, false);
    }

    /// Something was written into `-wal` that is not the next frame of the transaction.
    fn spoil(&mut self) {
        self.is_partial |= !broken(Mutation::SpoiltFramesLogged);
    }

    /// Frames `first` to `last`, if those are the whole transaction, and it is here; `size` bytes
    /// each.
    pub(crate) fn whole(&self, first: u32, last: u32, size: usize) -> Option<&[u8]> {
        let count = usize::try_from(last.checked_sub(first)?).ok()?.checked_add(1)?;
        let is_whole = !self.is_partial && self.held.is_none();
        let is_it = (self.first, self.last) == (first, last) && self.bytes.len() == count * size;
        (is_whole && is_it).then_some(&self.bytes[..])
    }

    /// Keeps a header back until its page comes. No, where the frame is not a new one: nothing need
    /// follow then, for SQLite writes some headers again without their pages.
    fn hold(&mut self, header: &[u8], number: u32, offset: u64) -> Result<bool> {
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
    fn complete(&mut self, page: &[u8], offset: u64) -> Result<Option<(&[u8], u64)>> {
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

impl<S: Storage> Connection<S> {
    /// Takes what SQLite writes, if it is a new frame's header, which waits for its page, or that
    /// page.
    pub(crate) fn take_frame(&mut self, data: &[u8], offset: u64) -> Result<bool> {
        // Without a shared index nothing tells where a transaction begins.
        if self.index.is_none() {
            return Ok(false);
        }
        let Some(page) = self.page_size()? else { return Ok(false) };
        let place = place_of(offset, page);
        if data.len() == page as usize {
            let Some(wal) = &self.wal else { return Ok(false) };
            let Some((frame, at)) = self.own.complete(data, offset)? else { return Ok(false) };
            let written = wal.write_at(frame, at).during(Operation::Write, self.names.shown_wal());
            if written.is_err() {
                self.own.spoil();
            }
            return written.map(|()| true);
        }
        let header = <&[u8; FRAME_HEADER]>::try_from(data).ok();
        match (header, place) {
            (Some(header), Some(Place::Frame { number, within: 0 })) if !is_unsummed(header) => {
                self.write_held()?;
                self.own.hold(header, number, offset)
            }
            _ => Ok(false),
        }
    }

    /// Writes a header whose page has not come, before anything else is done with `-wal`.
    pub(crate) fn write_held(&mut self) -> Result<()> {
        let Some(at) = self.own.held.take() else { return Ok(()) };
        let header = self.own.bytes.len() - FRAME_HEADER;
        self.own.spoil();
        let written = self.wal()?.write_at(&self.own.bytes[header..], at);
        written.during(Operation::Write, self.names.shown_wal())
    }

    /// The same, where what is written next is no new frame.
    pub(crate) fn spoil_own_frames(&mut self) -> Result<()> {
        self.write_held()?;
        self.own.spoil();
        Ok(())
    }
}
