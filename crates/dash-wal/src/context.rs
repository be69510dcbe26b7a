//! What the engine writes into the log beside the frames: which generation of `-wal` a record is
//! of, and which headers of `-wal` are older than it.
//!
//! SQLite's own numbers don't order generations: the checkpoint sequence belongs to a connection,
//! and a header that was written into the page cache and never flushed may be missing on the device
//! with any number of those before it. So dash counts generations itself, and says with each header
//! which first salts may still be found (WAL-4).

mod head;

pub use head::{HeadContext, LeftGeneration};

use crate::bounds::{FRAMES_MAX, is_page_size};
use crate::execute::Runner;
use crate::frames::{FRAME_HEADER, frame_size, pack};
use crate::made::Made;
use crate::stamp::Stamp;
use dash_engine::error::{Error, Result};
use dash_log::format::Form;
use dash_log::number;
use dash_log::record::Record;

/// Bytes of `-wal`'s header.
pub const WAL_HEADER: usize = 32;

/// A header of `-wal`, and its place among the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generation {
    /// dash's own count.
    pub number: u64,
    /// The header, as SQLite wrote it.
    pub header: [u8; WAL_HEADER],
    /// The first salt1 of a header that may still be on the device: it rises by one with each
    /// header, whichever connection writes it.
    pub first: u32,
    /// The salt1 of the header before, where this one does not follow it; else 0.
    pub predecessor: u32,
    /// The database before anything of it was copied there.
    pub stamp: Stamp,
}

/// How another header of `-wal` stands to a [`Generation`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// The same.
    Same,
    /// Written before.
    Older,
    /// Written since, or by somebody else.
    Newer,
}

impl Generation {
    /// Both salts.
    pub fn salts(&self) -> [u32; 2] {
        salts_of(&self.header)
    }

    /// How a valid header with these salts stands to it.
    pub fn relation(&self, salts: [u32; 2]) -> Relation {
        if salts == self.salts() {
            return Relation::Same;
        }
        let [own, _] = self.salts();
        let older = salts[0].wrapping_sub(self.first) < own.wrapping_sub(self.first);
        match older || self.predecessor != 0 && salts[0] == self.predecessor {
            true => Relation::Older,
            false => Relation::Newer,
        }
    }
}

/// Bytes of a page, by a header of `-wal`.
pub fn page_of(header: &[u8; WAL_HEADER]) -> u32 {
    number(header, 8)
}

/// The salts of a header of `-wal`.
pub fn salts_of(header: &[u8; WAL_HEADER]) -> [u32; 2] {
    [number(header, 16), number(header, 20)]
}

/// A number of SQLite's, which is big-endian.
fn number(bytes: &[u8], at: usize) -> u32 {
    let bytes = bytes.get(at..at + 4).unwrap_or_default();
    bytes.iter().fold(0, |number, &byte| number << 8 | u32::from(byte))
}

/// What a record says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordContext {
    /// The generation's number.
    pub generation: u64,
    /// The frame of its first entry.
    pub first_frame: u32,
    /// Where its commits end, and what ran them, in a record whose statements carry them.
    pub carried: Option<Carried>,
    /// The whole of it, in a record that a window starts with.
    pub start: Option<Generation>,
}

/// Of a record that has no frames, because the statements in its annotation carry its commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carried {
    /// Number of the last frame.
    pub last: u32,
    /// Its header, which has the checksum of all before it: whether `-wal` has what is carried.
    pub header: [u8; FRAME_HEADER],
    /// What ran the statements, and is to run them again.
    pub runner: Runner,
    /// What they made.
    pub made: Made,
}

impl Carried {
    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.last.to_le_bytes());
        bytes.extend(self.header);
        bytes.extend(self.runner.version.to_le_bytes());
        bytes.extend(self.runner.build.to_le_bytes());
        self.made.put(bytes);
    }

    fn take(bytes: &mut Bytes<'_>) -> Result<Self> {
        let (last, header) = (bytes.u32()?, bytes.take()?);
        let runner = Runner { version: bytes.u32()?, build: bytes.u64()? };
        let (made, rest) = Made::take(bytes.0).ok_or_else(damaged)?;
        bytes.0 = rest;
        Ok(Self { last, header, runner, made })
    }
}

