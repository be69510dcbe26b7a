//! A medium of byte-addressable memory: what is written is stored, and durable once its cache
//! lines were written back and fenced (LOG-13).
//!
//! The mapping is of the file as it was; it is made anew when a write goes behind its end, as the
//! log has grown. Reading needs none: the page cache is the same memory.

use crate::format::LINE;
use crate::medium::Medium;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::ranges::RangeSet;
use dash_storage::{File, Persistence, PersistentMemory, WORD};
use std::io::ErrorKind;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A mapping that is stored to.
pub struct Mapped<F: File> {
    file: Arc<F>,
    mapping: Mutex<Mapping<F>>,
    persistence: Persistence,
    name: String,
}

struct Mapping<F: File> {
    memory: F::Persistent,
    /// What this medium stored and did not make durable.
    stored: RangeSet,
}

/// Memory writes back lines.
const BLOCK: u32 = 64;
const _: () = assert!(BLOCK as usize == LINE);

impl<F: File> Mapped<F> {
    /// Maps a file that has bytes; an error that [`is_refusal`] where it lies in no such memory.
    pub(crate) fn open(file: Arc<F>, name: String) -> Result<Self> {
        let memory = map(&*file, &name)?;
        let persistence = memory.persistence();
        let mapping = Mutex::new(Mapping { memory, stored: RangeSet::new() });
        Ok(Self { file, mapping, persistence, name })
    }

    /// What lies under it.
    pub(crate) fn persistence(&self) -> Persistence {
        self.persistence
    }

    fn mapping(&self) -> MutexGuard<'_, Mapping<F>> {
        // Whoever panicked left ranges that are to be made durable, at the worst too many, and what
        // it was storing just then, of which nobody was told.
        self.mapping.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which bytes are about to be stored; the mapping has them from here on.
    fn reach(&self, mapping: &mut Mapping<F>, blocks: &[u8], offset: u64) -> Result<Range<u64>> {
        let range = offset..offset.saturating_add(blocks.len() as u64);
        if range.end > mapping.memory.len() {
            mapping.memory = map(&*self.file, &self.name)?;
        }
        Ok(range)
    }
}

/// Whether memory was asked for that there is none of.
pub(crate) fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Io { operation: Operation::Map, source, .. }
        if source.kind() == ErrorKind::Unsupported)
}

/// Maps all of a file.
fn map<F: File>(file: &F, name: &str) -> Result<F::Persistent> {
    let len = file.metadata().during(Operation::Stat, name)?.len;
    file.map_persistent(len - len % WORD).during(Operation::Map, name)
}

impl<F: File> Medium for Mapped<F> {
    fn write(&self, blocks: &[u8], offset: u64) -> Result<()> {
        let mut mapping = self.mapping();
        let range = self.reach(&mut mapping, blocks, offset)?;
        mapping.stored.insert(range);
        mapping.memory.store(blocks, offset).during(Operation::Write, &self.name)
    }

    fn write_durable(&self, blocks: &[u8], offset: u64) -> Result<()> {
        let mut mapping = self.mapping();
        let range = self.reach(&mut mapping, blocks, offset)?;
        let done = mapping.memory.store_durable(blocks, offset);
        match &done {
            Ok(()) => mapping.stored.remove(range),
            Err(_) => mapping.stored.insert(range),
        }
        done.during(Operation::Flush, &self.name)
    }

    fn write_and_flush(&self, blocks: &[u8], offset: u64) -> Result<()> {
        if self.mapping().stored.is_empty() {
            return self.write_durable(blocks, offset);
        }
        self.write(blocks, offset)?;
        self.flush()
    }

    fn flush(&self) -> Result<()> {
        let mut mapping = self.mapping();
        let memory = &mapping.memory;
        let mut ranges = mapping.stored.iter();
        let begun = ranges.try_for_each(|range| memory.write_back(range));
        begun.and_then(|()| memory.fence()).during(Operation::Flush, &self.name)?;
        drop(ranges);
        mapping.stored.clear();
        Ok(())
    }

    fn block(&self) -> u32 {
        BLOCK
    }
}
