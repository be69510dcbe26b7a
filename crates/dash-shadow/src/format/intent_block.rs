//! The intent block.

use super::{
    BLOCK, BLOCK_LEN, BlockError, FORMAT_VERSION, INTENT_MAGIC, check, layout, put_u32, put_u64,
    seal, u32_at, u64_at,
};
use dash_engine::ranges::RangeSet;
use dash_storage::FileId;

/// A decoded intent block: the regions of a file that may differ from the other copy after a crash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntentBlock {
    /// Which two files belong together.
    pub pair: u64,
    /// Inode number of the file the block was written into.
    pub inode: u64,
    /// log2 of the bytes of a region.
    pub region_shift: u32,
    /// One bit a region.
    pub regions: Box<[u8; BLOCK - layout::REGIONS]>,
}

/// Bytes of an intent block's bits.
pub const REGION_BYTES: usize = BLOCK - layout::REGIONS;

/// Regions that an intent block has room for.
pub const REGION_COUNT: u64 = (BLOCK_LEN - layout::REGIONS as u64) * 8;

/// log2 of the smallest region that is read.
const REGION_SHIFT_MIN: u32 = 12;

impl IntentBlock {
    /// An intent with no region, fit for a database of `size` bytes, in regions of `region` bytes
    /// or more.
    pub fn new(pair: u64, file: FileId, size: u64, region: u64) -> Self {
        let mut region_shift = region.max(1 << REGION_SHIFT_MIN).ilog2();
        while size >> region_shift >= REGION_COUNT - REGION_COUNT / 4 {
            region_shift += 1;
        }
        Self {
            pair,
            inode: file.inode,
            region_shift,
            regions: Box::new([0; BLOCK - layout::REGIONS]),
        }
    }

    /// Regions that share a byte with `range`; `None` if they reach past the last one.
    fn bits(&self, range: &std::ops::Range<u64>) -> Option<std::ops::RangeInclusive<u64>> {
        let last = range.end.saturating_sub(1) >> self.region_shift;
        (last < REGION_COUNT).then_some(range.start >> self.region_shift..=last)
    }

    /// Whether every byte of `range` is in a marked region.
    pub fn covers(&self, range: &std::ops::Range<u64>) -> bool {
        self.bits(range).is_some_and(|bits| bits.into_iter().all(|bit| self.is_set(bit)))
    }

    fn is_set(&self, bit: u64) -> bool {
        usize::try_from(bit / 8).is_ok_and(|i| self.regions[i] & (1 << (bit % 8)) != 0)
    }

    /// Marks the regions of `range`; `false` if the block has no room for a place so far out.
    pub fn mark(&mut self, range: &std::ops::Range<u64>) -> bool {
        let Some(bits) = self.bits(range) else {
            return false;
        };
        for bit in bits {
            if let Ok(i) = usize::try_from(bit / 8) {
                self.regions[i] |= 1 << (bit % 8);
            }
        }
        true
    }

    /// Leaves only the regions that `other`, of the same shift, marks too.
    pub fn keep_within(&mut self, other: &Self) {
        debug_assert_eq!(self.region_shift, other.region_shift);
        for (mine, other) in self.regions.iter_mut().zip(&*other.regions) {
            *mine &= other;
        }
    }

    /// Bytes in the marked regions.
    pub fn bytes(&self) -> u64 {
        let words = self.regions.chunks_exact(8);
        words.map(|word| u64::from(u64_at(word, 0).count_ones())).sum::<u64>() << self.region_shift
    }

    /// The marked regions as byte ranges, each with its neighbours merged.
    pub fn ranges(&self) -> RangeSet {
        let mut set = RangeSet::new();
        // By words and runs: this is asked whenever a database is opened or closed, and most of the
        // block is zeros.
        for (at, bytes) in (0_u64..).zip(self.regions.chunks_exact(8)) {
            let mut word = u64_at(bytes, 0);
            while word != 0 {
                let first = word.trailing_zeros();
                let end = first + (word >> first).trailing_ones();
                let region = |bit: u32| (at * 64 + u64::from(bit)) << self.region_shift;
                set.insert(region(first)..region(end));
                word &= u64::MAX.checked_shl(end).unwrap_or(0);
            }
        }
        set
    }

    /// The block as bytes.
    pub fn encode(&self) -> Box<[u8; BLOCK]> {
        let mut b = Box::new([0; BLOCK]);
        b[..8].copy_from_slice(&INTENT_MAGIC);
        put_u32(&mut b[..], layout::VERSION, FORMAT_VERSION);
        put_u64(&mut b[..], layout::PAIR, self.pair);
        put_u64(&mut b[..], layout::INODE, self.inode);
        put_u32(&mut b[..], layout::REGION_SHIFT, self.region_shift);
        b[layout::REGIONS..].copy_from_slice(&*self.regions);
        seal(&mut b);
        b
    }

    /// Reads a block.
    pub fn decode(bytes: &[u8]) -> Result<Self, BlockError> {
        check(bytes, INTENT_MAGIC)?;
        let region_shift = u32_at(bytes, layout::REGION_SHIFT);
        let mut regions = Box::new([0; BLOCK - layout::REGIONS]);
        regions.copy_from_slice(&bytes[layout::REGIONS..BLOCK]);
        if !(REGION_SHIFT_MIN..48).contains(&region_shift) {
            return Err(BlockError::Damaged);
        }
        Ok(Self {
            pair: u64_at(bytes, layout::PAIR),
            inode: u64_at(bytes, layout::INODE),
            region_shift,
            regions,
        })
    }
}

#[cfg(test)]
mod tests {
    use dash_storage::FileId;
    use proptest::prelude::*;

    use super::{IntentBlock, REGION_COUNT};
    use dash_engine::ranges::RangeSet;

    /// Bit by bit.
    fn naive(block: &IntentBlock) -> RangeSet {
        (0..REGION_COUNT)
            .filter(|&bit| block.is_set(bit))
            .map(|bit| bit << block.region_shift..(bit + 1) << block.region_shift)
            .collect()
    }

    proptest! {
        #[test]
        fn ranges_are_what_the_bits_say(
            runs in prop::collection::vec((0..REGION_COUNT, 1..300u64), 0..20),
            size in 0..1u64 << 40,
        ) {
            let mut block = IntentBlock::new(1, FileId { device: 1, inode: 2 }, size, 4096);
            for (first, count) in runs {
                let end = (first + count).min(REGION_COUNT);
                prop_assert!(block.mark(&(first << block.region_shift..end << block.region_shift)));
            }
            prop_assert_eq!(block.ranges(), naive(&block));
        }

        #[test]
        fn ranges_are_what_any_bits_say(bytes in prop::collection::vec(any::<u8>(), 40), at in 0..3968usize) {
            let mut block = IntentBlock::new(1, FileId { device: 1, inode: 2 }, 0, 4096);
            for (byte, value) in block.regions.iter_mut().skip(at).zip(bytes) {
                *byte = value;
            }
            prop_assert_eq!(block.ranges(), naive(&block));
        }
    }

    #[test]
    fn the_last_region_counts() {
        let mut block = IntentBlock::new(1, FileId { device: 1, inode: 2 }, 0, 4096);
        block.mark(&(0..REGION_COUNT << 12));
        let whole: RangeSet = std::iter::once(0..REGION_COUNT << 12).collect();
        assert_eq!(block.ranges(), whole);
    }
}
