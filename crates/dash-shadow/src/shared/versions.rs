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
//!
//! What a snapshot has found once it needs no second time. So a byte is put aside only if not all
//! snapshots pinned in its copy have it: if no record has a label above the newest of them
//! ([`Covered`]). For one long reader the store holds each byte of its copy once, whatever is
//! committed. And records whose labels are not above the oldest snapshot that anybody reads are
//! nobody's: they lie at the log's beginning, as labels ascend, and are trimmed
//! ([`Coordination::trim_versions`]). A position lies in the file as far behind the **origin**,
//! which moves only when the log is emptied; the blocks of what was trimmed are given back.

use crate::mutation::{Mutation, broken};
use crate::shared::coordination::{Coordination, Word};
use dash_engine::io::STRIDE;
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
        let origin = self.word(Word::VersionsOrigin).load(SeqCst);
        // In this order: whoever empties the store moves its base to the end that is there, and the
        // origin to the base.
        let base = self.word(Word::VersionsBase).load(SeqCst);
        let end = self.word(Word::VersionsEnd).load(SeqCst);
        (origin <= base && base <= end && end < POSITION_MAX).then_some((base, end))
    }

    /// Where in the file a position lies. That of what a snapshot needs stays as it is.
    pub fn place_of(&self, position: u64) -> Option<u64> {
        let origin = self.word(Word::VersionsOrigin).load(SeqCst);
        position.checked_sub(origin).and_then(|behind| behind.checked_add(LOG))
    }

    /// Bytes of the file that the version store takes on the disk, or nearly so.
    pub fn versions_taken(&self) -> u64 {
        let end = self.word(Word::VersionsEnd).load(SeqCst);
        end.saturating_sub(self.word(Word::VersionsGivenBack).load(SeqCst))
    }

    /// Makes a record of `len` bytes, written at the end of the version store, visible.
    pub fn versions_appended(&self, len: u64) {
        self.word(Word::VersionsEnd).fetch_add(len, SeqCst);
    }

    /// Empties the version store. Its space is given back where it is `worth` so many bytes.
    pub fn empty_versions(&self, worth: u64) {
        let word = |word| self.word(word);
        let end = word(Word::VersionsEnd).load(SeqCst);
        let origin = word(Word::VersionsOrigin).load(SeqCst);
        if origin == end {
            return;
        }
        word(Word::VersionsBase).store(end, SeqCst);
        if end.saturating_sub(origin) > worth {
            self.cut_versions();
        }
        word(Word::VersionsGivenBack).store(end, SeqCst);
        word(Word::VersionsOrigin).store(end, SeqCst);
    }

    /// Cuts the file behind its words; what can't be cut is overwritten. Nobody has it mapped
    /// there.
    pub(crate) fn cut_versions(&self) {
        if self.file.metadata().is_ok_and(|found| found.len > LOG) {
            drop(self.file.set_len(LOG));
        }
    }

    /// Gives up what comes before `base` in the version store, and the space of it where that is
    /// `worth` so many bytes and the file system can: else it comes back when the store is emptied.
    pub fn trim_versions(&self, base: u64, worth: u64) {
        self.word(Word::VersionsBase).store(base, SeqCst);
        let from = self.word(Word::VersionsGivenBack).load(SeqCst);
        if base.saturating_sub(from) <= worth {
            return;
        }
        if let (Some(start), Some(end)) = (self.place_of(from), self.place_of(base))
            && self.file.punch(start..end).is_ok()
        {
            self.word(Word::VersionsGivenBack).store(base, SeqCst);
        }
    }
}

/// The header of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record {
    /// The commit that overwrites.
    pub label: u64,
    pub slot: usize,
    /// What it holds of the copy.
    pub offset: u64,
    pub len: u64,
}

impl Record {
    /// As it is written.
    pub fn encode(&self) -> [u8; RECORD] {
        let mut header = [0; RECORD];
        let fields = [self.label, self.slot as u64, self.offset, self.len];
        for (place, field) in header.chunks_exact_mut(8).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        header
    }

