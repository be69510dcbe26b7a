//! One file's bytes and length: what readers see, what is durable, and what may have survived.
//!
//! Upholds rules 2 to 5. Invariant: a unit without a pending entry has the same bytes in the cache
//! and on the device; and the cache is zeros behind the length.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use crate::mix;
use crate::page::{PAGE, Page, Pages, spans};
use crate::survivors::{Asking, Question};

mod lines;

pub(crate) use lines::Begun;

/// What is in a file.
#[derive(Clone)]
pub(crate) struct Data {
    unit: u64,
    cache: Pages,
    len: u64,
    durable: Pages,
    /// The durable length and those since, each once.
    lengths: Vec<u64>,
    length_dirty: bool,
    pending: BTreeMap<u64, Pending>,
    /// Space is reserved up to here.
    reserved: u64,
    /// What it was before a cut that survives as a whole or not at all, and is not durable.
    before: Option<Box<Self>>,
    /// Whether the next flush covers that.
    cut_dirty: bool,
    /// Counts what was written.
    writes: u64,
}

/// A unit that a power loss may leave with one of several values.
#[derive(Clone)]
struct Pending {
    /// The values other than the durable one, each in the page it was once part of.
    values: Vec<Arc<Page>>,
    /// Which of the durable value (0) and the others is in the cache.
    newest: usize,
    /// Whether the next flush covers it.
    dirty: bool,
    /// Which write was its last one.
    write: u64,
}

impl Data {
    /// An empty file on a device that tears units of so many bytes.
    pub(crate) fn new(unit: u64) -> Self {
        Self {
            unit,
            cache: Pages::default(),
            len: 0,
            durable: Pages::default(),
            lengths: vec![0],
            length_dirty: false,
            pending: BTreeMap::new(),
            reserved: 0,
            before: None,
            cut_dirty: false,
            writes: 0,
        }
    }

