//! Whether the current copy is on the disk as it is in the cache: commits under synchronous=OFF
//! leave copies that are not.

use crate::shared::coordination::{Coordination, Word};
use dash_storage::File;
use std::sync::atomic::Ordering::SeqCst;

/// Whether the current copy is on the disk as it is in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// It is.
    Flushed,
    /// It was not flushed, or who had it open before was killed, perhaps before that.
    Unknown,
    /// It was found so, and nothing tells that it is: since the last clean close somebody has
    /// copied or written it, or there was none.
    Unproven,
    /// Flushing it failed: what is in the cache will never be known to be on the disk.
    Lost,
}

impl<F: File> Coordination<F> {
    /// Whether the newest commit in `slot` was made since the first opener, and flushed.
    pub fn is_flushed(&self, slot: usize) -> bool {
        self.word(Word::Flushed).load(SeqCst) & 1 << slot != 0
    }

    /// Says whether the commit in `slot` was flushed.
    pub fn set_flushed(&self, slot: usize, flushed: bool) {
        let others = self.word(Word::Flushed).load(SeqCst) & !(1 << slot);
        self.word(Word::Flushed).store(others | u64::from(flushed) << slot, SeqCst);
    }

    /// Whether the current copy is on the disk as it is in the cache.
    pub fn durability(&self) -> Durability {
        match self.word(Word::Durability).load(SeqCst) {
            0 | 2 if self.commits() > 0 => match self.is_flushed(self.current().slot) {
                true => Durability::Flushed,
                false => Durability::Unknown,
            },
            0 => Durability::Flushed,
            1 => Durability::Unknown,
            2 => Durability::Unproven,
            _ => Durability::Lost,
        }
    }

    /// Says so.
    pub fn set_durability(&self, durability: Durability) {
        self.word(Word::Durability).store(durability as u64, SeqCst);
    }
}
