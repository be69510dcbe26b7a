//! Differences with copies: what the new image has that the old one has somewhere else.
//!
//! The old image is indexed by words of eight bytes, every fourth or so; each word of the new one
//! that stands in a long run of changes is looked up, and what is found is grown to both sides.

use super::{GAP, SHORT_RUN, Writer, longest};
use crate::runs::runs;
use dash_engine::error::{Error, Result};
use std::ops::Range;

/// Equal bytes between two runs that are looked at together: one copy may cover both.
const WIDE_GAP: usize = 16;

/// Bytes that are looked up.
const WORD: usize = 8;

/// Changed bytes that are worth a copy: it takes five bytes, and ends a run.
const LEAST: usize = 10;

/// Words that are looked up in vain before every other one is passed over, then two of three, and
/// so on (LZ4 does so): what is new throughout is soon gone through.
const PATIENCE: usize = 32;

const ENTRIES: usize = 2048;
const ENTRY_BITS: u32 = ENTRIES.trailing_zeros();

/// A part of the new image that the old one has at `from`.
struct Match {
    at: usize,
    from: usize,
    len: usize,
}

impl Match {
    /// Whether so many of its bytes changed that they take more than the copy.
    fn pays(&self, old: &[u8], new: &[u8]) -> bool {
        let same = old.get(self.at..).unwrap_or(&[]).iter().zip(&new[self.at..][..self.len]);
        self.len - same.filter(|(a, b)| a == b).count() >= LEAST
    }
}

/// Appends the difference, copies and all, even where runs alone are shorter.
pub(super) fn encode(old: &[u8], new: &[u8], out: &mut Vec<u8>) -> Result<()> {
    // A copy is shorter than what it stands for, and as a run costs at most three bytes more.
    out.try_reserve(longest(new.len()) + new.len() / 2).map_err(|_| Error::OutOfMemory)?;
    let index = Index::of(old);
    let mut writer = Writer { out, at: 0 };
    runs(old, new, WIDE_GAP, |start, end| {
        let mut at = start;
        if end - start > SHORT_RUN {
            index.matches(old, new, start..end, |found| {
                put_runs(&mut writer, old, new, at..found.at);
                writer.copy(found.at, found.from, found.len);
                at = found.at + found.len;
            });
        }
        put_runs(&mut writer, old, new, at..end);
    });
    Ok(())
}

/// What changed in a part of the image.
fn put_runs(writer: &mut Writer<'_>, old: &[u8], new: &[u8], part: Range<usize>) {
    let before = &old[part.start.min(old.len())..part.end.min(old.len())];
    runs(before, &new[part.clone()], GAP, |start, end| {
        let run = part.start + start..part.start + end;
        writer.data(run.start, &new[run]);
    });
}

/// Where the old image has which word.
struct Index([u16; ENTRIES]);

impl Index {
    fn of(old: &[u8]) -> Self {
        let mut entries = [0; ENTRIES];
        let stride = (old.len() / ENTRIES).next_multiple_of(4).max(4);
        for place in (0..old.len()).step_by(stride) {
            if let (Some(word), Ok(short)) = (word(old, place), u16::try_from(place)) {
                entries[slot(word)] = short;
            }
        }
        Self(entries)
    }

    /// Calls `each` for what `part` of the new image has in common with any part of the old.
    fn matches(&self, old: &[u8], new: &[u8], part: Range<usize>, mut each: impl FnMut(Match)) {
        let mut floor = part.start;
        let mut at = floor;
        let mut in_vain = 0;
        while let Some(here) = word(&new[..part.end], at) {
            let from = usize::from(self.0[slot(here)]);
            // At its own place it is no change.
            let same = from != at && word(old, from) == Some(here);
            match same.then(|| grown(old, new, floor..part.end, at, from)) {
                Some(found) if found.pays(old, new) => {
                    floor = found.at + found.len;
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
}

/// As much around a word that both images have as is the same in both, within `part` of the new.
fn grown(old: &[u8], new: &[u8], part: Range<usize>, at: usize, from: usize) -> Match {
    let (new_before, old_before) = (&new[part.start..at], &old[..from]);
    let pairs = new_before.iter().rev().zip(old_before.iter().rev());
    let before = pairs.take_while(|(a, b)| a == b).count();
    let pairs = new[at..part.end].iter().zip(&old[from..]);
    let behind = pairs.take_while(|(a, b)| a == b).count();
    Match { at: at - before, from: from - before, len: before + behind }
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
