//! The device's content, changed from one image to the next by the blocks that differ only.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Result;
use std::os::unix::fs::FileExt;

use super::blocks::{BLOCK, Blocks, Delta};
use super::log::{Event, Recorded};

/// The blocks in which the device may differ from a base.
#[derive(Debug, Default)]
pub struct Stage {
    dirty: BTreeSet<u64>,
}

impl Stage {
    /// Everything that these events wrote may differ from the base now.
    pub fn written(&mut self, recorded: &Recorded) {
        for event in &recorded.events {
            if let Event::Write { place, length, .. } = *event {
                let last = (place + length as u64).div_ceil(BLOCK as u64);
                self.dirty.extend(place / BLOCK as u64..last);
            }
        }
    }

    /// So may these blocks.
    pub fn changed(&mut self, delta: &Delta) {
        self.dirty.extend(delta.blocks.keys());
    }

    /// Makes the device's content the base with a difference.
    pub fn set(&mut self, content: &File, base: &Blocks, delta: &Delta) -> Result<()> {
        self.changed(delta);
        for number in &self.dirty {
            let block = delta.blocks.get(number).map_or(base.get(*number), |block| &**block);
            content.write_all_at(block, number * BLOCK as u64)?;
        }
        self.dirty = delta.blocks.keys().copied().collect();
        Ok(())
    }
}
