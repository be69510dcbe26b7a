//! Which page a frame holds, as the tables of the wal-index say (wal.c "WAL-INDEX FORMAT",
//! `walHashGet`): no call of the system, where asking `-wal` is one for each frame.

use dash_storage::SharedMemory;
use std::sync::atomic::Ordering::SeqCst;

/// Frames of a region (HASHTABLE_NPAGE).
const FRAMES: usize = 4096;

/// Bytes before the first region's table (WALINDEX_HDR_SIZE).
const BEFORE: usize = 136;

/// Bytes of a page number.
const NUMBER: usize = 4;

/// Region, and byte in it, where the page of frame `frame` stands.
pub(super) fn place(frame: u32) -> Option<(usize, usize)> {
    let index = usize::try_from(frame).ok()?.checked_sub(1)? + BEFORE / NUMBER;
    let (region, index) = (index / FRAMES, index % FRAMES);
    Some((region, index * NUMBER))
}

/// What stands at byte `at` of a region; 0 is no page.
pub(super) fn page<M: SharedMemory>(memory: &M, at: usize) -> Option<u32> {
    let word = memory.word(at / 8).load(SeqCst).to_ne_bytes();
    let page = u32::from_ne_bytes(*word[at % 8..].first_chunk()?);
    (page != 0).then_some(page)
}
