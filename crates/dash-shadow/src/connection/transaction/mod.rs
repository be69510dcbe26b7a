//! A write transaction: where it stands, and what it has written so far.

pub(crate) mod buffer;
pub(crate) mod prepare;
pub(crate) mod publish;
pub(crate) mod stage;
pub(crate) mod write;

use crate::connection::transaction::buffer::WriteBuffer;
use crate::connection::transaction::stage::Stage;
use crate::format::header::Header;
use crate::shared::state::Snapshot;
use dash_engine::ranges::RangeSet;
use std::ops::Range;

/// A write transaction.
pub(crate) struct Transaction {
    /// Pages in memory.
    pub buffer: WriteBuffer,
    /// Pages already in the shadow, as the transaction left them there.
    pub spilled: RangeSet,
    /// Everything of the shadow that this transaction may have overwritten.
    pub dirtied: RangeSet,
    /// Size of the database in bytes, as SQLite sees it now.
    pub size: u64,
    /// Where it stands.
    pub stage: Stage,
    /// What the transaction changed, known when it is prepared.
    pub page_list: RangeSet,
    /// The state it will publish, known when it is prepared.
    pub snapshot: Snapshot,
    /// Its header.
    pub header: Option<Header>,
    /// Space was taken for both copies to grow.
    pub took_room: bool,
    /// It changes nothing: the names are to change places.
    pub unchanged: bool,
}

impl Transaction {
    pub fn new(size: u64) -> Self {
        Self {
            buffer: WriteBuffer::default(),
            spilled: RangeSet::new(),
            dirtied: RangeSet::new(),
            size,
            stage: Stage::Gathering,
            page_list: RangeSet::new(),
            snapshot: Snapshot::default(),
            header: None,
            took_room: false,
            unchanged: false,
        }
    }

    /// Whether nothing has been written.
    pub fn is_clean(&self) -> bool {
        self.buffer.is_empty() && self.spilled.is_empty() && !self.stage.is_in_flight()
    }

    /// Whether any byte of `range` has been written.
    pub fn touches(&self, range: &Range<u64>) -> bool {
        self.buffer.intersects(range) || self.spilled.intersects(range.clone())
    }
}
