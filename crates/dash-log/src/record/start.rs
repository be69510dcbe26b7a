//! What a record begins with, before its context: in full, or compact where it was made for memory,
//! which has no blocks to fill.

use super::layout;
use super::limits::{ANNOTATED, CARRYING, RECORD_MAX, WINDOW_START, size};
use crate::format::layout as common;
use crate::format::{
    Beginning, Form, Invalid, LINE, VERSION, checksum_but, put, u16_at, u32_at, u64_at,
};
use crate::head::COUNT_MAX;
use crate::number::{self, put as put_number, take as take_number};
use dash_engine::error::{Error, Result};

/// Begins a record.
pub const MAGIC: [u8; 8] = *b"\xFF\xFF\xFF\xFFDSHL";

/// Begins a compact one.
pub const COMPACT_MAGIC: [u8; 4] = *b"\xFFDSL";

/// Offsets in a compact record, before its numbers.
pub mod compact {
    /// CRC-32, this field zero, u32.
    pub const CHECKSUM: usize = 4;
    /// The log's id, u64.
    pub const ID: usize = 8;
    /// Flags and padding, u8.
    pub const FLAGS: usize = 16;
    /// Numbers: sequence, length of what follows them, entries, unit bytes, meta length, context
    /// length; where there is an annotation its length.
    pub const NUMBERS: usize = 17;
}

/// The largest block that any record is padded to, in bytes.
const BLOCK_MAX: usize = LINE << 7;

/// Flags of a compact record: it is padded to multiples of a line, doubled so often.
const DOUBLED: u8 = 0b0001_1100;
const DOUBLED_AT: u32 = DOUBLED.trailing_zeros();
const FLAGS: u16 = WINDOW_START | ANNOTATED | CARRYING;

/// What a record begins with.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Start {
    pub(super) id: u64,
    pub(super) sequence: u64,
    pub(super) flags: u16,
    pub(super) entries: u32,
    pub(super) unit_bytes: u32,
    pub(super) meta_len: u16,
    pub(super) context_len: u16,
    pub(super) annotation_len: u16,
}

/// A record that is whole: what it begins with, and the lengths of its parts.
pub(super) struct Whole {
    pub(super) start: Start,
    pub(super) form: Form,
    /// Where the context begins.
    pub(super) body: usize,
    /// Bytes without padding.
    pub(super) length: usize,
    /// Bytes on the disk.
    pub(super) padded: u32,
}

/// Where the checksum is.
pub(super) fn checksum_field(form: Form) -> usize {
    match form {
        Form::Sectors => common::CHECKSUM,
        Form::Lines => compact::CHECKSUM,
    }
}

impl Start {
    /// The numbers of a compact one before a `body` of so many bytes.
    fn numbers(&self, body: u64) -> impl Iterator<Item = u64> {
        let always = [
            self.sequence,
            body,
            self.entries.into(),
            self.unit_bytes.into(),
            self.meta_len.into(),
            self.context_len.into(),
        ];
        let annotation = (self.flags & ANNOTATED != 0).then_some(self.annotation_len.into());
        always.into_iter().chain(annotation)
    }

    /// Bytes that it takes before a `body` of so many.
    pub(super) fn len(&self, form: Form, body: usize) -> usize {
        match form {
            Form::Sectors => layout::CONTEXT,
            Form::Lines => {
                compact::NUMBERS + self.numbers(body as u64).map(number::len).sum::<usize>()
            }
        }
    }

    /// Makes `out` its bytes before a `body` of so many, without the checksum; `block`: what the
    /// record is padded to.
    pub(super) fn encode(
        &self,
        form: Form,
        body: usize,
        block: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let too_long = |_| Error::Refused("a record of the log would be too long".to_owned());
        let len = self.len(form, body);
        let length = u32::try_from(len + body).map_err(too_long)?;
        let padded = (len + body).next_multiple_of(block);
        if padded > RECORD_MAX {
            return Err(Error::Refused("a record of the log would be too long".to_owned()));
        }
        let padded = u32::try_from(padded).map_err(too_long)?;
        out.clear();
        out.try_reserve(len).map_err(|_| Error::OutOfMemory)?;
        match form {
            Form::Sectors => {
                out.resize(len, 0);
                put(out, 0, &MAGIC);
                put(out, common::VERSION, &VERSION.to_le_bytes());
                put(out, common::ID, &self.id.to_le_bytes());
                put(out, common::SEQUENCE, &self.sequence.to_le_bytes());
                put(out, layout::LENGTH, &length.to_le_bytes());
                put(out, layout::PADDED, &padded.to_le_bytes());
                put(out, layout::FLAGS, &self.flags.to_le_bytes());
                put(out, layout::META_LEN, &self.meta_len.to_le_bytes());
                put(out, layout::ENTRIES, &self.entries.to_le_bytes());
                put(out, layout::UNIT_BYTES, &self.unit_bytes.to_le_bytes());
                put(out, layout::CONTEXT_LEN, &self.context_len.to_le_bytes());
                put(out, layout::ANNOTATION_LEN, &self.annotation_len.to_le_bytes());
            }
            Form::Lines => {
                out.resize(compact::NUMBERS, 0);
                put(out, 0, &COMPACT_MAGIC);
                put(out, compact::ID, &self.id.to_le_bytes());
                let [flags, _] = (self.flags | doubled(block)?).to_le_bytes();
                put(out, compact::FLAGS, &[flags]);
                self.numbers(body as u64).for_each(|number| put_number(number, out));
            }
        }
        Ok(())
    }
}

