//! The write transaction, as far as calls on `-wal` tell of it (wal.c `walFrames`).

use crate::frames::Checksum;
use crate::mutation::{Mutation, broken};
use crate::notes::Saying;
use crate::shared::coordination::{Coordination, Word};
use dash_storage::File;

/// What a writer's transaction has.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    /// The commit frame that was written: a flush of `-wal` is then a commit's. It ends with the
    /// lock WRITER, for a checkpoint's flush may be the next.
    pub frame: Option<CommitFrame>,
    /// The same, until COMMIT_PHASETWO asks for it, or the read lock falls without that.
    pub pending: Option<CommitFrame>,
    /// The first frame that was written; 0: none was.
    pub first: u32,
    /// How long the flush took that made it durable before it was visible, in nanoseconds.
    pub flushed: Option<u64>,
    /// The first frame that was written without salts and checksum; 0: none was.
    pub unsummed: u32,
    /// From that frame on all before this one have got theirs since.
    pub summed: u32,
    /// The last frame that was summed up here, and its checksum, which the index does not have.
    pub sums: Option<(u32, Checksum)>,
    /// The end of what was written into `-wal` last, but for headers of frames, in bytes.
    pub written_to: u64,
    /// SQLite has asked for a flush of it.
    pub synced: bool,
    /// Other databases are written in the same transaction: it must be durable before it is
    /// visible, for an error after that reaches nobody (WAL-3).
    pub undeferred: bool,
    pub saying: Saying,
}

/// A frame that ends a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CommitFrame {
    /// Its number in `-wal`.
    pub number: u32,
    /// Frames of the transaction.
    pub frames: u32,
    /// The salts it was written with.
    pub salts: [u32; 2],
}

impl Transaction {
    /// The transaction is over for WRITER: what is flushed from here on is no commit.
    pub fn writer_released(&mut self) {
        if !broken(Mutation::BarrierTakenForCommit) {
            let frame = self.frame.take();
            self.pending = frame.or(self.pending);
        }
    }

    /// Frame `number`, of which this is said, was written without salts and checksum. `shared`:
    /// others can see the index.
    pub fn note_unsummed<F: File>(&mut self, number: u32, shared: bool, c: &Coordination<F>) {
        let known = self.unsummed;
        (self.unsummed, self.summed) = match known {
            0 => (number, number),
            _ => (known.min(number), self.summed.min(number)),
        };
        if known == 0 && shared {
            c.set(Word::Unsummed, u64::from(self.first));
        }
    }

    /// Frame `number` was written with both: SQLite goes through such frames in their order.
    pub fn note_summed(&mut self, number: u32) {
        if self.unsummed != 0 && self.summed == number {
            self.summed += 1;
        }
    }
}
