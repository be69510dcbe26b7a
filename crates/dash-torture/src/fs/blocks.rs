//! Contents of a device, in blocks of 4 KiB: the whole of it as far as it is not zero, and
//! differences to it.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hasher};

/// Bytes of a block.
pub const BLOCK: usize = 4096;

/// A block's content.
pub type Block = [u8; BLOCK];

const ZERO: Block = [0; BLOCK];

/// The content of a device.
#[derive(Debug, Clone, Default)]
pub struct Blocks {
    blocks: HashMap<u64, Box<Block>>,
    hash: u64,
}

/// A block's part in the hash of an image: zero blocks have none.
fn hash_of(number: u64, block: &Block) -> u64 {
    if block == &ZERO {
        return 0;
    }
    let mut hasher = DefaultHasher::new();
    hasher.write_u64(number);
    hasher.write(block);
    hasher.finish()
}

impl Blocks {
    /// A block.
    pub fn get(&self, number: u64) -> &Block {
        self.blocks.get(&number).map_or(&ZERO, |block| block)
    }

    /// All blocks that are not zero.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Block)> {
        self.blocks.iter().map(|(number, block)| (*number, &**block))
    }

    /// Writes a difference into it.
    pub fn apply(&mut self, delta: &Delta) {
        self.hash = self.hash_with(delta);
        for (number, block) in &delta.blocks {
            self.blocks.insert(*number, block.clone());
        }
    }

    /// A hash of the content with a difference applied; the same content has the same hash.
    pub fn hash_with(&self, delta: &Delta) -> u64 {
        delta.blocks.iter().fold(self.hash, |hash, (number, block)| {
            hash ^ hash_of(*number, self.get(*number)) ^ hash_of(*number, block)
        })
    }
}

/// Blocks that differ from those of a device.
#[derive(Debug, Clone, Default)]
pub struct Delta {
    /// By number.
    pub blocks: BTreeMap<u64, Box<Block>>,
}

impl Delta {
    /// Writes some bytes over what is here, or else over `base`.
    pub fn write(&mut self, base: &Blocks, mut place: u64, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let number = place / BLOCK as u64;
            #[expect(clippy::cast_possible_truncation, reason = "below the size of a block")]
            let within = (place % BLOCK as u64) as usize;
            let length = bytes.len().min(BLOCK - within);
            let block = self.blocks.entry(number).or_insert_with(|| Box::new(*base.get(number)));
            block[within..within + length].copy_from_slice(&bytes[..length]);
            place += length as u64;
            bytes = &bytes[length..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_content_has_the_same_hash_whatever_way_it_came_about() {
        let mut base = Blocks::default();
        let empty = base.hash_with(&Delta::default());
        let mut first = Delta::default();
        first.write(&base, 4000, &[1; 200]);
        assert_eq!(first.blocks.len(), 2);
        let once = base.hash_with(&first);
        base.apply(&first);
        assert_eq!(base.hash_with(&Delta::default()), once);
        let mut back = Delta::default();
        back.write(&base, 4000, &[0; 200]);
        assert_eq!(base.hash_with(&back), empty);
        assert_eq!(base.get(0)[4000..], [1; 96]);
        assert_eq!(base.get(1)[..104], [1; 104]);
    }
}
