//! Builds records, one after the other in the same memory.

use super::start::{Start, checksum_field};
use super::{ANNOTATED, put_difference_len, put_entry_start};
use crate::difference::{Copies, Differ, longest};
use crate::format::{Form, checksum_but, put};
use dash_engine::error::{Error, Result};
use dash_storage::Blocks;

/// Images that are kept for the case that copies make the record a block shorter, in bytes. Of a
/// record with more changes a block is a small part.
const KEPT_MOST: usize = 256 << 10;

/// Bytes of an entry beside its meta and its difference, at most.
const ENTRY_MOST: usize = 10;

/// The least that is asked for at once to write from.
const BLOCKS_LEAST: usize = 16 << 10;

/// Builds a record: [`begin`](Self::begin), [`push`](Self::push) for each image,
/// [`finish`](Self::finish).
///
/// Differences are made of runs. Where copies may save a block, and only there, they are looked
/// for when the record is finished; in a compact record they are looked for at once, everywhere.
pub struct Builder {
    form: Form,
    /// What the record begins with.
    start: Start,
    /// The same, in bytes.
    begins: Vec<u8>,
    /// What follows: context, entries, annotation.
    bytes: Vec<u8>,
    /// The record as it is written.
    blocks: Option<Blocks>,
    differ: Differ,
    /// The difference that is being made.
    difference: Vec<u8>,
    /// Entries that copies may make shorter, in order.
    movable: Vec<Movable>,
    /// Their images: the old one, then the new one.
    images: Vec<u8>,
    /// Bytes that copies may save, at the most.
    hope: usize,
    unit_bytes: usize,
}

/// An entry that copies may make shorter.
struct Movable {
    /// Where the length of its difference stands; the meta and the difference follow.
    length_at: usize,
    /// Where its difference stands.
    difference_at: usize,
    /// Where it ends.
    end: usize,
}

fn too_long() -> Error {
    Error::Refused("a record of the log would be too long".to_owned())
}

