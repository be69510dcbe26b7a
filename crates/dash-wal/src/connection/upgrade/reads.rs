//! What a connection's cache is of: the pages that it has read or written since SQLite dropped it
//! last, and the snapshot that they are of.
//!
//! SQLite drops its cache where the index's header is not the one that it knows, when it begins to
//! read (wal.c `walIndexReadHdr`, pager.c `pagerBeginReadTransaction`). What it finds in its cache
//! no call tells of, so pages of earlier transactions count as read.

use crate::index::{RawHeader, decode};
use crate::mutation::{Mutation, broken};
use dash_engine::page_set::PageSet;

/// See the module.
#[derive(Default)]
pub(crate) struct Reads {
    /// Read or written.
    pub pages: PageSet,
    /// The header that SQLite has begun to read with, or that of its own commit since.
    pub snapshot: Option<RawHeader>,
    /// The checksum of the one that its cache goes by. `None`: it has changed unseen.
    known: Option<u64>,
    /// Bytes of a page, once that is known.
    pub size: Option<u32>,
    /// SQLite reads pages without a call.
    is_mapped: bool,
    /// SQLite writes on top of the header that was there.
    is_current: bool,
}

/// The checksum at a header's end: of another state it is another one.
pub(crate) fn sum_of(header: &RawHeader) -> u64 {
    header.last_chunk().map_or(0, |sum| u64::from_ne_bytes(*sum))
}

/// Bytes of the smallest page.
pub(crate) const LEAST: u64 = 512;

impl Reads {
    /// SQLite has taken a reader's slot. Where the header is another one by now it gives the slot
    /// up again, so this is its snapshot's.
    pub fn begin(&mut self, header: RawHeader) {
        let sum = sum_of(&header);
        // A writer begins `-wal` anew, and takes another slot for that (wal.c `walRestartLog`).
        let is_own = self.is_current && !broken(Mutation::RestartForgetsReads);
        let drops = !is_own && self.known.is_some_and(|known| known != sum);
        if drops && !broken(Mutation::CachedPagesKept) || broken(Mutation::CachedPagesForgotten) {
            self.pages.clear();
            if self.is_mapped {
                self.pages.insert_all();
            }
        }
        (self.known, self.snapshot) = (Some(sum), Some(header));
        let size = decode(&header).map(|header| header.page_size).filter(|size| *size > 0);
        self.size = size.or(self.size);
    }

    /// SQLite gives WRITER up.
    pub fn cease_to_write(&mut self, header: Option<&RawHeader>) {
        if std::mem::take(&mut self.is_current)
            && let Some(header) = header
        {
            self.go_by(header);
        }
    }

    /// SQLite goes by this header.
    pub fn go_by(&mut self, header: &RawHeader) {
        (self.known, self.snapshot) = (Some(sum_of(header)), Some(*header));
    }

    /// Whether SQLite goes by another header than this one: not by that of its own commit.
    pub fn is_outdated(&self, sum: Option<u64>) -> bool {
        self.known.is_some() && self.known != sum
    }

    /// `len` bytes of the database's file were read, at `offset`. SQLite also reads parts of pages:
    /// of the first one, and of those that a large value goes on in.
    pub fn note(&mut self, offset: u64, len: usize) {
        let size = match self.size {
            Some(size) => size.into(),
            None if offset + len as u64 <= LEAST => LEAST,
            None => return self.pages.insert_all(),
        };
        let last = offset + (len as u64).max(1) - 1;
        for page in offset / size + 1..=last / size + 1 {
            self.pages.insert(u32::try_from(page).unwrap_or(u32::MAX));
        }
    }

    /// SQLite has pages of the database in mapped memory, which it reads without a call.
    pub fn are_mapped(&mut self) {
        self.is_mapped = true;
        self.pages.insert_all();
    }

    /// SQLite has WRITER, where the header is this one. By that one it goes from here on, if it
    /// went by it before.
    pub fn begin_to_write(&mut self, sum: Option<u64>) {
        self.is_current = self.known.is_some() && self.known == sum;
    }

    /// The header may change from here on, by what SQLite itself does under
    /// `locking_mode=EXCLUSIVE`, without a call for a slot: by which one its cache goes is unknown.
    pub fn lose(&mut self) {
        self.known = None;
        self.pages.insert_all();
    }
}
