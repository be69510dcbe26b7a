//! The wal-index in memory: its regions, and the locks of its slots, among the threads of one
//! process.

use dash_storage::{LockKind, REGION, SharedMemory};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Words of a region.
const WORDS: usize = (REGION / 8) as usize;

/// WRITE, CKPT, RECOVER, and those of readers.
const SLOTS: usize = 8;

type Words = Arc<[AtomicU64]>;

/// Shared by the connections that have it.
#[derive(Default)]
pub(crate) struct Slots(Mutex<Held>);

#[derive(Default)]
struct Held {
    regions: Vec<Words>,
    /// For each slot how many hold it shared.
    shared: [usize; SLOTS],
    /// Bit i: somebody holds slot i exclusively.
    exclusive: u16,
}

impl Slots {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Empties it: nobody has it.
    pub(crate) fn clear(&self) {
        *self.held() = Held::default();
    }

    /// Region `index`; `None`: it is not there, and not to be made.
    pub(crate) fn region(&self, index: usize, extend: bool) -> Option<Words> {
        let mut held = self.held();
        while extend && held.regions.len() <= index {
            held.regions.push((0..WORDS).map(|_| AtomicU64::new(0)).collect());
        }
        held.regions.get(index).map(Arc::clone)
    }

    /// Whether anybody holds a slot.
    pub(crate) fn is_held(&self, slot: usize) -> bool {
        let held = self.held();
        held.exclusive & 1 << slot != 0 || held.shared[slot] > 0
    }
}

/// What one connection holds of the slots, as bits; its own bits are given up when it goes.
pub(crate) struct Seat {
    pub(crate) of: Arc<Slots>,
    shared: u16,
    exclusive: u16,
}

impl Seat {
    /// Holds nothing.
    pub(crate) fn new(of: Arc<Slots>) -> Self {
        Self { of, shared: 0, exclusive: 0 }
    }

    /// Takes slots of which it holds none: all, or none of them.
    pub(crate) fn take(&mut self, slots: u16, kind: LockKind) -> bool {
        let mut held = self.of.held();
        let is_read = each(slots).any(|slot| held.shared[slot] > 0);
        if held.exclusive & slots != 0 || kind == LockKind::Exclusive && is_read {
            return false;
        }
        match kind {
            LockKind::Exclusive => held.exclusive |= slots,
            LockKind::Shared => each(slots).for_each(|slot| held.shared[slot] += 1),
        }
        drop(held);
        match kind {
            LockKind::Exclusive => self.exclusive |= slots,
            LockKind::Shared => self.shared |= slots,
        }
        true
    }

    /// Whether another connection holds one of them.
    pub(crate) fn is_taken(&self, slots: u16) -> bool {
        let held = self.of.held();
        held.exclusive & slots & !self.exclusive != 0
            || each(slots).any(|slot| held.shared[slot] > usize::from(self.shared >> slot & 1))
    }

    /// Gives slots up, however they are held.
    pub(crate) fn give_up(&mut self, slots: u16) {
        let mut held = self.of.held();
        held.exclusive &= !(self.exclusive & slots);
        for slot in each(self.shared & slots) {
            held.shared[slot] = held.shared[slot].saturating_sub(1);
        }
        drop(held);
        self.exclusive &= !slots;
        self.shared &= !slots;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.give_up(u16::MAX);
    }
}

fn each(slots: u16) -> impl Iterator<Item = usize> {
    (0..SLOTS).filter(move |slot| slots & 1 << slot != 0)
}

/// A region of the wal-index, of a file or in memory.
pub(crate) enum Region<M> {
    /// All processes' that map the file.
    File(M),
    /// This process's.
    Memory(Words),
}

impl<M: SharedMemory> SharedMemory for Region<M> {
    fn word(&self, index: usize) -> &AtomicU64 {
        match self {
            Self::File(memory) => memory.word(index),
            Self::Memory(words) => &words[index],
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::File(memory) => memory.len(),
            Self::Memory(words) => words.len(),
        }
    }

    fn start(&self) -> *mut u8 {
        match self {
            Self::File(memory) => memory.start(),
            Self::Memory(words) => words.as_ptr().cast_mut().cast(),
        }
    }

    /// Nobody waits for a word of the wal-index.
    fn wait(&self, index: usize, while_is: u64, time: Duration) -> bool {
        match self {
            Self::File(memory) => memory.wait(index, while_is, time),
            Self::Memory(_) => false,
        }
    }

    fn wake(&self, index: usize) {
        if let Self::File(memory) = self {
            memory.wake(index);
        }
    }
}
