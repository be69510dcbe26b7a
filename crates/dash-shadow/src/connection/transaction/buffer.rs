//! The pages a transaction has written so far, in memory: small transactions reach the shadow in
//! one go when SQLite prepares the commit, and a rollback before that touches no file.
//!
//! Blocks are keyed by their place and never overlap. SQLite writes whole pages of one size within
//! a transaction, but not always of the size the database ends up with (VACUUM changes it, a
//! backup writes the source's: T22), so an overlap cuts the older block.

use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::io::PIECE;
use dash_engine::memory::{SMALL_THINGS, headroom};
use dash_engine::ranges::RangeSet;
use dash_storage::File;
use std::collections::BTreeMap;
use std::io::IoSlice;
use std::ops::Range;

/// Buffers handed to one vectored write at most (`IOV_MAX` is 1,024).
const VECTORS_MAX: usize = 256;

/// Written blocks.
#[derive(Debug, Default)]
pub struct WriteBuffer {
    blocks: BTreeMap<u64, Box<[u8]>>,
    bytes: usize,
}

impl WriteBuffer {
    /// An empty one.
    pub const fn new() -> Self {
        Self { blocks: BTreeMap::new(), bytes: 0 }
    }

    /// Takes a write. Nothing has changed where there is no memory for it.
    pub fn write(&mut self, data: &[u8], offset: u64) -> Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        if let Some(block) = self.blocks.get_mut(&offset)
            && block.len() == data.len()
        {
            block.copy_from_slice(data);
            return Ok(());
        }
        let range = offset..offset + data.len() as u64;
        // An older block may be cut in two.
        let cut = self.overlapping(&range).map(|(_, block)| block.len()).max().unwrap_or(0);
        headroom(SMALL_THINGS.saturating_add(cut))?;
        let mut block = Vec::new();
        block.try_reserve_exact(data.len()).map_err(|_| Error::OutOfMemory)?;
        block.extend_from_slice(data);
        self.remove(range);
        self.insert(offset, block.into_boxed_slice());
        Ok(())
    }

    fn insert(&mut self, offset: u64, block: Box<[u8]>) {
        self.bytes += block.len();
        self.blocks.insert(offset, block);
    }

    /// Forgets what was written in `range`.
    pub fn remove(&mut self, range: Range<u64>) {
        let overlapping: Vec<u64> = self.overlapping(&range).map(|(at, _)| at).collect();
        for at in overlapping {
            let Some(block) = self.blocks.remove(&at) else {
                continue;
            };
            self.bytes -= block.len();
            let end = at + block.len() as u64;
            if at < range.start
                && let Ok(keep) = usize::try_from(range.start - at)
            {
                self.insert(at, block[..keep].into());
            }
            if end > range.end
                && let Ok(from) = usize::try_from(range.end - at)
            {
                self.insert(range.end, block[from..].into());
            }
        }
    }

    /// The blocks that share a byte with `range`, ascending.
    fn overlapping(&self, range: &Range<u64>) -> impl Iterator<Item = (u64, &[u8])> + use<'_> {
        let first = self
            .blocks
            .range(..=range.start)
            .next_back()
            .filter(|(at, block)| *at + block.len() as u64 > range.start)
            .map_or(range.start, |(at, _)| *at);
        self.blocks.range(first..range.end.max(first)).map(|(at, block)| (*at, &**block))
    }

    /// The block that begins at `offset` with at least `len` bytes.
    pub fn exact(&self, offset: u64, len: usize) -> Option<&[u8]> {
        self.blocks.get(&offset).and_then(|block| block.get(..len))
    }

    /// Lays what was written over `buffer`, which begins at `offset`.
    pub fn overlay(&self, buffer: &mut [u8], offset: u64) {
        let range = offset..offset + buffer.len() as u64;
        for (at, block) in self.overlapping(&range) {
            let from = at.max(range.start);
            let to = (at + block.len() as u64).min(range.end);
            let (Ok(into), Ok(out), Ok(len)) = (
                usize::try_from(from - offset),
                usize::try_from(from - at),
                usize::try_from(to - from),
            ) else {
                continue;
            };
            buffer[into..into + len].copy_from_slice(&block[out..out + len]);
        }
    }

    /// The parts of the blocks that lie in `range`, ascending.
    pub fn within<'a>(&'a self, range: &Range<u64>) -> impl Iterator<Item = (u64, &'a [u8])> + 'a {
        let range = range.clone();
        let bounds = range.clone();
        self.overlapping(&range).filter_map(move |(at, block)| {
            let from = at.max(bounds.start);
            let to = (at + block.len() as u64).min(bounds.end);
            let part = usize::try_from(from - at).ok()?..usize::try_from(to - at).ok()?;
            Some((from, block.get(part)?))
        })
    }

    /// CRC-32 of what was written in `range`, all of which was.
    pub fn checksum(&self, range: &Range<u64>) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        self.within(range).for_each(|(_, block)| hasher.update(block));
        hasher.finalize()
    }

    /// Writes `range`, all of which was written here, into a file. Returns its CRC-32.
    pub fn write_to<F: File>(&self, file: &F, range: &Range<u64>, name: &str) -> Result<u32> {
        let mut hasher = crc32fast::Hasher::new();
        let mut vectors: Vec<IoSlice<'_>> = Vec::new();
        let (mut at, mut gathered) = (range.start, 0);
        for (offset, block) in self.within(range) {
            debug_assert_eq!(offset, at + gathered);
            hasher.update(block);
            vectors.push(IoSlice::new(block));
            gathered += block.len() as u64;
            if gathered >= PIECE as u64 || vectors.len() == VECTORS_MAX {
                file.write_vectored_at(&vectors, at).during(Operation::Write, name)?;
                vectors.clear();
                at += gathered;
                gathered = 0;
            }
        }
        if !vectors.is_empty() {
            file.write_vectored_at(&vectors, at).during(Operation::Write, name)?;
        }
        Ok(hasher.finalize())
    }

    /// Whether all of `range` was written.
    pub fn covers(&self, range: &Range<u64>) -> bool {
        let written: u64 = self.within(range).map(|(_, block)| block.len() as u64).sum();
        written == range.end - range.start
    }

    /// Whether any byte of `range` was written.
    pub fn intersects(&self, range: &Range<u64>) -> bool {
        self.overlapping(range).next().is_some()
    }

    /// Page 1 as written, to seal it.
    pub fn first_mut(&mut self) -> Option<&mut [u8]> {
        self.blocks.get_mut(&0).map(|block| &mut **block)
    }

    /// All blocks, ascending.
    pub fn blocks(&self) -> impl DoubleEndedIterator<Item = (u64, &[u8])> + '_ {
        self.blocks.iter().map(|(at, block)| (*at, &**block))
    }

    /// The bytes written, as ranges.
    pub fn ranges(&self) -> RangeSet {
        self.blocks().map(|(at, block)| at..at + block.len() as u64).collect()
    }

    /// How many blocks there are.
    pub fn count(&self) -> usize {
        self.blocks.len()
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "small numbers")]
mod tests {
    use super::WriteBuffer;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn reads_back_as_a_flat_file_does(writes in prop::collection::vec((0usize..60, 1usize..20, any::<u8>(), any::<bool>()), 0..20)) {
            let mut buffer = WriteBuffer::default();
            let mut model = [None; 80];
            for (at, len, value, write) in writes {
                if write { buffer.write(&vec![value; len], at as u64).unwrap() } else { buffer.remove(at as u64..(at + len) as u64) }
                model[at..at + len].fill(write.then_some(value));
            }
            let mut seen = [0; 80];
            buffer.overlay(&mut seen, 0);
            prop_assert_eq!(seen, model.map(|v| v.unwrap_or(0)));
            prop_assert_eq!(buffer.bytes(), model.iter().flatten().count());
            prop_assert_eq!(buffer.ranges().bytes() as usize, buffer.bytes());
            for at in 0..70u64 {
                let range = at..at + 4;
                prop_assert_eq!(buffer.intersects(&range), model[at as usize..at as usize + 4].iter().any(Option::is_some));
            }
        }
    }
}
