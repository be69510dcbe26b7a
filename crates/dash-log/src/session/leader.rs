//! What the connections of one process share about one log: the file, open, and what was written to
//! it last. It is only a memory of what the files hold: a process that has none reads it there.

use crate::file::LogFile;
use crate::format::Form;
use crate::record::Builder;
use dash_storage::{File, Persistence};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, TryLockError};

/// Shared by the connections of a process, for one log.
pub struct Leading<F: File, M> {
    leader: Mutex<Leader<F, M>>,
    /// No lock: a forked child may ask at any time.
    medium: AtomicU64,
}

impl<F: File, M: Default> Default for Leading<F, M> {
    fn default() -> Self {
        Self { leader: Mutex::default(), medium: AtomicU64::new(0) }
    }
}

impl<F: File, M: Default> Leading<F, M> {
    /// The right to write the log, among the threads of this process.
    pub fn try_lead(&self) -> Option<MutexGuard<'_, Leader<F, M>>> {
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

    /// What the log is written to, once this process has opened it.
    pub fn medium(&self) -> Option<LogMedium> {
        let known = usize::try_from(self.medium.load(Relaxed)).ok()?.checked_sub(1)?;
        LogMedium::ALL.get(known).copied()
    }

    /// Tells the others so.
    pub fn set_medium(&self, log: &LogFile<F>) {
        self.medium.store(LogMedium::of(log) as u64 + 1, Relaxed);
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
    fn of<F: File>(log: &LogFile<F>) -> Self {
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

/// What whoever writes the log needs. `M`: what the engine makes differences against.
pub struct Leader<F: File, M> {
    /// The log, once this process has opened it.
    pub log: Option<LogFile<F>>,
    /// Its id.
    pub id: u64,
    /// It belongs to somebody who may write the database.
    pub may_carry: bool,
    /// Records up to this sequence are void.
    pub void: u64,
    /// Builds records.
    pub builder: Builder,
    /// The engine's.
    pub kept: M,
}

impl<F: File, M> Leader<F, M> {
    /// What records are laid out for.
    pub fn form(&self) -> Form {
        self.log.as_ref().map_or(Form::Sectors, LogFile::form)
    }
}

impl<F: File, M: Default> Default for Leader<F, M> {
    fn default() -> Self {
        let (builder, kept) = (Builder::new(), M::default());
        Self { log: None, id: 0, may_carry: false, void: 0, builder, kept }
    }
}
