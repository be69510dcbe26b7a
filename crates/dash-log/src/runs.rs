//! Where two images differ, found once, 64 bytes at a time: of each line a bit for each byte tells
//! which differ.

use dash_engine::error::{Error, Result};
use std::ops::Range;

/// Bytes looked at together.
const LINE: usize = 64;

const ZEROS: [u8; LINE] = [0; LINE];

/// Which bytes of a new image are not as in the old one. Its memory serves for one pair of images
/// after the other.
#[derive(Default)]
pub(crate) struct Changes {
    /// Of each line its bytes as bits; the first one is the lowest.
    lines: Vec<u64>,
}

impl Changes {
    /// Compares the images; `old` counts as zeros where it is shorter.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`].
    pub(crate) fn find(&mut self, old: &[u8], new: &[u8]) -> Result<()> {
        self.lines.clear();
        let lines = new.len().div_ceil(LINE);
        self.lines.try_reserve(lines).map_err(|_| Error::OutOfMemory)?;
        let (whole, rest) = new.as_chunks();
        let (before, _) = old.as_chunks();
        let both = before.len().min(whole.len());
        let same = whole[..both].iter().zip(before);
        self.lines.extend(same.map(|(line, before)| differing(before, line)));
        self.lines.extend(whole[both..].iter().map(|line| differing(&ZEROS, line)));
        if !rest.is_empty() {
            self.lines.push(differing(&ZEROS, &padded(rest)));
        }
        // The line in which the shorter one ends.
        let ends = both * LINE;
        let before = &old[ends..old.len().min(new.len())];
        if let Some(line) = self.lines.get_mut(both)
            && !before.is_empty()
        {
            let line_end = new.len().min(ends + LINE);
            *line = differing(&padded(before), &padded(&new[ends..line_end]));
        }
        Ok(())
    }

    /// Calls `each` for each run of changed bytes in `part`. Runs with up to `gap` equal bytes
    /// between them are one.
    pub(crate) fn runs(&self, part: Range<usize>, gap: usize, mut each: impl FnMut(Range<usize>)) {
        // The run that the next one may be joined to.
        let mut last: Option<Range<usize>> = None;
        for (at, mut differing) in self.lines_of(part) {
            while differing != 0 {
                let first = differing.trailing_zeros();
                let len = (differing >> first).trailing_ones();
                differing &= u64::MAX.checked_shl(first + len).unwrap_or(0);
                let start = at + first as usize;
                let end = start + len as usize;
                match &mut last {
                    Some(run) if start - run.end <= gap => run.end = end,
                    last => {
                        if let Some(run) = last.replace(start..end) {
                            each(run);
                        }
                    }
                }
            }
        }
        if let Some(run) = last {
            each(run);
        }
    }

    /// How many bytes of `part` changed.
    pub(crate) fn count(&self, part: Range<usize>) -> usize {
        self.lines_of(part).map(|(_, differing)| differing.count_ones() as usize).sum()
    }

    /// The lines that `part` touches: where each begins, and what of it that is in `part` changed.
    fn lines_of(&self, part: Range<usize>) -> impl Iterator<Item = (usize, u64)> {
        let first = part.start / LINE;
        let lines = self.lines.iter().take(part.end.div_ceil(LINE)).enumerate().skip(first);
        lines.map(move |(number, &line)| {
            let at = number * LINE;
            let before = part.start.saturating_sub(at);
            let behind = (at + LINE).saturating_sub(part.end);
            (at, line & u64::MAX << before & u64::MAX >> behind)
        })
    }
}

/// A line that begins with the bytes, at most as many as it has.
fn padded(bytes: &[u8]) -> [u8; LINE] {
    let mut line = ZEROS;
    let len = bytes.len().min(LINE);
    line[..len].copy_from_slice(&bytes[..len]);
    line
}

/// A bit for each byte that is another one.
fn differing(a: &[u8; LINE], b: &[u8; LINE]) -> u64 {
    /// All bits of each byte but the highest.
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    /// Brings the lowest bits of eight bytes together in the highest byte.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let words = || {
        let words = a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0);
        words.map(|(a, b)| u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b))
    };
    // Most lines are the same, which takes no call and a few vector instructions to see.
    if words().fold(0, |any, changed| any | changed) == 0 {
        return 0;
    }
    words().enumerate().fold(0, |bits, (place, changed)| {
        // The highest bit of each byte that is not zero: no carry leaves its byte.
        let high = (((changed & LOW) + LOW) | changed) & !LOW;
        bits | ((high >> 7).wrapping_mul(GATHER) >> 56) << (8 * place)
    })
}

#[cfg(test)]
mod tests {
    use super::Changes;
    use proptest::prelude::*;

    proptest! {
        /// Runs of every part are those that a look at each byte finds.
        #[test]
        fn of_a_part_as_byte_by_byte(
            old in prop::collection::vec(0_u8..3, 0..300),
            new in prop::collection::vec(0_u8..3, 0..300),
            (start, end) in (0_usize..300, 0_usize..300),
            gap in 0_usize..20,
        ) {
            let part = start.min(new.len())..end.clamp(start, start.max(new.len())).min(new.len());
            let part = part.start..part.end.max(part.start);
            let before = |at: usize| old.get(at).copied().unwrap_or(0);
            let changed: Vec<usize> =
                part.clone().filter(|&at| new[at] != before(at)).collect();
            let mut expected: Vec<std::ops::Range<usize>> = Vec::new();
            for &at in &changed {
                match expected.last_mut() {
                    Some(run) if at - run.end <= gap => run.end = at + 1,
                    _ => expected.push(at..at + 1),
                }
            }
            let mut changes = Changes::default();
            // What it held of others is gone.
            changes.find(&[1; 500], &[2; 500]).expect("there is memory");
            changes.find(&old, &new).expect("there is memory");
            let mut runs = Vec::new();
            changes.runs(part.clone(), gap, |run| runs.push(run));
            prop_assert_eq!(runs, expected);
            prop_assert_eq!(changes.count(part), changed.len());
        }
    }
}
