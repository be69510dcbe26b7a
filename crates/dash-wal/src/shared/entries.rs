//! A connection's entry in the coordination file: what others may know of it, and its place in line
//! for WRITER (see [`dash_engine::handover`]).

use crate::index::{CKPT, READ, WRITE};
use crate::shared::coordination::{Coordination, ENTRIES, ENTRY, MAX_ENTRIES, Word};
use dash_engine::error::Result;
use dash_engine::handover::{Line, Turn, is_alive};
use dash_storage::{File, SharedMemory};
use std::ops::Range;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// The words that tell of WRITER. A ticket is the second word of an entry.
pub(crate) const LINE: Line = Line {
    writing: Word::Writing as usize,
    waiting: Word::Waiting as usize,
    tickets: Word::Tickets as usize,
    handed_to: Word::HandedTo as usize,
    high: Word::EntryHigh as usize,
    entries: MAX_ENTRIES,
    first_process: ENTRIES + Told::Process as usize,
    first_ticket: ENTRIES + Told::Ticket as usize,
    stride: ENTRY,
};

/// Words of an entry, which its owner writes for others to look at; 0: not so. Times are
/// nanoseconds of the storage's clock.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Told {
    /// The owner's process, by the number that it knows.
    Process = 0,
    /// Its place in line for WRITER.
    Ticket = 1,
    /// Since when it has WRITER.
    Writes = 2,
    /// Since when it has CKPT.
    Checkpoints = 3,
    /// 1 + the slot of the wal-index under which it reads.
    Reads = 4,
    /// Since when.
    ReadsSince = 5,
    /// The first attempt at WRITER that failed, since it had it last.
    Waits = 6,
    /// The last one.
    Asked = 7,
}

impl<F: File> Coordination<F> {
    /// Takes a free entry for the life of this connection. Without one, waiting is polling.
    pub fn register(&mut self) -> Result<()> {
        self.entry = LINE.register(&self.file, &self.memory)?;
        if let Some(entry) = self.entry {
            for index in Told::Writes as usize..ENTRY {
                self.memory.word(ENTRIES + entry * ENTRY + index).store(0, SeqCst);
            }
            self.tell(Told::Process, u64::from(self.process));
        }
        Ok(())
    }

    /// Gives the entry back, before the file is closed: that releases its lock.
    pub fn unregister(&mut self) {
        if let Some(entry) = self.entry.take() {
            LINE.leave(&*self.memory, entry);
        }
    }

    /// Says something of this connection, if it has an entry.
    pub fn tell(&self, what: Told, value: u64) {
        if let Some(entry) = self.entry {
            self.memory.word(ENTRIES + entry * ENTRY + what as usize).store(value, Relaxed);
        }
    }

    /// Slots of the wal-index are given up.
    pub fn tell_given_up(&self, slots: &Range<usize>) {
        for (slot, what) in [(WRITE, Told::Writes), (CKPT, Told::Checkpoints)] {
            if slots.contains(&slot) {
                self.tell(what, 0);
            }
        }
        if slots.start >= READ && slots.len() == 1 {
            self.tell(Told::Reads, 0);
        }
    }

    /// The entries that have a living owner.
    pub fn living(&self) -> Result<Vec<usize>> {
        living(&self.file, self.get(Word::EntryHigh), self.entry)
    }

    /// Where this connection can wait for its turn. `None`: it has no entry, and polls.
    pub fn turn(&self) -> Option<Turn<F::Memory>> {
        self.entry.map(|entry| Turn::of(&self.memory, LINE, entry))
    }

    /// Says whether somebody holds WRITER who will look for others that wait.
    pub fn set_writing(&self, writing: bool) {
        self.set(Word::Writing, u64::from(writing));
        if writing {
            LINE.acknowledge(&*self.memory);
        }
    }

    /// After WRITER was given up: wakes the first in line, if somebody waits. It does not wait for
    /// that one to come: this commit's flush is due, and whoever is awake may be faster.
    pub fn wake_first(&self) -> Result<()> {
        LINE.wake_first(&*self.memory, self.entry, |entry| is_alive(&self.file, entry))
    }
}

/// What the owner of an entry says.
pub(crate) fn told<M: SharedMemory>(memory: &M, entry: usize, what: Told) -> u64 {
    memory.word(ENTRIES + entry * ENTRY + what as usize).load(Relaxed)
}

/// The entries below `high` that have a living owner; the owner of `own` is alive.
pub(crate) fn living<F: File>(file: &F, high: u64, own: Option<usize>) -> Result<Vec<usize>> {
    let mut living = Vec::new();
    for entry in LINE.used(high) {
        if own == Some(entry) || is_alive(file, entry)? {
            living.push(entry);
        }
    }
    Ok(living)
}
