//! Sets of byte ranges: the write set, the Global Page List, what a recovery has to look at.
//!
//! Ranges are kept disjoint, sorted and merged where they touch.

use std::collections::BTreeMap;
use std::ops::Range;

/// A set of byte ranges.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RangeSet {
    /// Start of each range to its end (exclusive).
    ranges: BTreeMap<u64, u64>,
}

impl RangeSet {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a range.
    pub fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let (mut start, mut end) = (range.start, range.end);
        if let Some((&s, &e)) = self.ranges.range(..=start).next_back()
            && e >= start
        {
            if e >= end {
                return;
            }
            start = s;
            end = end.max(e);
        }
        while let Some((&s, &e)) = self.ranges.range(start..).next()
            && s <= end
        {
            end = end.max(e);
            self.ranges.remove(&s);
        }
        self.ranges.insert(start, end);
    }

    /// Adds all ranges of another set.
    pub fn union(&mut self, other: &Self) {
        for range in other.iter() {
            self.insert(range);
        }
    }

    /// Takes a range out.
    pub fn remove(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let overlapping: Vec<_> = self.overlapping(range.clone()).collect();
        for piece in overlapping {
            self.ranges.remove(&piece.start);
            if piece.start < range.start {
                self.ranges.insert(piece.start, range.start);
            }
            if piece.end > range.end {
                self.ranges.insert(range.end, piece.end);
            }
        }
    }

    /// This set without what is in `other`.
    pub fn without(&self, other: &Self) -> Self {
        let mut rest = self.clone();
        for range in other.iter() {
            rest.remove(range);
        }
        rest
    }

    /// What is in both sets.
    pub fn within(&self, other: &Self) -> Self {
        self.without(&self.without(other))
    }

    /// This set cut at `end`.
    pub fn below(&self, end: u64) -> Self {
        let mut rest = self.clone();
        rest.remove(end..u64::MAX);
        rest
    }

    /// The whole ranges (not cut) that share a byte with `range`.
    pub fn overlapping(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let first = self
            .ranges
            .range(..=range.start)
            .next_back()
            .filter(|&(_, &end)| end > range.start)
            .map_or(range.start, |(&start, _)| start);
        self.ranges.range(first..range.end.max(first)).map(|(&start, &end)| start..end)
    }

    /// Whether every byte of `range` is in the set.
    pub fn covers(&self, range: Range<u64>) -> bool {
        range.is_empty()
            || self
                .ranges
                .range(..=range.start)
                .next_back()
                .is_some_and(|(_, &end)| end >= range.end)
    }

    /// Whether any byte of `range` is in the set.
    pub fn intersects(&self, range: Range<u64>) -> bool {
        !range.is_empty() && self.overlapping(range).next().is_some()
    }

    /// The ranges, ascending.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.ranges.iter().map(|(&start, &end)| start..end)
    }

    /// Whether there is no byte in the set.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How many ranges there are.
    pub fn count(&self) -> usize {
        self.ranges.len()
    }

    /// Bytes in the set.
    pub fn bytes(&self) -> u64 {
        self.iter().map(|range| range.end - range.start).sum()
    }

    /// Takes everything out.
    pub fn clear(&mut self) {
        self.ranges.clear();
    }
}

impl FromIterator<Range<u64>> for RangeSet {
    fn from_iter<I: IntoIterator<Item = Range<u64>>>(ranges: I) -> Self {
        let mut set = Self::new();
        for range in ranges {
            set.insert(range);
        }
        set
    }
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "small numbers")]
mod tests {
    use super::RangeSet;
    use proptest::prelude::*;

    fn bits(set: &RangeSet) -> Vec<bool> {
        (0..64).map(|i| set.covers(i..i + 1)).collect()
    }

    proptest! {
        #[test]
        fn behaves_as_a_set_of_bytes(steps in prop::collection::vec((any::<bool>(), 0u64..60, 0u64..12), 0..20)) {
            let mut set = RangeSet::new();
            let mut model = vec![false; 64];
            for (add, start, len) in steps {
                let end = (start + len).min(64);
                if add { set.insert(start..end) } else { set.remove(start..end) }
                for bit in &mut model[start as usize..end as usize] { *bit = add; }
            }
            prop_assert_eq!(&bits(&set), &model);
            let merged: Vec<_> = set.iter().collect();
            prop_assert!(merged.windows(2).all(|w| w[0].end < w[1].start));
            prop_assert_eq!(set.bytes(), model.iter().filter(|&&b| b).count() as u64);
            for start in 0..60 {
                prop_assert_eq!(set.intersects(start..start + 3), model[start as usize..start as usize + 3].iter().any(|&b| b));
                prop_assert_eq!(set.covers(start..start + 3), model[start as usize..start as usize + 3].iter().all(|&b| b));
            }
        }
    }
}
