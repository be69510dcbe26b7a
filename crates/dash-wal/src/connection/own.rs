//! The frames of the transaction in hand, as they went into `-wal`.
//!
//! SQLite writes a frame in two calls, its header and its page (wal.c `walWriteOneFrame`). It goes
//! to the file in one, with the page. And whoever flushes its own transaction alone need not read
//! it back, as long as no frame of it was written twice.

use crate::frames::FRAME_HEADER;
use crate::mutation::{Mutation, broken};
use dash_engine::error::{Error, Result};

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
