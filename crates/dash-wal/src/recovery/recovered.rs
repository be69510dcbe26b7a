//! What is known once a database is recovered.

use crate::shared::coordination::Word;
use crate::shared::generation::DurableEnd;
use crate::stamp::Stamp;

/// See the module.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Recovered {
    pub generation: u64,
    pub salts: u64,
    pub durable: u32,
    pub first_salt: u32,
    pub sequence: u64,
    pub position: u64,
    pub fence: bool,
    pub dirty: bool,
    pub stamp: Stamp,
    pub promised: bool,
    /// The name of `-wal` is durable.
    pub named: bool,
    /// Commits that are to become durable in stock fashion first.
    pub stock_first: u64,
    /// The id of a log that is durable, with its name; 0: there is none, or it may not be.
    pub log_id: u64,
    /// A wal-index that stock SQLite keeps lacks frames that the log had.
    pub is_index_behind: bool,
    /// `-wal` is whole, and still keeps stock SQLite out.
    pub is_sealed: bool,
}

impl Recovered {
    /// As the coordination file has it.
    pub fn words(&self) -> [(Word, u64); 15] {
        let [stamp, stamp_page] = self.stamp.words();
        [
            // A checkpoint before may have copied pages and not flushed them.
            (Word::DatabaseDirty, u64::from(self.dirty)),
            (Word::Stamp, stamp),
            (Word::StampPage, stamp_page),
            (Word::Promised, u64::from(self.promised)),
            (Word::WalNamed, u64::from(self.named)),
            (Word::StockFirst, self.stock_first),
            (Word::LogId, self.log_id),
            (Word::Generation, self.generation),
            (Word::Salts, self.salts),
            (Word::Settled, self.salts),
            (Word::Durable, DurableEnd::new(self.generation, self.durable).word()),
            (Word::FirstSalt, u64::from(self.first_salt)),
            (Word::Sequence, self.sequence),
            (Word::Position, self.position),
            (Word::Fence, u64::from(self.fence)),
        ]
    }
}
