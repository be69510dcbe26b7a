//! What SQLite is shown while it writes on a snapshot that others have committed behind
//! ([`super`]): how its numbers of frames become true ones.

use crate::frames::{Checksum, FRAME_HEADER, FrameHeader, Salts, frame_offset};
use crate::index::{End, Index, IndexHeader, RawHeader};
use crate::mutation::{Mutation, broken};
use dash_engine::error::{Error, Result};
use dash_storage::Storage;
use std::cell::Cell;

/// See the module.
pub(crate) struct View {
    /// The last frame of the snapshot.
    pub last: u32,
    /// Bytes of a page.
    pub page: u32,
    /// The generation of the frames that were compared, and the last one of them.
    pub salts: Salts,
    pub upto: u32,
    /// The first frame that the snapshot may not have.
    pub after: u32,
    /// The slot that is held, and the one that SQLite takes itself to have.
    pub held: usize,
    pub shown: Option<usize>,
    /// Where frames of SQLite's have gone, by the first one of each transaction.
    moved: Vec<Moved>,
    /// Something was read as it is now, or written.
    is_used: Cell<bool>,
    pub writing: Writing,
}

/// The frames of a transaction.
struct Moved {
    /// The first one's number for SQLite, and the true one.
    first: u32,
    at: u32,
    /// The true number of the last one, once it is committed. What SQLite numbers behind that pads
    /// a sector (`psow=0`), is that frame again, and was not written.
    last: u32,
}

/// The transaction in hand.
#[derive(Default)]
pub(crate) struct Writing {
    /// It was compared with what others have committed.
    pub is_begun: bool,
    /// The view's header when it began.
    pub began: Option<RawHeader>,
    /// A frame's header, by SQLite's number, which waits for its page.
    pub header: Option<(u32, FrameHeader)>,
    /// The checksum of the frame before the first one.
    before: Checksum,
    /// From this frame on, by SQLite's number, the checksums are of what was there before; 0: none
    /// is.
    pub stale: u32,
    /// The page and the checksum of each frame, in their order.
    frames: Vec<(u32, Checksum)>,
    /// The end of the commit.
    pub end: Option<End>,
}

/// Why a transaction could not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conflict {
    /// Somebody has written this page, which it has read or written.
    Page(u32),
    /// The database has another size.
    Size,
    /// It has read other databases, too.
    Several,
    /// What was committed since can't be told.
    Unknown,
}

impl View {
    /// Of the snapshot that ends with frame `last`, where all before frame `after` is what it has.
    /// `held`: the slot under which SQLite reads.
    pub fn new(last: u32, after: u32, held: usize, now: &IndexHeader) -> Self {
        Self {
            last,
            page: now.page_size,
            salts: now.salts,
            upto: now.mx_frame,
            after,
            held,
            shown: Some(held),
            moved: Vec::new(),
            is_used: Cell::new(false),
            writing: Writing::default(),
        }
    }

    /// A transaction begins, whose first frame SQLite gives the number `first`.
    pub fn begin(&mut self, first: u32, began: Option<RawHeader>, now: &IndexHeader) {
        (self.salts, self.upto) = (now.salts, now.mx_frame);
        self.moved.retain(|moved| moved.first < first);
        self.moved.push(Moved { first, at: now.mx_frame + 1, last: u32::MAX });
        let before = now.frame_checksum;
        self.writing = Writing { is_begun: true, began, before, ..Writing::default() };
    }

    /// The true number of a frame that SQLite writes, or has written in this view, and the one of
    /// its transaction's first.
    pub fn true_numbers(&self, frame: u32) -> Option<(u32, u32)> {
        self.is_used.set(true);
        let Moved { first, at, last } = self.moved.iter().rfind(|moved| moved.first <= frame)?;
        Some((at.checked_add(frame - first)?.min(*last), *at))
    }

    /// The transaction in hand is committed; its last frame, by its true number.
    pub fn ended(&mut self, frame: u32) {
        self.upto = frame;
        if let Some(moved) = self.moved.last_mut().filter(|_| !broken(Mutation::PaddingMoved)) {
            moved.last = frame;
        }
    }

    /// The frame that has what is now in `page`, where others have written it since the snapshot.
    pub fn newest<S: Storage>(&self, index: &Index<S>, page: u32) -> Option<u32> {
        match self.upto < self.after || broken(Mutation::SnapshotRead) {
            true => None,
            false => {
                let newest = index.newest(page, self.after..=self.upto);
                self.is_used.set(self.is_used.get() || newest.is_some());
                newest
            }
        }
    }

    /// Nothing was read that the snapshot has not, and nothing written.
    pub fn is_unused(&self) -> bool {
        !self.is_used.get() && self.shown == Some(self.held)
    }

    /// Where that is in `-wal`, for what SQLite reads of the database at `offset`.
    pub fn newest_place<S: Storage>(&self, index: &Index<S>, offset: u64) -> Option<u64> {
        let size = u64::from(self.page);
        let frame = self.newest(index, u32::try_from(offset / size + 1).ok()?)?;
        Some(frame_offset(frame, self.page) + FRAME_HEADER as u64 + offset % size)
    }
}

impl Writing {
    /// Frame `at`, from 0, is about to come, with SQLite's number `number`; the checksum that it
    /// continues. Frames from there on were rolled back to a savepoint.
    pub fn before(&mut self, at: usize, number: u32) -> Checksum {
        if broken(Mutation::RolledBackSummed) {
            return self.frames.last().map_or(self.before, |(_, checksum)| *checksum);
        }
        self.frames.truncate(at);
        if self.stale >= number {
            self.stale = 0;
        }
        self.frames.last().map_or(self.before, |(_, checksum)| *checksum)
    }

    /// It has come.
    ///
    /// # Errors
    ///
    /// `OutOfMemory`.
    pub fn push(&mut self, page: u32, checksum: Checksum) -> Result<()> {
        self.frames.try_reserve(1).map_err(|_| Error::OutOfMemory)?;
        self.frames.push((page, checksum));
        Ok(())
    }

    /// The pages of the frames, in their order.
    pub fn pages(&self) -> impl ExactSizeIterator<Item = u32> {
        self.frames.iter().map(|(page, _)| *page)
    }
}
