//! What the connections of one process share about one database: the log, open, and what was
//! written to it last. It is only a memory of what the files hold: a process that has none reads
//! it there.

use crate::memory::InMemory;
use crate::notes::Notes;
use dash_log::file::LogFile;
use dash_log::record::Builder;
use dash_storage::{File, Persistence, Storage};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};

/// Shared by the connections of a process, for one database.
pub struct Process<S: Storage> {
    leader: Mutex<Leader<S>>,
    medium: AtomicU64,
    /// `-wal` and the wal-index, where they are in memory, as long as a connection has them.
    memory: Mutex<Weak<InMemory<S>>>,
    /// What is to be said of commits that are not durable yet.
    pub(crate) notes: Notes,
}

impl<S: Storage> Default for Process<S> {
    fn default() -> Self {
        Self {
            leader: Mutex::default(),
            medium: AtomicU64::new(0),
            memory: Mutex::default(),
            notes: Notes::default(),
        }
    }
}

impl<S: Storage> Process<S> {
    /// The right to write the log, among the threads of this process.
    pub(crate) fn try_lead(&self) -> Option<MutexGuard<'_, Leader<S>>> {
        match self.leader.try_lock() {
            Ok(leader) => Some(leader),
            // A panic left what is only a memory: it is forgotten.
            Err(TryLockError::Poisoned(poisoned)) => {
                let mut leader = poisoned.into_inner();
                *leader = Leader::default();
                self.leader.clear_poison();
                Some(leader)
            }
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Has other connections find it.
    pub(crate) fn remember(&self, memory: &Arc<InMemory<S>>) {
        *self.memory.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(memory);
    }

    /// What one of them has.
    pub(crate) fn remembered(&self) -> Option<Arc<InMemory<S>>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    /// What the log is written to, once this process has opened it.
    pub(crate) fn medium(&self) -> Option<LogMedium> {
        let known = usize::try_from(self.medium.load(Relaxed)).ok()?.checked_sub(1)?;
        LogMedium::ALL.get(known).copied()
    }

    pub(crate) fn set_medium(&self, medium: LogMedium) {
        self.medium.store(medium as u64 + 1, Relaxed);
    }
}

/// What a log is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogMedium {
    /// A file, past the page cache.
    Direct,
    /// A file, through the page cache.
    Buffered,
    /// Persistent memory: stores that are written back and fenced.
    Persistent,
    /// The same stores to a tmpfs, which make nothing durable.
    Volatile,
}

impl LogMedium {
    const ALL: [Self; 4] = [Self::Direct, Self::Buffered, Self::Persistent, Self::Volatile];

    /// That of a log.
    pub(crate) fn of<F: File>(log: &LogFile<F>) -> Self {
        match (log.persistence(), log.is_direct()) {
            (Some(Persistence::Synchronous), _) => Self::Persistent,
            (Some(Persistence::Volatile), _) => Self::Volatile,
            (None, true) => Self::Direct,
            (None, false) => Self::Buffered,
        }
    }

    /// Whether it is stored to.
    #[must_use]
    pub fn is_memory(self) -> bool {
        matches!(self, Self::Persistent | Self::Volatile)
    }
}

/// What whoever writes the log needs.
pub(crate) struct Leader<S: Storage> {
    /// The log, once this process has opened it.
    pub log: Option<LogFile<S::File>>,
    /// Its id.
    pub id: u64,
    /// Statements in it would be run again.
    pub may_carry: bool,
    /// Records up to this sequence are void.
    pub void: u64,
    pub builder: Builder,
    pub window: Window,
    /// Frames read back.
    pub frames: Vec<u8>,
    /// Those of the record before, which the next differences are mostly made against.
    pub before: Vec<u8>,
    /// Another image that one is made against.
    pub old: Vec<u8>,
}

impl<S: Storage> Default for Leader<S> {
    fn default() -> Self {
        Self {
            log: None,
            id: 0,
            may_carry: false,
            void: 0,
            builder: Builder::new(),
            window: Window::default(),
            frames: Vec::new(),
            before: Vec::new(),
            old: Vec::new(),
        }
    }
}

impl<S: Storage> Leader<S> {
    /// Whether frame `number` is among [`Self::before`], with frames of `size` bytes.
    pub fn holds(&self, number: u32, size: usize) -> bool {
        let first = self.window.before;
        let len = u32::try_from(self.before.len() / size).unwrap_or(0);
        first != 0 && number >= first && number - first < len
    }
}

/// Where the last image of each page is, of those in the retained window.
#[derive(Debug, Default)]
pub(crate) struct Window {
    /// Of which generation it speaks,
    pub generation: u64,
    /// from which frame on,
    pub first: u32,
    /// and up to which.
    pub upto: u32,
    /// The last frame of each page.
    pub last: HashMap<u32, u32>,
    /// The first frame in [`Leader::before`]; 0: none of this window is there.
    pub before: u32,
}