impl RecordContext {
    /// The last frame of a record with so many; 0: there is none.
    pub fn last_frame(&self, count: u32) -> u32 {
        let own = self.first_frame.saturating_add(count).saturating_sub(1);
        self.carried.as_ref().map_or(own, |carried| carried.last)
    }

    /// As bytes: generation u64, first frame u32; of a record that carries the last frame u32 and
    /// its header, the runner's version u32 and build u64, and [`Made`]; with a window's start also
    /// the header of `-wal`, the first salt1 u32, the predecessor's u32, and the stamp's four
    /// numbers, u32 each.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(68);
        bytes.extend(self.generation.to_le_bytes());
        bytes.extend(self.first_frame.to_le_bytes());
        if let Some(carried) = &self.carried {
            carried.put(&mut bytes);
        }
        if let Some(start) = &self.start {
            bytes.extend(start.header);
            bytes.extend(start.first.to_le_bytes());
            bytes.extend(start.predecessor.to_le_bytes());
            start.stamp.put(&mut bytes);
        }
        bytes
    }

    /// As a record in a log of lines has it that no window starts with, in front of what it says of
    /// commits.
    pub fn encode_short(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(16);
        number::put(self.generation, &mut bytes);
        number::put(self.first_frame.into(), &mut bytes);
        bytes
    }

    /// And back, with what is behind it.
    pub fn decode_short(bytes: &[u8]) -> Result<(Self, &[u8])> {
        let (generation, rest) = number::take(bytes).ok_or_else(damaged)?;
        let (first_frame, rest) = number::take(rest).ok_or_else(damaged)?;
        let first_frame = u32::try_from(first_frame).map_err(|_| damaged())?;
        Ok((Self { generation, first_frame, carried: None, start: None }, rest))
    }

    /// Whether it is so in this record.
    pub fn is_short(record: &Record<'_>) -> bool {
        record.form == Form::Lines && !record.is_window_start() && !record.carries()
    }

    /// That of a record, which may say so.
    pub fn of(record: &Record<'_>) -> Result<Self> {
        let context = match Self::is_short(record) {
            true => Self::decode_short(record.context)?.0,
            false => Self::decode(record.context, record.carries())?,
        };
        match context.may_be_of(record) {
            true => Ok(context),
            false => Err(damaged()),
        }
    }

    /// Whether a record may say so of its frames (WAL-46).
    fn may_be_of(&self, record: &Record<'_>) -> bool {
        let page = record.unit_bytes;
        let is_its_size = self.start.is_none_or(|start| page_of(&start.header) == page);
        let fits = |frames: u32| u64::from(frames) * frame_size(page) <= FRAMES_MAX;
        is_page_size(page) && is_its_size && self.frames_of(record).is_some_and(fits)
    }

    /// How many frames a record is of.
    fn frames_of(&self, record: &Record<'_>) -> Option<u32> {
        let first = self.first_frame.checked_sub(1)?;
        match &self.carried {
            None => first.checked_add(record.count).map(|_| record.count),
            Some(carried) => carried.last.checked_sub(first).filter(|_| carried.last < u32::MAX),
        }
    }

    /// And back; `carries`: it is of a record whose statements carry its commits.
    pub fn decode(bytes: &[u8], carries: bool) -> Result<Self> {
        let mut rest = Bytes(bytes);
        let generation = rest.u64()?;
        let first_frame = rest.u32()?;
        let carried = if carries { Some(Carried::take(&mut rest)?) } else { None };
        let last = carried.as_ref().map(|carried| carried.last);
        if last.is_some_and(|last| last < first_frame || first_frame == 0) {
            return Err(damaged());
        }
        let start = match rest.0.is_empty() {
            true => None,
            false => Some(Generation {
                number: generation,
                header: rest.take()?,
                first: rest.u32()?,
                predecessor: rest.u32()?,
                stamp: match rest.0.is_empty() {
                    true => Stamp::default(),
                    false => rest.stamp()?,
                },
            }),
        };
        Ok(Self { generation, first_frame, carried, start })
    }
}

