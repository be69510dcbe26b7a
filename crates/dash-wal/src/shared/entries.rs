//! A connection's entry in the coordination file, and its place in line for WRITER: see
//! [`dash_engine::handover`].

use crate::shared::coordination::{Coordination, ENTRIES, ENTRY, MAX_ENTRIES, Word};
use crate::shared::locks;
use dash_engine::error::{Context, Operation, Result};
use dash_engine::handover::{Line, Turn};
use dash_storage::{File, LockKind, SharedMemory};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

/// The words that tell of WRITER. A ticket is the second word of an entry.
const LINE: Line = Line {
    writing: Word::Writing as usize,
    waiting: Word::Waiting as usize,
    tickets: Word::Tickets as usize,
    handed_to: Word::HandedTo as usize,
    high: Word::EntryHigh as usize,
    entries: MAX_ENTRIES,
    first_ticket: ENTRIES + 1,
    stride: ENTRY,
};

const NAME: &str = "an entry of the coordination file";

impl<F: File> Coordination<F> {
    /// Takes a free entry for the life of this connection. Without one, waiting is polling.
    pub fn register(&mut self) -> Result<()> {
        for entry in 0..MAX_ENTRIES {
            let lock = self.file.try_lock(locks::entry(entry), LockKind::Exclusive);
            if lock.during(Operation::Lock, NAME)? {
                LINE.clear(&*self.memory, entry);
                let process = self.memory.word(ENTRIES + entry * ENTRY);
                process.store(u64::from(std::process::id()), SeqCst);
                self.word(Word::EntryHigh).fetch_max(entry as u64 + 1, SeqCst);
                self.entry = Some(entry);
                break;
            }
        }
        Ok(())
    }

    /// Where this connection can wait for its turn. `None`: it has no entry, and polls.
    pub fn turn(&self) -> Option<Turn<F::Memory>> {
        let memory = Arc::downgrade(&self.memory);
        self.entry.map(|entry| Turn { memory, line: LINE, entry })
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
        LINE.wake_first(&*self.memory, self.entry, |entry| {
            let lock = self.file.lock_conflict(locks::entry(entry), LockKind::Exclusive);
            Ok(lock.during(Operation::Lock, NAME)?.is_some())
        })
    }
}