    /// In what units it tears.
    pub(crate) fn unit(&self) -> u64 {
        self.unit
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Reads from the cache; returns how many bytes there were.
    pub(crate) fn read(&self, buffer: &mut [u8], offset: u64) -> usize {
        let there = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let len = buffer.len().min(there);
        self.cache.read(&mut buffer[..len], offset);
        len
    }

    /// Writes into the cache.
    pub(crate) fn write(&mut self, data: &[u8], offset: u64) {
        for (place, part) in spans(offset, data.len()) {
            let end = place + part.len() as u64;
            self.cache.write_in_page(&data[part], place);
            for unit in place / self.unit..end.div_ceil(self.unit) {
                self.note(unit);
            }
        }
        self.reach(offset + data.len() as u64);
    }

    /// Cuts or extends.
    pub(crate) fn set_len(&mut self, len: u64) {
        if len < self.len {
            let first = len / PAGE;
            let mut pages: Vec<u64> = self.cache.numbers(first).collect();
            pages.extend(
                self.pending.range(len / self.unit..).map(|(unit, _)| unit * self.unit / PAGE),
            );
            self.cache.cut(len);
            pages.dedup();
            for page in pages {
                let start = (page * PAGE).max(len);
                for unit in start / self.unit..(page + 1) * PAGE / self.unit {
                    self.note(unit);
                }
            }
            self.reserved = self.reserved.min(len);
        }
        self.change_len(len);
    }

    /// Cuts, where file systems do that as a whole: what a power loss leaves is what it would have
    /// left before, or has this length, with none of what was cut off.
    pub(crate) fn cut_whole(&mut self, len: u64) {
        self.before = Some(Box::new(self.clone()));
        self.cut_dirty = true;
        self.cache.cut(len);
        self.durable.cut(len);
        self.pending.split_off(&len.div_ceil(self.unit));
        if !len.is_multiple_of(self.unit) {
            self.note(len / self.unit);
        }
        self.reserved = self.reserved.min(len);
        (self.len, self.lengths, self.length_dirty) = (len, vec![len], false);
    }

    /// Reserves space.
    pub(crate) fn make_room(&mut self, len: u64) {
        self.reserved = self.reserved.max(len);
    }

    /// Extends, with space reserved.
    pub(crate) fn allocate(&mut self, len: u64) {
        self.make_room(len);
        if len > self.len {
            self.change_len(len);
        }
    }

    /// Makes zeros of a range, with space reserved; extends.
    pub(crate) fn initialize(&mut self, range: &Range<u64>) {
        let units = range.start / self.unit..range.end.div_ceil(self.unit);
        let cached = self.cache.numbers(range.start / PAGE);
        let pages = cached.take_while(|&number| number < range.end.div_ceil(PAGE));
        let pending = self.pending.range(units).map(|(unit, _)| unit * self.unit / PAGE);
        // What is neither is zeros, on the device, too.
        let pages: BTreeSet<u64> = pages.chain(pending).collect();
        for page in pages {
            let (start, end) = ((page * PAGE).max(range.start), ((page + 1) * PAGE).min(range.end));
            self.cache.zero_in_page(start..end);
            for unit in start / self.unit..end.div_ceil(self.unit) {
                self.note(unit);
            }
        }
        self.reserved = self.reserved.max(range.end);
        self.reach(range.end);
    }

    /// Something was written that ends here.
    fn reach(&mut self, end: u64) {
        if end > self.len {
            self.change_len(end);
        } else if self.lengths.first().is_some_and(|&durable| end > durable) {
            self.length_dirty = self.lengths.len() > 1;
        }
    }

    /// Pages of space in use; `with` a write of so many bytes at an offset.
    pub(crate) fn used(&self, with: Option<(u64, u64)>) -> u64 {
        let reserved = self.reserved.div_ceil(PAGE);
        let (first, end) = with.map_or((0, 0), |(offset, len)| {
            ((offset / PAGE).max(reserved), (offset + len).div_ceil(PAGE).max(reserved))
        });
        let written = self.cache.numbers(reserved);
        let others = written.filter(|number| !(first..end).contains(number)).count();
        reserved + others as u64 + end.saturating_sub(first)
    }

    fn change_len(&mut self, len: u64) {
        self.len = len;
        if !self.lengths.contains(&len) {
            self.lengths.push(len);
        }
        self.length_dirty = self.lengths.len() > 1;
    }

    /// Compares a unit of the cache with what was there before.
    fn note(&mut self, unit: u64) {
        self.writes += 1;
        let offset = unit * self.unit;
        let size = usize::try_from(self.unit).unwrap_or_default();
        let page = self.cache.page(offset / PAGE);
        let value = page.slice(offset, size);
        let is_durable = value == self.durable.page(offset / PAGE).slice(offset, size);
        match self.pending.entry(unit) {
            Entry::Vacant(_) if is_durable => {}
            Entry::Vacant(entry) => {
                let values = vec![Arc::clone(page)];
                entry.insert(Pending { values, newest: 1, dirty: true, write: self.writes });
            }
            Entry::Occupied(mut entry) => {
                let pending = entry.get_mut();
                pending.dirty = true;
                pending.write = self.writes;
                pending.newest = if is_durable {
                    0
                } else if let Some(found) =
                    pending.values.iter().position(|old| old.slice(offset, size) == value)
                {
                    found + 1
                } else {
                    pending.values.push(Arc::clone(page));
                    pending.values.len()
                };
            }
        }
    }

    /// Whether a flush would have anything to do.
    pub(crate) fn is_dirty(&self) -> bool {
        self.length_dirty || self.cut_dirty || self.pending.values().any(|pending| pending.dirty)
    }

    /// Makes durable what is dirty.
    pub(crate) fn flush(&mut self) {
        let size = usize::try_from(self.unit).unwrap_or_default();
        let mut pending = std::mem::take(&mut self.pending);
        let mut shared = None;
        for (&unit, _) in pending.iter().filter(|(_, pending)| pending.dirty) {
            let offset = unit * self.unit;
            let number = offset / PAGE;
            if shared == Some(number) {
                continue;
            }
            let units = number * PAGE / self.unit..(number + 1) * PAGE / self.unit;
            if pending.range(units).all(|(_, pending)| pending.dirty) {
                self.durable.share(number, self.cache.get(number));
                shared = Some(number);
            } else {
                let value = self.cache.page(number).slice(offset, size);
                self.durable.write_in_page(value, offset);
            }
        }
        pending.retain(|_, pending| !pending.dirty);
        self.pending = pending;
        if std::mem::take(&mut self.cut_dirty) {
            self.before = None;
        }
        if self.length_dirty {
            self.lengths = vec![self.len];
            self.length_dirty = false;
        }
    }

    /// Makes durable what is dirty of a range that was just written, and a length that has it.
    pub(crate) fn flush_range(&mut self, range: &Range<u64>) {
        let size = usize::try_from(self.unit).unwrap_or_default();
        for unit in self.dirty_units(range) {
            let offset = unit * self.unit;
            let value = self.cache.page(offset / PAGE).slice(offset, size);
            self.durable.write_in_page(value, offset);
            self.pending.remove(&unit);
        }
        if self.length_dirty {
            let end = range.end.min(self.len);
            self.lengths.retain(|&len| len >= end);
            self.length_dirty = self.lengths.len() > 1;
        }
        if std::mem::take(&mut self.cut_dirty) {
            self.before = None;
        }
    }

    /// The same, failed: clean, and as uncertain as before.
    pub(crate) fn lose_range(&mut self, range: &Range<u64>) {
        for unit in self.dirty_units(range) {
            if let Some(pending) = self.pending.get_mut(&unit) {
                pending.dirty = false;
            }
        }
        let needed = self.lengths.first().is_some_and(|&durable| durable < range.end);
        self.length_dirty &= !needed;
    }

    fn dirty_units(&self, range: &Range<u64>) -> Vec<u64> {
        let units = range.start / self.unit..range.end.div_ceil(self.unit);
        let dirty = self.pending.range(units).filter(|(_, pending)| pending.dirty);
        dirty.map(|(&unit, _)| unit).collect()
    }

    /// A flush that failed: clean, and as uncertain as before.
    pub(crate) fn lose_flush(&mut self) {
        self.pending.values_mut().for_each(|pending| pending.dirty = false);
        // A cut is in a journal of the file system, which the next flush writes as well.
        self.length_dirty = false;
    }

    /// How many combinations of length and units a power loss may leave.
    pub(crate) fn survivor_count(&self) -> u128 {
        let counts = self.lengths.iter().map(|&len| self.ways(len));
        let before = self.before.as_ref().map_or(0, |before| before.survivor_count());
        counts.fold(before, u128::saturating_add)
    }

    /// Whether nothing of it can be lost.
    pub(crate) fn is_flushed(&self) -> bool {
        self.pending.is_empty() && self.lengths.len() == 1 && self.before.is_none()
    }

    /// The file after a power loss.
    pub(crate) fn survive(&self, inode: u64, asking: &mut Asking<'_>) -> Self {
        if let Some(before) = &self.before
            && asking.ask(Question::Cut { inode }, 2, 1) == 0
        {
            return before.survive(inode, asking);
        }
        let newest = self.lengths.iter().position(|&len| len == self.len).unwrap_or_default();
        let chosen = asking.ask(Question::Length { inode }, self.lengths.len(), newest);
        let len = self.lengths.get(chosen).copied().unwrap_or(self.len);
        let size = usize::try_from(self.unit).unwrap_or_default();
        let mut pages = self.durable.clone();
        for (unit, value) in self.choose(inode, len, asking) {
            let offset = unit * self.unit;
            pages.write_in_page(value.slice(offset, size), offset);
        }
        pages.cut(len);
        let reserved = self.reserved.min(len);
        let durable = pages.clone();
        Self { cache: pages, len, durable, lengths: vec![len], reserved, ..Self::new(self.unit) }
    }

    /// A hash of everything a later read or power loss can tell.
    pub(crate) fn hash(&self) -> u64 {
        let mut hash = mix(self.cache.hash() ^ self.len);
        if self.is_flushed() {
            return hash;
        }
        hash = self.before.iter().fold(hash, |hash, before| mix(hash ^ before.hash()));
        hash = mix(hash ^ self.durable.hash() ^ u64::from(self.length_dirty));
        hash = self.lengths.iter().fold(hash, |hash, len| mix(hash ^ len));
        let size = usize::try_from(self.unit).unwrap_or_default();
        for (unit, pending) in &self.pending {
            hash = mix(hash ^ unit ^ (u64::from(pending.dirty) << 63));
            for value in &pending.values {
                let bytes = value.slice(unit * self.unit, size).as_chunks::<8>().0;
                hash = bytes.iter().fold(hash, |hash, word| mix(hash ^ u64::from_le_bytes(*word)));
            }
        }
        hash
    }
}