fn damaged() -> Error {
    Error::Corrupt("it says of frames or pages what no dash writes, or only a newer one".into())
}

struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (found, rest) = self.0.split_first_chunk().ok_or_else(damaged)?;
        self.0 = rest;
        Ok(*found)
    }

    fn u64(&mut self) -> Result<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn stamp(&mut self) -> Result<Stamp> {
        let [counter, sum] = [self.u32()?, self.u32()?];
        Ok(Stamp { counter, sum, page: self.u32()?, page_sum: self.u32()? })
    }
}

/// The salts as one word.
pub fn salts_word(header: &[u8; WAL_HEADER]) -> u64 {
    pack(salts_of(header))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generation(first: u32, own: u32, predecessor: u32) -> Generation {
        let mut header = [7; WAL_HEADER];
        header[16..20].copy_from_slice(&own.to_be_bytes());
        let stamp = Stamp { counter: 9, sum: 7, page: 5, page_sum: 3 };
        Generation { number: 3, header, first, predecessor, stamp }
    }

    #[test]
    fn older_headers_are_those_that_may_still_be_on_the_device() {
        let salt2 = generation(5, 9, 0).salts()[1];
        let of = |generation: Generation, salt1: u32, other: u32| {
            generation.relation([salt1, salt2 ^ other])
        };
        let plain = generation(5, 9, 0);
        assert_eq!(of(plain, 9, 0), Relation::Same);
        assert_eq!(of(plain, 9, 1), Relation::Newer);
        for salt1 in 5..9 {
            assert_eq!(of(plain, salt1, 1), Relation::Older);
        }
        for salt1 in [0, 4, 10, u32::MAX] {
            assert_eq!(of(plain, salt1, 1), Relation::Newer);
        }
        // The number goes round.
        let around = generation(u32::MAX - 1, 1, 0);
        assert_eq!(of(around, u32::MAX, 1), Relation::Older);
        assert_eq!(of(around, 0, 1), Relation::Older);
        assert_eq!(of(around, 2, 1), Relation::Newer);
        let named = generation(9, 9, 4000);
        assert_eq!(of(named, 4000, 1), Relation::Older);
        assert_eq!(of(named, 8, 1), Relation::Newer);
    }

    #[test]
    fn contexts_are_read_as_they_were_written() {
        let start = generation(5, 9, 4);
        let runner = Runner { version: 3_045_001, build: 0x1234_5678_9abc };
        let made = Made { pages: vec![1, 2, 9, 4_000_000_000], sum: [7, u32::MAX] };
        let carried = Carried { last: 79, header: [9; FRAME_HEADER], runner, made };
        let whole =
            |carried, start| RecordContext { generation: 3, first_frame: 77, carried, start };
        let carried = || Some(carried.clone());
        let both = whole(carried(), Some(start));
        for context in [whole(None, None), whole(None, Some(start)), whole(carried(), None), both] {
            let carries = context.carried.is_some();
            let decoded = RecordContext::decode(&context.encode(), carries);
            assert_eq!(decoded.expect("whole"), context);
        }
        let none = RecordContext { first_frame: 80, ..whole(carried(), None) };
        assert!(RecordContext::decode(&none.encode(), true).is_err(), "it ends before it begins");
        let left = LeftGeneration { salts: [5, 6], stamp: generation(1, 2, 0).stamp };
        let closed = HeadContext::Closed { flushes: 7, left: Some(left) };
        for context in [HeadContext::Nothing, closed, HeadContext::Void(start)] {
            assert_eq!(HeadContext::decode(&context.encode()).expect("whole"), context);
        }
        // As they were before there was a stamp.
        let context = whole(None, Some(start));
        let known = RecordContext::decode(&context.encode()[..52], false).expect("whole");
        let stamp = Stamp::default();
        assert_eq!(known, RecordContext { start: Some(Generation { stamp, ..start }), ..context });
        assert!(RecordContext::decode(&[1, 2, 3], false).is_err());
        assert!(HeadContext::decode(&[0; 12]).is_err());
    }
}
