//! Differences with copies: what the new image has that the old one has somewhere else, and
//! where that may be said (`everywhere`) what it has itself further up.
//!
//! The old image is indexed by words of eight bytes, every fourth or so, and the new one behind
//! it, as it is gone through; each word of the new one that stands in a long run of changes is
//! looked up, and what is found is grown to both sides.

use super::operations::{GAP, SHORT_RUN, SHORT_RUN_EVERYWHERE, Writer, longest};
use crate::runs::Changes;
use dash_engine::error::{Error, Result};
use std::ops::Range;

/// Equal bytes between two runs that are looked at together: one copy may cover both.
const WIDE_GAP: usize = 16;

/// Bytes that are looked up.
const WORD: usize = 8;

/// Every so manyth byte of the old image begins a word that is found, and so it is in what was
/// copied.
const STRIDE: usize = 4;

/// The same of the old image where each difference is made so: to index it is most of the work, and
/// what a page has in common with what it was is long.
const STRIDE_EVERYWHERE: usize = 16;

/// Changed bytes that are worth a copy: it takes five bytes, and ends a run.
const LEAST: usize = 10;

/// The same where it takes three.
const LEAST_EVERYWHERE: usize = 6;

/// Words that are looked up in vain before every other one is passed over, then two of three, and
/// so on (LZ4 does so): what is new throughout is soon gone through.
const PATIENCE: usize = 32;

const ENTRIES: usize = 2048;
const ENTRY_BITS: u32 = ENTRIES.trailing_zeros();

/// The images, one behind the other, and where they differ.
#[derive(Clone, Copy)]
pub(super) struct Images<'a> {
    pub(super) old: &'a [u8],
    pub(super) new: &'a [u8],
    pub(super) changes: &'a Changes,
    pub(super) everywhere: bool,
}

/// A part of the new image that is at `from` as well.
struct Match {
    at: usize,
    from: usize,
    len: usize,
}

impl Images<'_> {
    /// Whether so many of its bytes changed that they take more than the copy.
    fn pays(&self, found: &Match) -> bool {
        let least = if self.everywhere { LEAST_EVERYWHERE } else { LEAST };
        self.changes.count(found.at..found.at + found.len) >= least
    }

    /// As much around a word at `at` of the new image that is also at `from` as is the same in both
    /// places, within `part` of the new.
    fn grown(&self, part: Range<usize>, at: usize, from: usize) -> Match {
        let Self { old, new, .. } = *self;
        let (source, place) = match from.checked_sub(old.len()) {
            None => (old, from),
            Some(place) => (new, place),
        };
        let pairs = new[part.start..at].iter().rev().zip(source[..place].iter().rev());
        let before = pairs.take_while(|(a, b)| a == b).count();
        let pairs = new[at..part.end].iter().zip(&source[place..]);
        let behind = pairs.take_while(|(a, b)| a == b).count();
        Match { at: at - before, from: from - before, len: before + behind }
    }

    /// The word at `from`, if it may be copied to `at`.
    fn word_for(&self, at: usize, from: usize) -> Option<u64> {
        match from.checked_sub(self.old.len()) {
            // At its own place it is no change.
            None if from != at => word(self.old, from),
            Some(place) if self.everywhere && place < at => word(self.new, place),
            _ => None,
        }
    }
}

/// Appends the difference, copies and all, even where runs alone are shorter.
pub(super) fn encode(images: Images<'_>, index: &mut Index, out: &mut Vec<u8>) -> Result<()> {
    let Images { old, new, everywhere, changes } = images;
    // A copy is shorter than what it stands for, and as a run costs at most three bytes more.
    out.try_reserve(longest(new.len()) + new.len() / 2).map_err(|_| Error::OutOfMemory)?;
    index.fill(old, if everywhere { STRIDE_EVERYWHERE } else { STRIDE });
    let mut writer = Writer { out, at: 0 };
    let short = if everywhere { SHORT_RUN_EVERYWHERE } else { SHORT_RUN };
    changes.runs(0..new.len(), WIDE_GAP, |run| {
        let mut at = run.start;
        if run.len() > short {
            index.matches(images, run.clone(), |found| {
                put_runs(&mut writer, images, at..found.at);
                match everywhere {
                    true => writer.copy_everywhere(found.at, found.from, found.len),
                    false => writer.copy(found.at, found.from, found.len),
                }
                at = found.at + found.len;
            });
        }
        put_runs(&mut writer, images, at..run.end);
    });
    Ok(())
}

/// What changed in a part of the image.
fn put_runs(writer: &mut Writer<'_>, images: Images<'_>, part: Range<usize>) {
    images.changes.runs(part, GAP, |run| writer.data(run.start, &images.new[run]));
}

/// Where which word is: both images together have at most [`COPY_MAX`](super::COPY_MAX) bytes where
/// places in the new one are asked for, and so has the old one in any case.
pub(super) struct Index(Box<[u16; ENTRIES]>);

impl Default for Index {
    fn default() -> Self {
        Self(Box::new([0; ENTRIES]))
    }
}

impl Index {
    /// Forgets all, and knows every so manyth word of `old`.
    fn fill(&mut self, old: &[u8], stride: usize) {
        self.0.fill(0);
        let stride = (old.len() / ENTRIES).next_multiple_of(stride).max(stride);
        for (number, window) in old.windows(WORD).step_by(stride).enumerate() {
            if let Some(word) = word(window, 0) {
                self.put(word, number * stride);
            }
        }
    }

    fn put(&mut self, word: u64, place: usize) {
        if let Ok(place) = u16::try_from(place) {
            self.0[slot(word)] = place;
        }
    }

    /// Calls `each` for what `part` of the new image has in common with what is to be copied from.
    fn matches(&mut self, images: Images<'_>, part: Range<usize>, mut each: impl FnMut(Match)) {
        let Images { old, new, everywhere, .. } = images;
        let mut floor = part.start;
        let mut at = floor;
        let mut in_vain = 0;
        while let Some(here) = word(&new[..part.end], at) {
            let from = usize::from(self.0[slot(here)]);
            if everywhere {
                self.put(here, old.len() + at);
            }
            let same = images.word_for(at, from) == Some(here);
            match same.then(|| images.grown(floor..part.end, at, from)) {
                Some(found) if images.pays(&found) => {
                    floor = found.at + found.len;
                    if everywhere {
                        self.put_all(images, at + 1..floor);
                    }
                    at = floor;
                    in_vain = 0;
                    each(found);
                }
                _ => {
                    at += 1 + in_vain / PATIENCE;
                    in_vain += 1;
                }
            }
        }
    }

    /// What was copied can be copied from here, too.
    fn put_all(&mut self, images: Images<'_>, part: Range<usize>) {
        for place in part.step_by(STRIDE) {
            if let Some(word) = word(images.new, place) {
                self.put(word, images.old.len() + place);
            }
        }
    }
}

fn word(bytes: &[u8], place: usize) -> Option<u64> {
    let word: &[u8; WORD] = bytes.get(place..)?.first_chunk()?;
    Some(u64::from_le_bytes(*word))
}

/// Fibonacci hashing.
fn slot(word: u64) -> usize {
    let mixed = word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - ENTRY_BITS);
    usize::try_from(mixed).unwrap_or(0)
}
