//! A write transaction: where it stands, and what it has written so far.

pub(crate) mod buffer;
pub(crate) mod carry;
pub(crate) mod prepare;
pub(crate) mod publish;
pub(crate) mod write;

use crate::connection::transaction::buffer::WriteBuffer;
use crate::format::header::Header;
use crate::ranges::RangeSet;
use std::ops::Range;

/// Where a transaction stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// SQLite writes pages.
    Building,
    /// Pages, page list and commit block are in the shadow (FCNTL_SYNC).
    Prepared,
    /// They are durable (xSync): the commit point.
    Durable,
}

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
    /// The shadow's first byte has been written: a fence stands there.
    pub touched: bool,
    /// How far the commit is.
    pub phase: Phase,
    /// A commit block of this transaction is in the shadow.
    pub has_block: bool,
    /// What the transaction changed, known when it is prepared.
    pub page_list: RangeSet,
    /// The state it will publish, known when it is prepared.
    pub snapshot: crate::shared::state::Snapshot,
    /// Its header.
    pub header: Option<Header>,
    /// It is part of a transaction over several databases: prepared under a super-journal.
    pub of_several: bool,
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
            touched: false,
            phase: Phase::Building,
            has_block: false,
            page_list: RangeSet::new(),
            snapshot: crate::shared::state::Snapshot::default(),
            header: None,
            of_several: false,
            unchanged: false,
        }
    }

    /// Whether nothing has been written.
    pub fn is_clean(&self) -> bool {
        self.buffer.is_empty() && self.spilled.is_empty() && !self.touched
    }

    /// Whether any byte of `range` has been written.
    pub fn touches(&self, range: &Range<u64>) -> bool {
        self.buffer.intersects(range) || self.spilled.intersects(range.clone())
    }
}
