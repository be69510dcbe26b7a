//! Reading pages, sizes and page lists as this connection's snapshot has them.

use crate::connection::state::Connection;
use crate::connection::view::{FOREIGN_CHECK_NANOS, LOOKS};
use crate::file::page_list::{global_page_list, read_units};
use crate::file::tail::Tail;
use crate::format::header::{HEADER_LEN, Header, Marks, VERSION_BYTES, plain};
use crate::shared::locks::LockLevel;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::io::read_padded;
use dash_engine::ranges::RangeSet;
use dash_storage::{File, Storage};
use std::sync::Arc;

impl<S: Storage> Connection<S> {
    /// Reads up to `buffer.len()` bytes at `offset`, fewer at the end of the database.
    pub fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        if self.view.level == LockLevel::None {
            return self.read_unlocked(buffer, offset);
        }
        if self.debts.unpublished.is_some() {
            self.publish_at_last()?;
        }
        let size = self.size();
        let len =
            usize::try_from(size.saturating_sub(offset)).unwrap_or(usize::MAX).min(buffer.len());
        let buffer = &mut buffer[..len];
        if self.transaction.as_ref().is_some_and(|transaction| !transaction.is_clean()) {
            self.read_written(buffer, offset)?;
        } else if offset == VERSION_BYTES.start as u64 && len == VERSION_BYTES.len() {
            buffer.copy_from_slice(&self.view.snapshot.version);
        } else {
            // Not its `Arc`: counting up and down is 2 % of a scan.
            let file = self.pair.file_ref(self.view.current.slot)?;
            read_padded(&**file, buffer, offset)
                .during(Operation::Read, self.pair.names.shown())?;
            self.mend_read(buffer, offset)?;
        }
        if offset == 0 {
            plain(buffer);
        }
        Ok(len)
    }

    /// SQLite reads the header before its first lock (T26): take the copy that is current before
    /// and after. Whoever opens a database for SQLite has looked at it a moment before; a look is
    /// passed on once, and counts as [`notice_foreign_write`](Self::notice_foreign_write)'s.
    pub(crate) fn read_unlocked(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        for _ in 0..LOOKS {
            self.reload_if_pair_changed()?;
            let current = self.pair.coordination.current();
            if self.pair.coordination.generation() != self.pair.generation {
                continue;
            }
            let snapshot = self.pair.coordination.snapshot(current.slot);
            let len = usize::try_from(snapshot.size.saturating_sub(offset))
                .unwrap_or(usize::MAX)
                .min(buffer.len());
            let now = self.pair.storage.monotonic_nanos();
            let whole_header = offset == 0 && len == HEADER_LEN;
            if let Some((at, of, header)) = self.view.opening_header.take()
                && whole_header
                && of == current
                && now.wrapping_sub(at) <= FOREIGN_CHECK_NANOS
            {
                buffer[..len].copy_from_slice(&header.0);
                return Ok(len);
            }
            let file = self.pair.file(current.slot)?;
            read_padded(&*file, &mut buffer[..len], offset)
                .during(Operation::Read, self.pair.names.shown())?;
            if self.pair.coordination.current() == current {
                if offset == 0 {
                    plain(&mut buffer[..len]);
                }
                if whole_header && let Some(header) = Header::of(buffer) {
                    self.view.opening_header = Some((now, current, header));
                    if header.version() == snapshot.version {
                        self.view.checked_at = now;
                    }
                }
                return Ok(len);
            }
        }
        Err(Error::Busy)
    }

    /// Size of the database in bytes, as this connection sees it; never the length of a file.
    pub fn size(&self) -> u64 {
        match &self.transaction {
            Some(transaction) => transaction.size,
            None if self.view.level == LockLevel::None => {
                self.pair.coordination.snapshot(self.pair.coordination.current().slot).size
            }
            None => self.view.snapshot.size,
        }
    }

    /// The file a page can be mapped from, if `range` is as committed: none of it has been written
    /// by the running transaction. Valid while the lock is held. At level `Shared` the answer for
    /// one range holds for all of `1..size()`, until the level changes.
    pub fn mappable(&self, range: std::ops::Range<u64>) -> Option<&Arc<S::File>> {
        let written =
            self.transaction.as_ref().is_some_and(|transaction| transaction.touches(&range));
        let slot = self.view.current.slot;
        let fits = self.view.level >= LockLevel::Shared
            && !written
            && range.start > 0
            && range.end <= self.view.snapshot.size;
        // Pin first, look afterwards: either the writer sees that pages are mapped, or this sees
        // that they are about to be overwritten (SHADOW-11).
        let mapped = fits
            && (self.pair.coordination.pin_mapped(self.view.current)
                || !self.pair.coordination.is_registered());
        (mapped && self.pair.coordination.overwritten(slot) <= self.view.current.sequence)
            .then(|| self.pair.files[slot].as_ref())
            .flatten()
    }

    /// Bytes that the next commit must carry, if this connection made the last one; else 0.
    pub fn owes(&self) -> u64 {
        match &self.memo.page_list {
            Some((sequence, list))
                if *sequence == self.pair.coordination.current().sequence
                    && !self.pair.coordination.is_settled() =>
            {
                list.bytes()
            }
            _ => 0,
        }
    }

    /// Global Page List of the current copy: what its transaction changed.
    pub(crate) fn current_page_list(&mut self) -> Result<RangeSet> {
        if let Some((sequence, list)) = &self.memo.page_list
            && *sequence == self.view.current.sequence
        {
            return Ok(list.clone());
        }
        let file = self.current_file()?;
        let name = self.pair.names.shown().clone();
        let tail = Tail::read(&*file, &name)?;
        let Some(block) = tail.bound(file.id()).filter(|block| block.id == self.view.snapshot.id)
        else {
            return Ok(std::iter::once(0..self.view.snapshot.size).collect());
        };
        let units = read_units(&*file, tail.len, block, &name)?;
        let list = units.map_or_else(
            || std::iter::once(0..self.view.snapshot.size).collect(),
            |units| global_page_list(&units),
        );
        self.memo.page_list = Some((self.view.current.sequence, list.clone()));
        Ok(list)
    }
}
