//! What one image of a unit has that another has not, as operations that make the new image of the
//! old one from its beginning to its end:
//!
//! | tag | then | is |
//! |---|---|---|
//! | `00` + length | | keep: so many bytes are as in the old image, at the same place |
//! | `01` + length | the bytes | data: so many new bytes |
//! | `10000000` | offset u16, length − 1 u16 | copy: so many bytes that the old image has at the offset |
//! | `11` + length | offset u16 | copy: so many bytes that are at the offset of the old image, if there is one, with the new one behind it as far as it is made |
//!
//! The tag's upper two bits say what it is, its lower six how long: 0 to 59 is a length of 1 to 60;
//! 60 is followed by a byte, length − 61; 61 by a u16, length − 1. What is behind the last
//! operation is kept. An old image that there is not is zeros.
//!
//! Copies are an addition to WALDIO's runs of changed bytes: a row that grows moves its neighbours
//! within the page, and what moved need not be logged again. To find them takes longer than to find
//! runs, so they are looked for only on demand, and only where many new bytes stand in a row.

use crate::runs::Changes;
use dash_engine::error::{Error, Result};
use std::ops::Range;

mod copies;
mod operations;

pub use operations::longest;
use operations::{
    COPY, COPY_EVERYWHERE, DATA, GAP, IN_TAG, KEEP, KIND, ONE_BYTE, SHORT_RUN,
    SHORT_RUN_EVERYWHERE, TWO_BYTES, Writer,
};

/// Longest image that is copied from: offset and length are 16 bits.
pub const COPY_MAX: usize = 1 << 16;

/// Whether a difference may copy from the old image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copies {
    /// Runs of new bytes only.
    No,
    /// Wherever that makes it shorter.
    WhereTheyPay,
    /// The same, and from the new image, too: what is alike in one page need be said once. Such
    /// differences are of compact records.
    Everywhere,
}

/// The bytes are no difference, or none of an image of this length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the difference is damaged")]
pub struct Damaged;

/// Makes differences, one after the other in the same memory.
#[derive(Default)]
pub struct Differ {
    changes: Changes,
    index: copies::Index,
}

/// Appends to `out` what turns `old` into `new`, as [`Differ::encode`] does.
///
/// # Errors
///
/// Those of [`Differ::encode`].
pub fn encode(old: Option<&[u8]>, new: &[u8], copies: Copies, out: &mut Vec<u8>) -> Result<()> {
    Differ::default().encode(old, new, copies, out)
}

impl Differ {
    /// Appends to `out` what turns `old` into `new`. Where `old` is shorter than `new`, it counts
    /// as zeros, and so does `None`; what it has behind `new`'s length is not looked at.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`]; `out` is as it was then.
    pub fn encode(
        &mut self,
        old: Option<&[u8]>,
        new: &[u8],
        copies: Copies,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let old = old.unwrap_or(&[]);
        let first = out.len();
        let everywhere = copies == Copies::Everywhere && old.len() + new.len() <= COPY_MAX;
        let short = if everywhere { SHORT_RUN_EVERYWHERE } else { SHORT_RUN };
        let movable = self.runs_of(old, new, short, out)?;
        let within_reach = everywhere || !old.is_empty() && old.len() <= COPY_MAX;
        if copies != Copies::No && movable > 0 && within_reach {
            let second = out.len();
            let images = copies::Images { old, new, changes: &self.changes, everywhere };
            if let Err(error) = copies::encode(images, &mut self.index, out) {
                out.truncate(first);
                return Err(error);
            }
            if out.len() - second < second - first {
                out.drain(first..second);
            } else {
                out.truncate(second);
            }
        }
        Ok(())
    }

    /// As [`Self::encode`], without copies; how many bytes stand in runs in which copies may pay.
    pub(crate) fn encode_runs(
        &mut self,
        old: &[u8],
        new: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<usize> {
        self.runs_of(old, new, SHORT_RUN, out)
    }

    fn runs_of(
        &mut self,
        old: &[u8],
        new: &[u8],
        short: usize,
        out: &mut Vec<u8>,
    ) -> Result<usize> {
        out.try_reserve(longest(new.len())).map_err(|_| Error::OutOfMemory)?;
        self.changes.find(old, new)?;
        let mut movable = 0;
        let mut writer = Writer { out, at: 0 };
        self.changes.runs(0..new.len(), GAP, |run| {
            if run.len() > short {
                movable += run.len();
            }
            writer.data(run.start, &new[run]);
        });
        Ok(movable)
    }
}

/// Makes `image` what `difference` makes of `old`; `None`, and what `old` is too short for, is
/// zeros. Takes no memory.
///
/// # Errors
///
/// [`Damaged`], for whatever bytes; `image` holds anything then.
pub fn apply(
    difference: &[u8],
    old: Option<&[u8]>,
    image: &mut [u8],
) -> std::result::Result<(), Damaged> {
    let old = old.unwrap_or(&[]);
    let same = old.len().min(image.len());
    image[..same].copy_from_slice(&old[..same]);
    image[same..].fill(0);
    let mut rest = difference;
    let mut at = 0;
    while let Some((&tag, behind)) = rest.split_first() {
        rest = behind;
        if tag == COPY {
            let from = number(&mut rest)?;
            let len = number(&mut rest)? + 1;
            let source = old.get(from..from + len).ok_or(Damaged)?;
            image.get_mut(at..at + len).ok_or(Damaged)?.copy_from_slice(source);
            at += len;
        } else {
            let len = length(tag, &mut rest)?;
            let place = image.get_mut(at..at + len).ok_or(Damaged)?;
            match tag & KIND {
                KEEP => {}
                DATA => place.copy_from_slice(take(&mut rest, len)?),
                COPY_EVERYWHERE => copy_everywhere(old, image, at..at + len, number(&mut rest)?)?,
                _ => return Err(Damaged),
            }
            at += len;
        }
    }
    Ok(())
}

/// Makes a `part` of the image, all before which is made.
fn copy_everywhere(
    old: &[u8],
    image: &mut [u8],
    part: Range<usize>,
    from: usize,
) -> std::result::Result<(), Damaged> {
    let Some(own) = from.checked_sub(old.len()) else {
        let source = old.get(from..from + part.len()).ok_or(Damaged)?;
        image[part].copy_from_slice(source);
        return Ok(());
    };
    if own >= part.start {
        return Err(Damaged);
    }
    if own + part.len() <= part.start {
        image.copy_within(own..own + part.len(), part.start);
    } else {
        // What it makes itself is copied, too, so one byte after the other.
        for (place, from) in part.zip(own..) {
            image[place] = image[from];
        }
    }
    Ok(())
}

fn length(tag: u8, rest: &mut &[u8]) -> std::result::Result<usize, Damaged> {
    match tag & !KIND {
        ONE_BYTE => Ok(usize::from(take(rest, 1)?[0]) + IN_TAG + 1),
        TWO_BYTES => Ok(number(rest)? + 1),
        short if usize::from(short) < IN_TAG => Ok(usize::from(short) + 1),
        _ => Err(Damaged),
    }
}

fn number(rest: &mut &[u8]) -> std::result::Result<usize, Damaged> {
    take(rest, 2).map(|bytes| usize::from(bytes[0]) | usize::from(bytes[1]) << 8)
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> std::result::Result<&'a [u8], Damaged> {
    let (taken, left) = rest.split_at_checked(len).ok_or(Damaged)?;
    *rest = left;
    Ok(taken)
}
