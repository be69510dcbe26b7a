//! A list of places that is only ever walked and marked, never locked or moved.
//!
//! The child of a `fork` walks it while other threads of the parent have vanished in the middle of
//! whatever they did, so it is made of atomics alone. Chunks are added and never freed.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

const CHUNK: usize = 256;

/// A growing list of entries; meant for statics.
pub(super) struct Table<T> {
    first: OnceLock<Box<Chunk<T>>>,
}

struct Chunk<T> {
    entries: [Entry<T>; CHUNK],
    next: OnceLock<Box<Chunk<T>>>,
}

/// A place that is free, or owned.
pub(super) struct Entry<T> {
    is_owned: AtomicBool,
    /// What the place holds; the owner writes it.
    pub(super) value: T,
}

impl<T: Default> Table<T> {
    pub(super) const fn new() -> Self {
        Self { first: OnceLock::new() }
    }

    /// Takes a free place, making new ones if there is none.
    pub(super) fn claim(&self) -> &Entry<T> {
        let mut link = &self.first;
        loop {
            let chunk = link.get_or_init(|| Box::new(Chunk::new()));
            if let Some(entry) = chunk.entries.iter().find(|entry| entry.claim()) {
                return entry;
            }
            link = &chunk.next;
        }
    }

    /// All places, whatever their state. Never allocates or waits.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry<T>> {
        let chunks = std::iter::successors(self.first.get(), |chunk| chunk.next.get());
        chunks.flat_map(|chunk| chunk.entries.iter())
    }
}

impl<T: Default> Chunk<T> {
    fn new() -> Self {
        let free = |_| Entry { is_owned: AtomicBool::new(false), value: T::default() };
        let entries = std::array::from_fn(free);
        Self { entries, next: OnceLock::new() }
    }
}

impl<T> Entry<T> {
    fn claim(&self) -> bool {
        !self.is_owned.load(Ordering::Relaxed) && !self.is_owned.swap(true, Ordering::AcqRel)
    }

    /// Gives the place back; only its owner may.
    pub(super) fn release(&self) {
        self.is_owned.store(false, Ordering::Release);
    }
}
