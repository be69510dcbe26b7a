//! Which page a frame holds, and where a page's newest frame is, as the tables of the wal-index say
//! (wal.c "WAL-INDEX FORMAT", `walHashGet`): no call of the system, where asking `-wal` is one for
//! each frame. A region has page numbers, and behind them a hash table of their places.

use dash_storage::SharedMemory;
use std::sync::atomic::Ordering::SeqCst;

/// Frames of a region (HASHTABLE_NPAGE).
const FRAMES: usize = 4096;

/// Bytes before the first region's table (WALINDEX_HDR_SIZE).
const BEFORE: usize = 136;

/// Bytes of a page number.
const NUMBER: usize = 4;

/// Slots of a hash table (HASHTABLE_NSLOT), of two bytes each, behind the page numbers.
const HASH: usize = 8192;
const HASH_SLOT: usize = 2;

/// Bytes of a region.
const END: usize = FRAMES * NUMBER + HASH * HASH_SLOT;

/// Region, and byte in it, where the page of frame `frame` stands.
pub(super) fn place(frame: u32) -> Option<(usize, usize)> {
    let index = usize::try_from(frame).ok()?.checked_sub(1)? + BEFORE / NUMBER;
    let (region, index) = (index / FRAMES, index % FRAMES);
    Some((region, index * NUMBER))
}

/// What stands at byte `at` of a region; 0 is no page.
pub(super) fn page<M: SharedMemory>(memory: &M, at: usize) -> Option<u32> {
    let page = u32::from_ne_bytes(bytes(memory, at));
    (page != 0).then_some(page)
}

/// The byte of a region where its page numbers begin.
fn start(region: usize) -> usize {
    if region == 0 { BEFORE } else { 0 }
}

/// The last frame before those of a region.
fn frame_before(region: usize) -> u32 {
    let frames = (region * FRAMES).saturating_sub(BEFORE / NUMBER);
    u32::try_from(frames).unwrap_or(u32::MAX)
}

/// Adds frame `frame` of `page`, as SQLite does (wal.c `walIndexAppend`); whether there was room:
/// else the table is none of SQLite's. WRITE is held.
pub(super) fn append<M: SharedMemory>(memory: &M, frame: u32, page: u32) -> bool {
    let Some((region, at)) = place(frame) else { return false };
    let number = (at - start(region)) / NUMBER + 1;
    if number == 1 {
        (start(region) / 8..END / 8).for_each(|word| memory.word(word).store(0, SeqCst));
    } else if self::page(memory, at).is_some() {
        cut(memory, region, frame - 1);
    }
    let mut key = first_key(page);
    for _ in 0..number {
        if entry(memory, key) == 0 {
            put(memory, at, page.to_ne_bytes());
            let number = u16::try_from(number).unwrap_or(u16::MAX);
            put(memory, hash_place(key), number.to_ne_bytes());
            return true;
        }
        key = next_key(key);
    }
    false
}

/// Removes what a region has behind frame `last` (wal.c `walCleanupHash`). WRITE is held.
pub(super) fn cut<M: SharedMemory>(memory: &M, region: usize, last: u32) {
    let left = last.saturating_sub(frame_before(region));
    for key in (0..HASH).filter(|&key| u32::from(entry(memory, key)) > left) {
        put(memory, hash_place(key), [0; HASH_SLOT]);
    }
    let kept = usize::try_from(left).unwrap_or(FRAMES) * NUMBER;
    for at in (start(region) + kept..FRAMES * NUMBER).step_by(NUMBER) {
        put(memory, at, [0; NUMBER]);
    }
}

/// The newest frame of `page` in a region, of those in `frames` (wal.c `walFindFrame`).
pub(super) fn newest<M: SharedMemory>(
    memory: &M,
    region: usize,
    page: u32,
    frames: &std::ops::RangeInclusive<u32>,
) -> Option<u32> {
    let (mut key, mut newest) = (first_key(page), None);
    for _ in 0..HASH {
        let number = entry(memory, key);
        if number == 0 {
            break;
        }
        let frame = frame_before(region).saturating_add(number.into());
        let at = start(region) + usize::from(number - 1) * NUMBER;
        if frames.contains(&frame) && self::page(memory, at) == Some(page) {
            newest = newest.max(Some(frame));
        }
        key = next_key(key);
    }
    newest
}

/// Where a page is looked for first (wal.c `walHash`).
fn first_key(page: u32) -> usize {
    let page = usize::try_from(page).unwrap_or(usize::MAX);
    page.wrapping_mul(383) % HASH
}

fn next_key(key: usize) -> usize {
    (key + 1) % HASH
}

fn hash_place(key: usize) -> usize {
    FRAMES * NUMBER + key * HASH_SLOT
}

/// Which of the region's frames it is, from 1; 0: none.
fn entry<M: SharedMemory>(memory: &M, key: usize) -> u16 {
    u16::from_ne_bytes(bytes(memory, hash_place(key)))
}

/// `N` bytes, all of one word.
pub(super) fn bytes<M: SharedMemory, const N: usize>(memory: &M, at: usize) -> [u8; N] {
    let word = memory.word(at / 8).load(SeqCst).to_ne_bytes();
    word[at % 8..].first_chunk().copied().unwrap_or([0; N])
}

/// Writes them. Nobody else writes to the word.
pub(super) fn put<M: SharedMemory, const N: usize>(memory: &M, at: usize, new: [u8; N]) {
    let word = memory.word(at / 8);
    let mut bytes = word.load(SeqCst).to_ne_bytes();
    bytes[at % 8..at % 8 + N].copy_from_slice(&new);
    word.store(u64::from_ne_bytes(bytes), SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::index::{Region, Slots};
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Region 0 ends with frame 4062.
    const FIRST: u32 = 4062;

    fn region(index: usize) -> Region<dash_storage::real::Memory> {
        Region::Memory(Slots::default().region(index, true).unwrap())
    }

    proptest! {
        #[test]
        fn a_page_is_found_in_its_newest_frame(
            pages in vec(1_u32..60, 1..200),
            cut_to in 0_u32..200,
            again in vec(1_u32..60, 0..50),
            asked in 1_u32..60,
            index in 0_usize..2,
        ) {
            let (memory, before) = (region(index), if index == 0 { 0 } else { FIRST });
            let mut model = Vec::new();
            let mut frame = before;
            // As where a transaction is rolled back.
            for (kept, pages) in [(0, &pages), (cut_to, &again)] {
                model.retain(|&(number, _)| number <= before + kept);
                frame = frame.min(before + kept);
                for &page in pages {
                    frame += 1;
                    model.push((frame, page));
                    prop_assert!(append(&memory, frame, page));
                }
            }
            let expected = model.iter().rfind(|(_, page)| *page == asked);
            let found = newest(&memory, index, asked, &(before + 1..=frame));
            prop_assert_eq!(found, expected.map(|(number, _)| *number));
            for &(number, page) in &model {
                let (_, at) = place(number).unwrap();
                prop_assert_eq!(super::page(&memory, at), Some(page));
            }
            cut(&memory, index, before);
            prop_assert_eq!(newest(&memory, index, asked, &(1..=u32::MAX)), None);
        }
    }

    #[test]
    fn a_full_region_takes_all_its_frames() {
        let memory = region(0);
        for frame in 1..=FIRST {
            assert!(append(&memory, frame, 7), "{frame}");
        }
        assert_eq!(newest(&memory, 0, 7, &(1..=100)), Some(100));
        assert_eq!(place(FIRST), Some((0, FRAMES * NUMBER - NUMBER)));
        assert_eq!(place(FIRST + 1), Some((1, 0)));
    }
}