fn reserve<T>(vec: &mut Vec<T>, more: usize) -> Result<()> {
    vec.try_reserve(more).map_err(|_| Error::OutOfMemory)
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    /// One that has no memory yet, for a log of sectors.
    #[must_use]
    pub fn new() -> Self {
        Self {
            form: Form::Sectors,
            start: Start::default(),
            begins: Vec::new(),
            bytes: Vec::new(),
            blocks: None,
            differ: Differ::default(),
            difference: Vec::new(),
            movable: Vec::new(),
            images: Vec::new(),
            hope: 0,
            unit_bytes: 0,
        }
    }

    /// From here on it begins records as a log of this form has them.
    pub fn set_form(&mut self, form: Form) {
        self.form = form;
    }

    /// Begins a record, whatever was begun before. Images will have `unit_bytes`, entries
    /// `meta_len` bytes of meta.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`]; [`Error::Refused`] for a context of 64 KiB or more.
    pub fn begin(
        &mut self,
        id: u64,
        sequence: u64,
        flags: u16,
        unit_bytes: u32,
        meta_len: u16,
        context: &[u8],
    ) -> Result<()> {
        let context_len = u16::try_from(context.len()).map_err(|_| too_long())?;
        self.bytes.clear();
        self.movable.clear();
        self.images.clear();
        self.hope = 0;
        self.unit_bytes = super::limits::size(unit_bytes);
        self.start =
            Start { id, sequence, flags, unit_bytes, meta_len, context_len, ..Start::default() };
        reserve(&mut self.bytes, context.len())?;
        self.bytes.extend_from_slice(context);
        Ok(())
    }

    /// Adds the image `new` of a unit, as a difference to `old`: the image of the entry before it
    /// of this unit, in this record or an earlier one of the window. `None`: there is none.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], with the record as it was; [`Error::Refused`] for lengths that are
    /// not those of [`begin`](Self::begin).
    pub fn push(&mut self, unit: u32, meta: &[u8], old: Option<&[u8]>, new: &[u8]) -> Result<()> {
        let as_begun = |image: &[u8]| image.len() == self.unit_bytes;
        if !as_begun(new) || !old.is_none_or(as_begun) || meta.len() != self.meta_len() {
            return Err(Error::Refused("an image of another length for the log".to_owned()));
        }
        self.difference.clear();
        let movable = match self.form {
            Form::Sectors => {
                self.differ.encode_runs(old.unwrap_or(&[]), new, &mut self.difference)?
            }
            // Each byte counts, and there is nothing to be made shorter in the end.
            Form::Lines => {
                self.differ.encode(old, new, Copies::Everywhere, &mut self.difference)?;
                0
            }
        };
        let len = u32::try_from(self.difference.len()).map_err(|_| too_long())?;
        reserve(&mut self.bytes, ENTRY_MOST + meta.len() + self.difference.len())?;
        put_entry_start(self.form, unit, old.is_some(), &mut self.bytes);
        let length_at = self.bytes.len();
        put_difference_len(self.form, len, old.is_some(), &mut self.bytes);
        self.bytes.extend_from_slice(meta);
        let difference_at = self.bytes.len();
        self.bytes.extend_from_slice(&self.difference);
        self.start.entries += 1;
        if let Some(old) = old
            && movable > 0
        {
            let end = self.bytes.len();
            self.keep(Movable { length_at, difference_at, end }, movable, old, new);
        }
        Ok(())
    }

    /// Keeps what copies may be looked for in. Without memory for that there will be none.
    fn keep(&mut self, movable: Movable, hope: usize, old: &[u8], new: &[u8]) {
        let images = old.len() + new.len();
        if self.images.len() + images <= KEPT_MOST
            && self.images.try_reserve(images).is_ok()
            && self.movable.try_reserve(1).is_ok()
        {
            self.images.extend_from_slice(old);
            self.images.extend_from_slice(new);
            self.movable.push(movable);
            self.hope += hope;
        }
    }

    /// Bytes of the record so far, without padding.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len_with(self.bytes.len())
    }

    /// The same, were what follows the beginning so long.
    fn len_with(&self, body: usize) -> usize {
        self.start.len(self.form, body) + body
    }

    fn meta_len(&self) -> usize {
        self.start.meta_len.into()
    }

    /// Whether no image was pushed yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start.entries == 0
    }

    /// Whether one more image might make the record longer than `limit` bytes. A record without an
    /// image is never full.
    #[must_use]
    pub fn is_full(&self, limit: usize) -> bool {
        let next = ENTRY_MOST + self.meta_len() + longest(self.unit_bytes);
        !self.is_empty() && self.len() + next > limit
    }

    /// Bytes that the last block of the record has free: so much may be said in an annotation for
    /// nothing (LOG-15). No image is pushed from here on.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`]; [`Error::Refused`] for a record of 4 GiB.
    pub fn slack(&mut self, block: u32) -> Result<usize> {
        let block = super::limits::size(block).max(1);
        self.shorten(block)?;
        Ok(self.len().next_multiple_of(block) - self.len())
    }

    /// Says something beside the entries, once a record. What is longer than
    /// [`slack`](Self::slack) takes blocks of its own.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], with the record as it was; [`Error::Refused`] for more than
    /// [`ANNOTATION_MAX`](super::ANNOTATION_MAX) bytes.
    pub fn annotate(&mut self, annotation: &[u8]) -> Result<()> {
        let len = u16::try_from(annotation.len()).map_err(|_| too_long())?;
        reserve(&mut self.bytes, annotation.len())?;
        self.bytes.extend_from_slice(annotation);
        self.start.flags |= ANNOTATED;
        self.start.annotation_len = len;
        self.hope = 0;
        Ok(())
    }

    /// The record as it is written: with its checksum, padded with zeros to a multiple of `block`
    /// bytes, in memory that is aligned for direct I/O.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`]; [`Error::Refused`] for a record of 4 GiB.
    pub fn finish(&mut self, block: u32) -> Result<&[u8]> {
        let block = super::limits::size(block).max(1);
        self.shorten(block)?;
        let length = self.len();
        let padded = length.next_multiple_of(block);
        self.start.encode(self.form, self.bytes.len(), block, &mut self.begins)?;
        if self.blocks.as_ref().is_none_or(|blocks| blocks.len() < padded) {
            self.blocks = None;
            let room = padded.max(BLOCKS_LEAST).checked_next_power_of_two().unwrap_or(padded);
            self.blocks = Some(Blocks::try_new(room).map_err(|_| Error::OutOfMemory)?);
        }
        let blocks = self.blocks.as_mut().ok_or(Error::OutOfMemory)?;
        let (record, padding) = blocks[..padded].split_at_mut(length);
        let (begins, body) = record.split_at_mut(self.begins.len());
        begins.copy_from_slice(&self.begins);
        body.copy_from_slice(&self.bytes);
        padding.fill(0);
        let field = checksum_field(self.form);
        let sum = checksum_but(field, record);
        put(record, field, &sum.to_le_bytes());
        Ok(&blocks[..padded])
    }

    /// Has the movable entries copy, if that saves a block.
    fn shorten(&mut self, block: usize) -> Result<()> {
        let length = self.len();
        // Bytes in the last block, and whether it isn't the only one.
        let over = (length - 1) % block + 1;
        if over == length || std::mem::take(&mut self.hope) < over {
            return Ok(());
        }
        let mut shorter = Vec::new();
        reserve(&mut shorter, self.bytes.len())?;
        let mut from = 0;
        let pairs = self.images.chunks_exact(2 * self.unit_bytes);
        for (movable, images) in self.movable.iter().zip(pairs) {
            let (old, new) = images.split_at(self.unit_bytes);
            self.difference.clear();
            self.differ.encode(Some(old), new, Copies::WhereTheyPay, &mut self.difference)?;
            let len = u32::try_from(self.difference.len()).map_err(|_| too_long())?;
            shorter.extend_from_slice(&self.bytes[from..movable.length_at]);
            put_difference_len(self.form, len, true, &mut shorter);
            let meta_at = movable.difference_at - self.meta_len();
            shorter.extend_from_slice(&self.bytes[meta_at..movable.difference_at]);
            shorter.extend_from_slice(&self.difference);
            from = movable.end;
        }
        shorter.extend_from_slice(&self.bytes[from..]);
        if self.len_with(shorter.len()).next_multiple_of(block) < length.next_multiple_of(block) {
            self.bytes = shorter;
            self.movable.clear();
            self.images.clear();
        }
        Ok(())
    }
}
