//! The words that tell of the log in the memory that all processes share. They are written by the
//! holder of the log's lock only, and only after the flush of what they speak of (WAL-7): the next
//! one to hold it after a death finds the log as it was before the unfinished record.

use dash_storage::SharedMemory;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

/// A word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// 1: the log is in use: it is durable, and so are all names that it needs.
    Session,
    /// Its id.
    Id,
    /// 1: it lies elsewhere, as a sign says.
    Elsewhere,
    /// 1: it can't be had.
    Without,
    /// Position behind the newest record, in bytes from the ring's beginning.
    Position,
    /// Sequence of the newest record when the session began.
    FirstSequence,
    /// Sequence of the newest record.
    Sequence,
    /// 1 + the position from which on records are retained, which is that of the window's first one
    /// or before; 0: there is no window, and the next record starts one.
    Window,
    /// Bytes of the ring.
    Ring,
    /// 1: a record was written and not flushed.
    Unflushed,
    /// Counts the rounds of flushing: see [`Group`].
    Rounds,
    /// Whether somebody waits for one.
    Awaited,
    /// Sequence of the record that is being written; 0: none. Not 0 under a fresh lock: the one
    /// that wrote it died.
    Writes,
}

/// Where the two words are by which all who commit wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// Flushes ended, of any success: what waiters sleep on.
    pub rounds: usize,
    /// Somebody waits, or died of it, for the round before this one to end; 0: nobody ever did.
    pub awaited: usize,
}

/// An engine's words, of which some are the log's.
pub struct Words<M> {
    memory: Arc<M>,
    index: fn(Word) -> usize,
}

impl<M: SharedMemory> Words<M> {
    /// Words in `memory`; `index` answers where each of the log's is.
    pub fn new(memory: Arc<M>, index: fn(Word) -> usize) -> Self {
        Self { memory, index }
    }

    /// How those who commit wait for each other.
    pub fn group(&self) -> (Group, Arc<M>) {
        let (rounds, awaited) = ((self.index)(Word::Rounds), (self.index)(Word::Awaited));
        (Group { rounds, awaited }, Arc::clone(&self.memory))
    }

    /// All of the engine's.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    fn word(&self, word: Word) -> &AtomicU64 {
        self.memory.word((self.index)(word))
    }

    /// What it is.
    pub fn get(&self, word: Word) -> u64 {
        self.word(word).load(SeqCst)
    }

    /// Changes it.
    pub fn set(&self, word: Word, value: u64) {
        self.word(word).store(value, SeqCst);
    }

    /// Whether a flag is set.
    pub fn is(&self, word: Word) -> bool {
        self.get(word) != 0
    }
}
