//! A record: what one flush makes durable. Here is how its bytes are laid out and read;
//! [`Builder`] writes them.
//!
//! It begins at a multiple of the block it was padded to, is contiguous, and counts only whole:
//! its checksum covers every byte of it but the padding (LOG-1).

use crate::format::{
    Beginning, Invalid, VERSION, checksum, layout as common, put, seal, u16_at, u32_at,
};

pub use builder::Builder;

mod builder;

/// Begins a record.
pub const MAGIC: [u8; 8] = *b"\xFF\xFF\xFF\xFFDSHL";

/// Flag: what the engine wrote before this record is durable elsewhere, and no entry from here on
/// builds on an image from before. Recovery reads from the newest such record on.
pub const WINDOW_START: u16 = 1;

/// Flag: an annotation follows the entries. An older dash takes the record for a newer one's.
pub const ANNOTATED: u16 = 2;

/// Longest annotation, in bytes.
pub const ANNOTATION_MAX: usize = u16::MAX as usize;

/// Offsets in the record, behind what it has in common with a head, and in an entry.
pub mod layout {
    /// Bytes of the record without padding, u32.
    pub const LENGTH: usize = 32;
    /// Bytes of the record on the disk, u32.
    pub const PADDED: usize = 36;
    /// Flags, u16.
    pub const FLAGS: usize = 40;
    /// Bytes of meta in each entry, u16.
    pub const META_LEN: usize = 42;
    /// Number of entries, u32.
    pub const ENTRIES: usize = 44;
    /// Bytes of an image, u32.
    pub const UNIT_BYTES: usize = 48;
    /// Length of the context, u16.
    pub const CONTEXT_LEN: usize = 52;
    /// Length of the annotation, u16.
    pub const ANNOTATION_LEN: usize = 54;
    /// The engine's context; the entries follow it.
    pub const CONTEXT: usize = 56;
    /// In an entry: number of the unit, u32.
    pub const UNIT: usize = 0;
    /// In an entry: what the difference is made of, u8.
    pub const BASE: usize = 4;
    /// In an entry: length of the difference, 1 to 5 bytes.
    pub const DIFFERENCE_LEN: usize = 5;
}

/// Base of a difference: an image of zeros.
const BASE_ZEROS: u8 = 0;
/// Base of a difference: the image that the entry before it of the same unit made.
const BASE_PREVIOUS: u8 = 1;

/// A record, decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// The log that it belongs to.
    pub id: u64,
    /// Its number; each is used once.
    pub sequence: u64,
    /// Its flags, all known.
    pub flags: u16,
    /// Bytes of it on the disk.
    pub padded: u32,
    /// Bytes of an image.
    pub unit_bytes: u32,
    /// Number of entries.
    pub count: u32,
    /// What the engine says of it.
    pub context: &'a [u8],
    /// What is said beside the entries, which recovery ignores (LOG-14). `None`: nothing is; empty:
    /// there was something, and no room for it.
    pub annotation: Option<&'a [u8]>,
    /// All of it, without padding.
    bytes: &'a [u8],
    meta_len: usize,
}

/// An image, as a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Which unit, such as a page's number.
    pub unit: u32,
    /// What the engine says of it.
    pub meta: &'a [u8],
    /// Whether the difference is to the unit's image before it, in this record or an earlier one of
    /// the window; to zeros otherwise.
    pub based: bool,
    /// See [`difference`](crate::difference).
    pub difference: &'a [u8],
}

