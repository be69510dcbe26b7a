//! What commits under synchronous=OFF leave behind: copies that are not on the disk as they are in
//! the cache.

use std::sync::atomic::Ordering::SeqCst;

use dash_storage::{File, Storage};

use crate::connection::Connection;
use crate::coordination::{Coordination, Word};
use crate::error::{Error, Result};
use crate::mutation::{Mutation, broken};

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

impl<S: Storage> Connection<S> {
    /// What was found is flushed now.
    pub(crate) fn found_flushed(&self) {
        if self.coordination.durability() == Durability::Unproven {
            self.coordination.set_durability(Durability::Flushed);
        }
    }

    /// SHADOW-17: makes the current copy durable if it may not be. SQLite's next commit with
    /// synchronous=FULL makes durable what came before it under OFF, and recovery knows a commit by
    /// the one that it was made on. What a flush failed to write may be clean in the cache, so it
    /// is not tried again.
    pub(crate) fn flush_current(&mut self) -> Result<()> {
        let slot = self.current.slot;
        match self.coordination.durability() {
            Durability::Flushed => return Ok(()),
            _ if broken(Mutation::UnflushedBuiltOn) => return Ok(()),
            Durability::Lost => {
                return Err(Error::Poisoned(
                    "what was committed with synchronous=OFF could not be flushed; close all connections, \
                     and check the disk and the last changes"
                        .into(),
                ));
            }
            Durability::Unproven if broken(Mutation::FoundBelievedDurable) => return Ok(()),
            Durability::Unknown | Durability::Unproven => {}
        }
        if let Err(error) = self.flush_file(slot) {
            self.coordination.set_durability(Durability::Lost);
            return Err(error);
        }
        self.coordination.set_durability(Durability::Flushed);
        self.coordination.set_flushed(slot, true);
        Ok(())
    }
}
