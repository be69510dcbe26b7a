//! The version store: what a reader's snapshot needs of pages that a writer overwrites under it,
//! so that no reader makes a writer wait (T16).
//!
//! Two copies alone would mean that a commit waits for every reader of the state before the last
//! one. Instead the writer, before it overwrites a place in a copy that somebody has pinned, puts
//! the bytes aside in the coordination file, behind its words, and readers look there. It is
//! memory, not durable: after a crash nobody's snapshot is left.
//!
//! The store is a log of records, each a header (label, slot, offset, length; four u64) and the
//! bytes. The **label** is the sequence of the commit that overwrites. For a snapshot s of the copy
//! in a slot, the first record of that slot with a label above s that covers a byte holds it; if
//! there is none the byte is still in the file. Order (SHADOW-11): the writer announces that the
//! slot is being overwritten, appends records, and only then overwrites what they cover; a reader
//! reads the file first and looks for the announcement and for records afterwards. A writer that
//! finds nobody on an older state empties the log. Positions never repeat, so that a reader's place
//! in the log stays right when it is emptied.

use crate::shared::coordination::{Coordination, Word};
use dash_engine::ranges::RangeSet;
use dash_storage::File;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::Ordering::SeqCst;

/// Where the log begins in the coordination file.
pub(crate) const LOG: u64 = 64 << 10;

/// Bytes of a record's header.
pub(crate) const RECORD: usize = 32;

/// The same as an offset.
pub(crate) const RECORD_LEN: u64 = 32;

/// Positions in the version store are smaller, and sums don't overflow.
const POSITION_MAX: u64 = 1 << 62;

impl<F: File> Coordination<F> {
    /// Positions of the first byte of the version store and behind its last one; `None` if they
    /// can't be.
    pub fn versions(&self) -> Option<(u64, u64)> {
        // In this order: whoever empties the store moves its base to the end that is there.
        let base = self.word(Word::VersionsBase).load(SeqCst);
        let end = self.word(Word::VersionsEnd).load(SeqCst);
        (base <= end && end < POSITION_MAX).then_some((base, end))
    }

    /// Makes a record of `len` bytes, written at the end of the version store, visible.
    pub fn versions_appended(&self, len: u64) {
        self.word(Word::VersionsEnd).fetch_add(len, SeqCst);
    }

    /// Empties the version store.
    pub fn empty_versions(&self) {
        let word = |word| self.word(word).load(SeqCst);
        let end = word(Word::VersionsEnd);
        if word(Word::VersionsBase) != end {
            self.word(Word::VersionsBase).store(end, SeqCst);
        }
    }
}

/// What a reader has found in the log for its snapshot.
#[derive(Debug, Default)]
pub(crate) struct VersionsRead {
    /// Position up to which the log was read.
    pub cursor: u64,
    /// Start of a range to its end and the position of its bytes.
    pub ranges: BTreeMap<u64, (u64, u64)>,
}

impl VersionsRead {
    /// Begins a new snapshot: records before `cursor` are not for it.
    pub fn begin(&mut self, cursor: u64) {
        self.cursor = cursor;
        self.ranges.clear();
    }

    /// Takes the parts of a record that no earlier one has covered.
    pub(crate) fn add(&mut self, range: Range<u64>, position: u64) {
        let mut gaps: RangeSet = std::iter::once(range.clone()).collect();
        let first = self.ranges.range(..=range.start).next_back().map_or(0, |(&start, _)| start);
        for (&start, &(end, _)) in self.ranges.range(first..range.end) {
            gaps.remove(start..end);
        }
        for gap in gaps.iter() {
            self.ranges.insert(gap.start, (gap.end, position + (gap.start - range.start)));
        }
    }
}

/// What the writer has put aside in this transaction.
#[derive(Debug, Default)]
pub(crate) struct VersionsWritten {
    /// Label of its records; `None`: nobody reads the copy.
    pub label: Option<u64>,
    /// What it has put aside already.
    pub done: RangeSet,
}

#[cfg(test)]
mod tests {
    use super::VersionsRead;

    #[test]
    fn the_first_record_of_a_byte_counts() {
        let mut kept = VersionsRead::default();
        kept.begin(0);
        kept.add(10..20, 100);
        kept.add(5..25, 200);
        let ranges: Vec<_> =
            kept.ranges.iter().map(|(&start, &(end, position))| (start, end, position)).collect();
        assert_eq!(ranges, [(5, 10, 200), (10, 20, 100), (20, 25, 215)]);
    }
}
