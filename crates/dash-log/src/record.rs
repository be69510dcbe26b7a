//! A record: what one flush makes durable. Here is how its bytes are laid out and read;
//! [`Builder`] writes them.
//!
//! It begins at a multiple of the block it was padded to, is contiguous, and counts only whole:
//! its checksum covers every byte of it but the padding (LOG-1).

use crate::format::{Form, Invalid, u32_at};
use crate::number::{put as put_number, take as take_number};

pub use builder::Builder;
pub use start::{COMPACT_MAGIC, MAGIC, compact};
pub(crate) use start::{beginning, claimed};

mod builder;
pub mod layout;
mod limits;
mod start;

pub use limits::{ANNOTATED, ANNOTATION_MAX, CARRYING, RECORD_MAX, WINDOW_START};

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
    /// What it was made for: of [`Form::Lines`] it is compact.
    pub form: Form,
    /// Bytes of it on the disk.
    pub padded: u32,
    /// Bytes of an image.
    pub unit_bytes: u32,
    /// Number of entries.
    pub count: u32,
    /// What the engine says of it.
    pub context: &'a [u8],
    /// What is said beside the entries, which recovery ignores (LOG-14) unless it carries. `None`:
    /// nothing is; empty: there was something, and no room for it.
    pub annotation: Option<&'a [u8]>,
    entries: &'a [u8],
    length: usize,
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
        let whole = start::decode(bytes)?;
        let start = whole.start;
        let body = bytes.get(whole.body..whole.length).ok_or(Invalid::Malformed)?;
        let parts = body.split_at_checked(start.context_len.into());
        let (context, behind) = parts.ok_or(Invalid::Malformed)?;
        let entries_len = behind.len().checked_sub(start.annotation_len.into());
        let (entries, annotation) = behind.split_at(entries_len.ok_or(Invalid::Malformed)?);
        let record = Self {
            id: start.id,
            sequence: start.sequence,
            flags: start.flags,
            form: whole.form,
            padded: whole.padded,
            unit_bytes: start.unit_bytes,
            count: start.entries,
            context,
            annotation: (start.flags & ANNOTATED != 0).then_some(annotation),
            entries,
            length: whole.length,
            meta_len: start.meta_len.into(),
        };
        if record.is_well_formed() { Ok(record) } else { Err(Invalid::Malformed) }
    }

    /// Bytes of the record, without padding.
    #[must_use]
    pub fn length(&self) -> usize {
        self.length
    }

    /// Whether recovery may begin here.
    #[must_use]
    pub fn is_window_start(&self) -> bool {
        self.flags & WINDOW_START != 0
    }

    /// Whether its annotation counts.
    #[must_use]
    pub fn carries(&self) -> bool {
        self.flags & CARRYING != 0
    }

    /// Its entries, in the order in which they were pushed.
    #[must_use]
    pub fn entries(&self) -> Entries<'a> {
        let Self { form, entries: rest, count: left, meta_len, .. } = *self;
        Entries { form, rest, left, meta_len }
    }

    /// Whether the entries are as many as it says, and end where it does.
    fn is_well_formed(&self) -> bool {
        let mut entries = self.entries();
        while entries.left > 0 {
            if entries.next().is_none() {
                return false;
            }
        }
        let says = self.annotation.is_some_and(|annotation| !annotation.is_empty());
        let carries_alone = !self.carries() || self.count == 0 && says;
        carries_alone && entries.rest.is_empty()
    }
}

/// The entries of a record.
#[derive(Debug, Clone)]
pub struct Entries<'a> {
    form: Form,
    rest: &'a [u8],
    left: u32,
    meta_len: usize,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        self.left = self.left.checked_sub(1)?;
        let (unit, based, len, rest) = match self.form {
            Form::Sectors => entry_in_full(self.rest)?,
            Form::Lines => compact_entry(self.rest)?,
        };
        let (meta, rest) = rest.split_at_checked(self.meta_len)?;
        let (difference, rest) = rest.split_at_checked(len)?;
        self.rest = rest;
        Some(Entry { unit, meta, based, difference })
    }
}

/// Unit, base, length of the difference, and what is behind these.
type EntryStart<'a> = (u32, bool, usize, &'a [u8]);

fn entry_in_full(bytes: &[u8]) -> Option<EntryStart<'_>> {
    let (fixed, rest) = bytes.split_at_checked(layout::DIFFERENCE_LEN)?;
    let based = match fixed[layout::BASE] {
        BASE_ZEROS => false,
        BASE_PREVIOUS => true,
        _ => return None,
    };
    let (len, rest) = take_number(rest)?;
    Some((u32_at(fixed, layout::UNIT), based, usize::try_from(len).ok()?, rest))
}

fn compact_entry(bytes: &[u8]) -> Option<EntryStart<'_>> {
    let (unit, rest) = take_number(bytes)?;
    let (len, rest) = take_number(rest)?;
    let based = len & 1 == u64::from(BASE_PREVIOUS);
    Some((u32::try_from(unit).ok()?, based, usize::try_from(len >> 1).ok()?, rest))
}

/// Appends what an entry begins with, before its meta, as `form` has it.
fn put_entry_start(form: Form, unit: u32, based: bool, out: &mut Vec<u8>) {
    match form {
        Form::Sectors => {
            out.extend_from_slice(&unit.to_le_bytes());
            out.push(if based { BASE_PREVIOUS } else { BASE_ZEROS });
        }
        Form::Lines => put_number(unit.into(), out),
    }
}

/// Appends the length of its difference, which stands behind that.
fn put_difference_len(form: Form, len: u32, based: bool, out: &mut Vec<u8>) {
    match form {
        Form::Sectors => put_number(len.into(), out),
        Form::Lines => put_number(u64::from(len) << 1 | u64::from(based), out),
    }
}
