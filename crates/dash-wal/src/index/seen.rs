//! The wal-index as somebody sees it who is not attached: a copy of its first bytes, and the locks
//! of others.

use super::header::{self, IndexHeader};
use super::slots::{BASE, READ};
use dash_engine::copied::Copied;
use dash_engine::error::{Context, Operation, Result};
use dash_storage::{File, LockKind};

/// Words that hold both copies of the header, the marks of readers and the bytes of locks.
const WORDS: usize = 17;

/// What the slots of readers say.
pub(crate) trait Slots {
    /// The shared header, if it is whole.
    fn header(&self) -> Option<IndexHeader>;

    /// The mark of a reader's slot: the last frame that it may read.
    fn mark(&self, slot: usize) -> Option<u32>;

    /// Whether another connection, of any program, holds a slot: see [`File::lock_conflict`].
    fn others(&self, slot: usize) -> Result<Option<i32>>;

    /// The processes of stock SQLite that hold a slot: see [`File::lock_owners`].
    fn stock_holders(&self, slot: usize) -> Result<Vec<i32>>;
}

/// The index, opened for reading, as it was.
pub(crate) struct Seen<F: File> {
    file: F,
    words: Copied,
    shown: String,
}

impl<F: File> Seen<F> {
    /// Copies its first bytes. `shown`: what messages call it.
    pub(crate) fn of(file: F, shown: &str) -> Result<Self> {
        let words = Copied::of(&file, WORDS).during(Operation::Read, shown)?;
        Ok(Self { file, words, shown: shown.to_owned() })
    }
}

impl<F: File> Slots for Seen<F> {
    fn header(&self) -> Option<IndexHeader> {
        header::read(&self.words)
    }

    fn mark(&self, slot: usize) -> Option<u32> {
        header::mark(&self.words, slot.checked_sub(READ)?)
    }

    fn others(&self, slot: usize) -> Result<Option<i32>> {
        others(&self.file, slot, &self.shown)
    }

    fn stock_holders(&self, slot: usize) -> Result<Vec<i32>> {
        stock_holders(&self.file, slot, &self.shown)
    }
}

/// See [`Slots::others`].
pub(super) fn others<F: File>(file: &F, slot: usize, shown: &str) -> Result<Option<i32>> {
    let byte = BASE + slot as u64;
    let found = file.lock_conflict(byte..byte + 1, LockKind::Exclusive);
    found.during(Operation::Lock, shown)
}

/// See [`Slots::stock_holders`].
pub(super) fn stock_holders<F: File>(file: &F, slot: usize, shown: &str) -> Result<Vec<i32>> {
    let byte = BASE + slot as u64;
    file.lock_owners(byte..byte + 1).during(Operation::Lock, shown)
}
