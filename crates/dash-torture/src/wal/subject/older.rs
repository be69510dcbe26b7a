//! What an older SQLite leaves behind where a savepoint was rolled back: frames without salts and
//! checksums, and a wal-index from which the next transaction is summed up wrongly (3.40 does so;
//! see `sums.rs` of the engine). The one that is linked here does neither.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering::SeqCst};

/// Bytes of `-wal`'s header, and of a frame's.
const WAL_HEADER: u64 = 32;
const FRAME_HEADER: usize = 24;

/// Words of one copy of the wal-index's header (wal.c `WalIndexHdr`), and what they hold.
const HEADER: usize = 12;
const MX_FRAME: usize = 4;
const FRAME_CHECKSUM: usize = 6;
const OWN_CHECKSUM: usize = 10;

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

    /// The header of a frame as it writes that; `None`: as it is. A connection with a wal-index of
    /// its own is told that it can't commit so.
    pub(super) fn header(&self, data: &[u8], offset: u64) -> Option<[u8; FRAME_HEADER]> {
        let mut header = <[u8; FRAME_HEADER]>::try_from(data).ok()?;
        if !self.is_asked_for.load(SeqCst) || self.index.load(SeqCst).is_null() {
            return None;
        }
        let size = (FRAME_HEADER + self.page.load(SeqCst)) as u64;
        let number = offset.checked_sub(WAL_HEADER)? / size + 1;
        if header[4..8] != [0; 4] {
            self.committed.store(u32::try_from(number).unwrap_or(0), SeqCst);
        }
        header[8..].fill(0);
        Some(header)
    }

    /// It has committed: the wal-index has another checksum than the frame is to have.
    pub(super) fn forget_checksum(&self) {
        let (committed, index) = (self.committed.swap(0, SeqCst), self.index.load(SeqCst));
        if committed == 0 || index.is_null() {
            return;
        }
        let words = |copy: usize| {
            (0..HEADER).map(move |word| {
                // SAFETY: the engine's region is mapped until SQLite unmaps it, aligned as a page,
                // and longer than both copies; whoever uses it does so as shared memory.
                #[expect(unsafe_code, reason = "the index is the engine's and SQLite's memory")]
                unsafe {
                    AtomicU32::from_ptr(index.cast::<u32>().add(copy * HEADER + word))
                }
            })
        };
        let mut header: Vec<u32> = words(0).map(|word| word.load(SeqCst)).collect();
        if header[MX_FRAME] != committed {
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
            for (word, value) in words(copy).zip(&header) {
                word.store(*value, SeqCst);
            }
        }
    }
}