impl<'a> Record<'a> {
    /// The record that `bytes` begin with, whatever is behind it.
    ///
    /// # Errors
    ///
    /// A newer version is told whatever the checksum says, as it may be another one.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Invalid> {
        let beginning = Beginning::of(bytes, MAGIC).ok_or(Invalid::Absent)?;
        beginning.is_of(VERSION)?;
        let length = size(u32_at(bytes, layout::LENGTH));
        let bytes = bytes.get(..length).filter(|_| length >= layout::CONTEXT);
        let bytes = bytes.ok_or(Invalid::Damaged)?;
        if checksum(bytes) != beginning.checksum {
            return Err(Invalid::Damaged);
        }
        let flags = u16_at(bytes, layout::FLAGS);
        if flags & !(WINDOW_START | ANNOTATED) != 0 {
            return Err(Invalid::Newer(VERSION));
        }
        let context_len = usize::from(u16_at(bytes, layout::CONTEXT_LEN));
        let context = bytes.get(layout::CONTEXT..layout::CONTEXT + context_len);
        let annotation = match flags & ANNOTATED {
            0 => None,
            _ => {
                let start = length.checked_sub(usize::from(u16_at(bytes, layout::ANNOTATION_LEN)));
                Some(start.and_then(|start| bytes.get(start..)).ok_or(Invalid::Malformed)?)
            }
        };
        let record = Self {
            id: beginning.id,
            sequence: beginning.sequence,
            flags,
            padded: u32_at(bytes, layout::PADDED),
            unit_bytes: u32_at(bytes, layout::UNIT_BYTES),
            count: u32_at(bytes, layout::ENTRIES),
            context: context.ok_or(Invalid::Malformed)?,
            annotation,
            bytes,
            meta_len: usize::from(u16_at(bytes, layout::META_LEN)),
        };
        if record.is_well_formed() { Ok(record) } else { Err(Invalid::Malformed) }
    }

    /// Bytes of the record, without padding.
    #[must_use]
    pub fn length(&self) -> usize {
        self.bytes.len()
    }

    /// Whether recovery may begin here.
    #[must_use]
    pub fn is_window_start(&self) -> bool {
        self.flags & WINDOW_START != 0
    }

    /// Its entries, in the order in which they were pushed.
    #[must_use]
    pub fn entries(&self) -> Entries<'a> {
        let end = self.length() - self.annotation.map_or(0, <[u8]>::len);
        let rest = self.bytes.get(layout::CONTEXT + self.context.len()..end).unwrap_or(&[]);
        Entries { rest, left: self.count, meta_len: self.meta_len }
    }

    /// Whether the entries are as many as it says, and end where it does.
    fn is_well_formed(&self) -> bool {
        let mut entries = self.entries();
        while entries.left > 0 {
            if entries.next().is_none() {
                return false;
            }
        }
        entries.rest.is_empty() && size(self.padded) >= self.length()
    }
}

/// The entries of a record.
#[derive(Debug, Clone)]
pub struct Entries<'a> {
    rest: &'a [u8],
    left: u32,
    meta_len: usize,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        self.left = self.left.checked_sub(1)?;
        let (fixed, rest) = self.rest.split_at_checked(layout::DIFFERENCE_LEN)?;
        let based = match fixed[layout::BASE] {
            BASE_ZEROS => false,
            BASE_PREVIOUS => true,
            _ => return None,
        };
        let (len, rest) = take_length(rest)?;
        let (meta, rest) = rest.split_at_checked(self.meta_len)?;
        let (difference, rest) = rest.split_at_checked(len)?;
        self.rest = rest;
        Some(Entry { unit: u32_at(fixed, layout::UNIT), meta, based, difference })
    }
}

/// Appends a length, seven bits a byte, the lowest first (LEB128).
fn put_length(mut len: u32, out: &mut Vec<u8>) {
    while len >= 0x80 {
        out.push(len.to_le_bytes()[0] | 0x80);
        len >>= 7;
    }
    out.push(len.to_le_bytes()[0]);
}

/// The length that `bytes` begin with, and what is behind it.
fn take_length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut len: u32 = 0;
    for (place, &byte) in bytes.iter().enumerate().take(5) {
        let bits = u32::from(byte & 0x7f);
        let shift = 7 * u32::try_from(place).ok()?;
        if bits << shift >> shift != bits {
            return None;
        }
        len |= bits << shift;
        if byte & 0x80 == 0 {
            return Some((size(len), &bytes[place + 1..]));
        }
    }
    None
}

/// A number of bytes in memory.
fn size(len: u32) -> usize {
    usize::try_from(len).unwrap_or(usize::MAX)
}