/// What says in a compact record's flags that it is padded to a multiple of so many bytes.
fn doubled(block: usize) -> Result<u16> {
    let often = u16::try_from((block / LINE).trailing_zeros()).unwrap_or(u16::MAX);
    match block.checked_shr(u32::from(often)) == Some(LINE) && often <= 7 {
        true => Ok(often << DOUBLED_AT),
        false => Err(Error::Refused(format!("a log of lines has no blocks of {block} bytes"))),
    }
}

/// How bytes begin that may be a record of a log of this form.
pub(crate) fn beginning(bytes: &[u8], form: Form) -> Option<Beginning> {
    if form == Form::Lines && bytes.starts_with(&COMPACT_MAGIC) {
        let numbers = bytes.get(compact::NUMBERS..)?;
        return Some(Beginning {
            version: VERSION,
            checksum: u32_at(bytes, compact::CHECKSUM),
            id: u64_at(bytes, compact::ID),
            sequence: take_number(numbers)?.0,
        });
    }
    Beginning::of(bytes, MAGIC)
}

/// The record that `bytes` begin with, whose checksum is right.
pub(super) fn decode(bytes: &[u8]) -> std::result::Result<Whole, Invalid> {
    let whole = match bytes.starts_with(&COMPACT_MAGIC) {
        true => compact(bytes).ok_or(Invalid::Damaged)?,
        false => in_full(bytes)?,
    };
    let field = checksum_field(whole.form);
    let record = bytes.get(..whole.length).filter(|it| it.len() >= field + 4);
    let record = record.ok_or(Invalid::Damaged)?;
    if checksum_but(field, record) != u32_at(record, field) {
        return Err(Invalid::Damaged);
    }
    match whole.start.flags & !FLAGS {
        0 if whole.can_be() => Ok(whole),
        0 => Err(Invalid::Malformed),
        _ => Err(Invalid::Newer(VERSION)),
    }
}

impl Whole {
    /// Whether a log may get to its number, and a block is what it is padded to.
    fn can_be(&self) -> bool {
        let padding = size(self.padded).checked_sub(self.length);
        let fits = padding.is_some_and(|padding| padding < BLOCK_MAX);
        fits && size(self.padded).is_multiple_of(LINE) && self.start.sequence < COUNT_MAX
    }
}

/// Bytes that what may be a record claims to have, without padding; 0: it is none anyhow.
pub(crate) fn claimed(bytes: &[u8]) -> usize {
    let whole = match bytes.starts_with(&COMPACT_MAGIC) {
        true => compact(bytes),
        false => in_full(bytes).ok(),
    };
    whole.map_or(0, |whole| whole.length)
}

fn in_full(bytes: &[u8]) -> std::result::Result<Whole, Invalid> {
    let beginning = Beginning::of(bytes, MAGIC).ok_or(Invalid::Absent)?;
    beginning.is_of(VERSION..=VERSION)?;
    let length = size(u32_at(bytes, layout::LENGTH));
    if length < layout::CONTEXT || length > bytes.len().min(RECORD_MAX) {
        return Err(Invalid::Damaged);
    }
    let flags = u16_at(bytes, layout::FLAGS);
    let annotation = if flags & ANNOTATED == 0 { 0 } else { u16_at(bytes, layout::ANNOTATION_LEN) };
    let start = Start {
        id: beginning.id,
        sequence: beginning.sequence,
        flags,
        entries: u32_at(bytes, layout::ENTRIES),
        unit_bytes: u32_at(bytes, layout::UNIT_BYTES),
        meta_len: u16_at(bytes, layout::META_LEN),
        context_len: u16_at(bytes, layout::CONTEXT_LEN),
        annotation_len: annotation,
    };
    let padded = u32_at(bytes, layout::PADDED);
    Ok(Whole { start, form: Form::Sectors, body: layout::CONTEXT, length, padded })
}

/// `None`: it is longer than the bytes, or has numbers that none has.
fn compact(bytes: &[u8]) -> Option<Whole> {
    let flags = *bytes.get(compact::FLAGS)?;
    let mut rest = bytes.get(compact::NUMBERS..)?;
    let mut number = || {
        let (number, behind) = take_number(rest)?;
        rest = behind;
        Some(number)
    };
    let (sequence, body) = (number()?, usize::try_from(number()?).ok()?);
    let start = Start {
        id: u64_at(bytes, compact::ID),
        sequence,
        flags: u16::from(flags & !DOUBLED),
        entries: u32::try_from(number()?).ok()?,
        unit_bytes: u32::try_from(number()?).ok()?,
        meta_len: u16::try_from(number()?).ok()?,
        context_len: u16::try_from(number()?).ok()?,
        annotation_len: match u16::from(flags) & ANNOTATED {
            0 => 0,
            _ => u16::try_from(number()?).ok()?,
        },
    };
    let begin = bytes.len() - rest.len();
    let most = bytes.len().min(RECORD_MAX);
    let length = begin.checked_add(body).filter(|&length| length <= most)?;
    let block = LINE << ((flags & DOUBLED) >> DOUBLED_AT);
    let padded = u32::try_from(length.next_multiple_of(block)).ok()?;
    Some(Whole { start, form: Form::Lines, body: begin, length, padded })
}