    /// What was read; `None` if it can't be one.
    pub fn decode(header: &[u8; RECORD]) -> Option<Self> {
        let field = |i: usize| {
            let bytes = header[i * 8..i * 8 + 8].iter().rev();
            bytes.fold(0, |value, &byte| value << 8 | u64::from(byte))
        };
        let (label, offset, len) = (field(0), field(2), field(3));
        let slot = usize::try_from(field(1)).ok().filter(|&slot| slot <= 1)?;
        offset.checked_add(len).filter(|_| (1..=STRIDE).contains(&len))?;
        Some(Self { label, slot, offset, len })
    }

    /// The bytes of the copy.
    pub fn range(&self) -> Range<u64> {
        self.offset..self.offset + self.len
    }

    /// Bytes in the store, with this header.
    pub fn stored(&self) -> u64 {
        RECORD_LEN + self.len
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

/// What the writer puts aside in this transaction, and what of it is there already.
#[derive(Debug, Default)]
pub(crate) struct VersionsWritten {
    /// Label of its records; `None`: nobody reads the copy.
    pub label: Option<u64>,
    /// Position up to which the records of all writers were looked at.
    pub cursor: u64,
    /// By slot.
    pub covered: [Covered; 2],
}

/// What of a copy the records in the store hold, each byte with the newest label: whoever reads it
/// with an older snapshot finds it there (SHADOW-11).
#[derive(Debug, Default)]
pub(crate) struct Covered {
    /// Start of a range to its end and the label.
    ranges: BTreeMap<u64, (u64, u64)>,
}

impl Covered {
    /// A record with this label is in the store.
    pub fn add(&mut self, label: u64, range: Range<u64>) {
        let mut rest: RangeSet = std::iter::once(range.clone()).collect();
        for (part, older) in self.overlapping(&range) {
            if older >= label {
                rest.remove(part);
                continue;
            }
            self.ranges.remove(&part.start);
            if part.start < range.start {
                self.ranges.insert(part.start, (range.start, older));
            }
            if part.end > range.end {
                self.ranges.insert(range.end, (part.end, older));
            }
        }
        for part in rest.iter() {
            self.ranges.insert(part.start, (part.end, label));
        }
    }

    /// What of `ranges` must be put aside, where `newest` is the newest snapshot that is read in
    /// this copy.
    pub fn missing(&self, ranges: &RangeSet, newest: u64) -> RangeSet {
        let mut missing = ranges.clone();
        for range in ranges.iter() {
            for (part, label) in self.overlapping(&range) {
                if label > newest || broken(Mutation::OldRecordsCount) {
                    missing.remove(part);
                }
            }
        }
        missing
    }

    /// The store is empty.
    pub fn clear(&mut self) {
        self.ranges.clear();
    }

    fn overlapping(&self, range: &Range<u64>) -> Vec<(Range<u64>, u64)> {
        let first = self.ranges.range(..=range.start).next_back().map_or(0, |(&start, _)| start);
        let found = self.ranges.range(first..range.end.max(first));
        let found = found.map(|(&start, &(end, label))| (start..end, label));
        found.filter(|(part, _)| part.end > range.start).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Covered, Record, VersionsRead};
    use dash_engine::ranges::RangeSet;

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

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let record = Record { label: 7, slot: 1, offset: 4096, len: 512 };
        assert_eq!(Record::decode(&record.encode()), Some(record));
        assert_eq!(Record::decode(&Record { len: 0, ..record }.encode()), None);
        assert_eq!(Record::decode(&Record { offset: u64::MAX, ..record }.encode()), None);
        assert_eq!(Record::decode(&[0; 32]), None);
    }

    #[test]
    fn what_all_snapshots_have_is_not_put_aside_again() {
        let all: RangeSet = std::iter::once(0..100).collect();
        let mut covered = Covered::default();
        covered.add(4, 0..100);
        assert_eq!(covered.missing(&all, 4).bytes(), 100, "of before the snapshot");
        covered.add(6, 20..40);
        assert_eq!(covered.missing(&all, 4).bytes(), 80);
        assert_eq!(covered.missing(&all, 2).bytes(), 0, "the newer one has left");
        assert_eq!(covered.missing(&all, 8).bytes(), 100, "a newer snapshot needs its own");
        covered.add(5, 10..50);
        assert_eq!(covered.missing(&all, 5).bytes(), 80, "the newest label counts");
        assert_eq!(covered.missing(&all, 4).bytes(), 60);
    }
}
