//! What older versions of SQLite do wrong, and the one that is linked here does not. Where a
//! savepoint was rolled back, 3.40 leaves frames without salts and checksums, and a wal-index from
//! which the next transaction is summed up wrongly (see `sums.rs` of the engine). Before 3.51.3 a
//! checkpoint goes by the header of the wal-index that it has read, whatever became of `-wal`.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};

/// Bytes of `-wal`'s header, and of a frame's.
const WAL_HEADER: u64 = 32;
const FRAME_HEADER: usize = 24;
/// Where the checksum is in the latter.
const CHECKSUM: std::ops::Range<u64> = 16..24;

/// Words of one copy of the wal-index's header (wal.c `WalIndexHdr`), and what they hold.
const HEADER: usize = 12;
const MX_FRAME: usize = 4;
const FRAME_CHECKSUM: usize = 6;
const SALTS: std::ops::Range<usize> = 8..10;
const OWN_CHECKSUM: usize = 10;
/// The word behind both copies: how many frames are in the database (`WalCkptInfo.nBackfill`).
const BACKFILL: usize = 2 * HEADER;

/// A connection of such a version, as `PRAGMA older=1` makes it.
#[derive(Debug, Default)]
pub(super) struct Older {
    is_asked_for: AtomicBool,
    /// Bytes of a page.
    page: AtomicUsize,
    /// Region 0 of the wal-index; null: it is not mapped.
    index: AtomicPtr<u8>,
    /// The commit frame that it has left without a checksum; 0: none.
    committed: AtomicU32,
    /// The last of its frames: that one, or one that pads a sector.
    last: AtomicU32,
    /// What the checkpoint in which it is has read of the wal-index's header.
    read: Mutex<Vec<u32>>,
}

impl Older {
    pub(super) fn ask_for(&self, older: bool, page: usize) {
        self.page.store(page, SeqCst);
        self.is_asked_for.store(older, SeqCst);
    }

    /// Where region 0 is now.
    pub(super) fn maps(&self, index: Option<NonNull<u8>>) {
        self.index.store(index.map_or(std::ptr::null_mut(), NonNull::as_ptr), SeqCst);
    }

    /// Another transaction begins.
    pub(super) fn begin(&self) {
        self.committed.store(0, SeqCst);
    }

    /// What it writes into `-wal` instead of this; `None`: just this. The header of a frame has
    /// neither salts nor a checksum; that of one that pads a sector, which may come in two pieces,
    /// has both, on top of wrong ones. A connection with a wal-index of its own is told that it
    /// can't commit so.
    pub(super) fn piece(&self, data: &[u8], offset: u64) -> Option<Vec<u8>> {
        if !self.is_asked_for.load(SeqCst) || self.index.load(SeqCst).is_null() {
            return None;
        }
        let size = (FRAME_HEADER + self.page.load(SeqCst)) as u64;
        let place = offset.checked_sub(WAL_HEADER)?;
        let number = u32::try_from(place / size + 1).unwrap_or(0);
        let committed = self.committed.load(SeqCst);
        let mut piece = data.to_vec();
        if committed != 0 && number > committed {
            self.last.store(number, SeqCst);
            let checksum = (place % size..).zip(&mut piece).filter(|(at, _)| CHECKSUM.contains(at));
            checksum.for_each(|(_, byte)| *byte ^= 0x5A);
            return Some(piece);
        }
        if data.len() != FRAME_HEADER {
            return None;
        }
        if data[4..8] != [0; 4] {
            self.committed.store(number, SeqCst);
            self.last.store(number, SeqCst);
        }
        piece[8..].fill(0);
        Some(piece)
    }

    /// It has committed: the wal-index has another checksum than the frame is to have.
    pub(super) fn forget_checksum(&self) {
        if self.committed.swap(0, SeqCst) == 0 || self.index.load(SeqCst).is_null() {
            return;
        }
        let mut header: Vec<u32> = self.header();
        if header[MX_FRAME] != self.last.load(SeqCst) {
            return;
        }
        header[FRAME_CHECKSUM] ^= 0x5AA5_0FF0;
        let (mut one, mut two) = (0_u32, 0_u32);
        for pair in header[..OWN_CHECKSUM].chunks_exact(2) {
            one = one.wrapping_add(pair[0]).wrapping_add(two);
            two = two.wrapping_add(pair[1]).wrapping_add(one);
        }
        header[OWN_CHECKSUM..].copy_from_slice(&[one, two]);
        for copy in [1, 0] {
            for (at, value) in header.iter().enumerate() {
                self.word(copy * HEADER + at).store(*value, SeqCst);
            }
        }
    }

    /// A checkpoint has CKPT, and reads the header; it is interrupted.
    pub(super) fn checkpoint_begins(&self) {
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = self.header();
    }

    /// It has READ(0), and copies what it has read of: of a `-wal` that was begun anew since, it
    /// counts frames as copied that are not there yet.
    pub(super) fn checkpoint_copies(&self) {
        let read = std::mem::take(&mut *self.read.lock().unwrap_or_else(PoisonError::into_inner));
        if !read.is_empty() && read[SALTS] != self.header()[SALTS] {
            self.word(BACKFILL).fetch_max(read[MX_FRAME], SeqCst);
        }
    }

    /// The first copy of the header; of an index that is not mapped, nothing.
    fn header(&self) -> Vec<u32> {
        match self.index.load(SeqCst).is_null() {
            true => Vec::new(),
            false => (0..HEADER).map(|at| self.word(at).load(SeqCst)).collect(),
        }
    }

    /// A word of the index, which is mapped.
    fn word(&self, at: usize) -> &AtomicU32 {
        // SAFETY: the engine's region is mapped until SQLite unmaps it, aligned as a page, and
        // longer than both copies of the header and what is counted behind them; whoever uses it
        // does so as shared memory.
        #[expect(unsafe_code, reason = "the index is the engine's and SQLite's memory")]
        unsafe {
            AtomicU32::from_ptr(self.index.load(SeqCst).cast::<u32>().add(at))
        }
    }
}
