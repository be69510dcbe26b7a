//! Where the next record goes (WAL-8), and how the ring grows for it.
//!
//! Growing moves nothing, and nothing need be made durable elsewhere. Where the window goes around
//! the ring's end the next record goes behind that end, and what lies before it at the ring's
//! beginning is kept, too, as long as the window is: all from the beginning on is one piece then.

use super::{Session, Word};
use crate::file::LogFile;
use crate::mutation::{Mutation, broken};
use crate::ring::Ring;
use dash_storage::Storage;
use std::ops::RangeInclusive;

/// Bytes that are added to the ring at once, at most.
const STEP: u64 = 1 << 20;

/// Of its length this part is.
const PART: u64 = 16;

/// The ring is a multiple of so many bytes.
const UNIT: u64 = 4096;

impl<S: Storage, M: Default> Session<S, M> {
    /// Where a record of `len` bytes (padded) goes without overwriting the window, which begins at
    /// `oldest`, if there is one. `None`: nowhere, and the ring can't grow.
    pub(super) fn room_for(
        &mut self,
        log: &LogFile<S::File>,
        len: u64,
        oldest: Option<u64>,
    ) -> Option<u64> {
        let words = &self.words;
        let (position, old) = (words.get(Word::Position), words.get(Word::Ring));
        let mut ring = Ring { len: old, block: log.block() };
        if ring.free(oldest, position, len) {
            return ring.next(position, len);
        }
        let goes_around = oldest.is_some_and(|oldest| oldest >= position);
        let behind = if goes_around { old } else { position };
        // Who wrote before may have padded to a smaller block.
        let behind = behind.checked_next_multiple_of(u64::from(ring.block).max(1))?;
        ring.len = longer(old, behind.saturating_add(len), &self.ring)?;
        // Where the file can't grow the log goes on as it is.
        log.grow(ring.len).ok()?;
        self.counts.growths += 1;
        let words = &self.words;
        words.set(Word::Ring, ring.len);
        if goes_around {
            // Whoever comes after a death here believes neither of the two (WAL-7).
            words.set(Word::Writes, words.get(Word::Sequence) + 1);
            words.set(Word::Position, behind);
            if !broken(Mutation::BeginningNotKept) {
                words.set(Word::Window, 1);
            }
        }
        ring.next(behind, len).filter(|&place| place == behind)
    }
}

/// How long a ring of `len` bytes is to be for a record that ends at `end`: a commit waits for what
/// is added, and what is added too much is written for nothing.
fn longer(len: u64, end: u64, ring: &RangeInclusive<u64>) -> Option<u64> {
    // What others say in shared memory may be anything.
    if end > *ring.end() {
        return None;
    }
    let mut longer = len;
    while longer < end {
        let step = (longer / PART).clamp((*ring.start()).min(STEP), STEP);
        longer = (longer + step).next_multiple_of(UNIT);
    }
    // At the limit the last step may be a smaller one.
    let longer = longer.min(*ring.end());
    (longer > len && longer >= end).then_some(longer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_in_steps() {
        const KIB: u64 = 1 << 10;
        const MIB: u64 = 1 << 20;
        let of = |len, end| longer(len, end, &(256 * KIB..=64 * MIB));
        assert_eq!(of(256 * KIB, 260 * KIB), Some(512 * KIB));
        assert_eq!(of(256 * KIB, 1100 * KIB), Some(1280 * KIB));
        assert_eq!(of(4 * MIB, 4 * MIB + 1), Some(4 * MIB + 256 * KIB));
        assert_eq!(of(32 * MIB, 32 * MIB + 512), Some(33 * MIB));
        assert_eq!(of(64 * MIB - 4 * KIB, 64 * MIB), Some(64 * MIB));
        assert_eq!(of(64 * MIB, 64 * MIB + 1), None);
        assert_eq!(of(256 * KIB, u64::MAX), None);
        assert_eq!(longer(16 * KIB, 70 * KIB, &(16 * KIB..=32 * KIB)), None);
    }
}
