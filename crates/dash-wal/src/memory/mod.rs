//! `-wal` and the wal-index in the memory of one process (`OpenOptions::wal_in_memory`; WAL-35 to
//! WAL-38).
//!
//! The memory takes the place of the page cache: what the engine flushes is written back to the
//! file of `-wal` first, and a kill takes what a power loss would have taken. All else is as with
//! files.

pub(crate) mod index;
pub(crate) mod wal;

use crate::index::Index;
use dash_storage::Storage;
use index::Slots;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wal::Bytes;

/// What the connections of this process have in memory of one database.
pub(crate) struct InMemory<S: Storage> {
    /// Which it is, as the coordination file says.
    pub(crate) id: u64,
    /// The process that it is of: in a forked child it is nobody's.
    process: u32,
    pub(crate) wal: Arc<Bytes>,
    pub(crate) index: Arc<Slots>,
    gate: Mutex<Gate<S>>,
}

/// Who has it attached.
pub(crate) struct Gate<S: Storage> {
    /// Connections that have the wal-index.
    pub(crate) attached: usize,
    /// `-shm`'s file, which keeps stock SQLite out as long as the memory is ahead of the files;
    /// `None`: it is not, and what the memory holds counts no more.
    pub(crate) guard: Option<Index<S>>,
}

impl<S: Storage> InMemory<S> {
    /// Of this process, with nothing in it. `len`: so many bytes of `-wal` at most are in memory;
    /// `reserves`: its file is given room for them.
    pub(crate) fn new(id: u64, len: u64, reserves: bool) -> Self {
        Self {
            id,
            process: std::process::id(),
            wal: Arc::new(Bytes::new(len, reserves)),
            index: Arc::default(),
            gate: Mutex::new(Gate { attached: 0, guard: None }),
        }
    }

    /// Whether it is the one that the coordination file speaks of, and this process's.
    pub(crate) fn is(&self, id: u64) -> bool {
        self.id == id && self.process == std::process::id()
    }

    /// Who has it attached, locked.
    pub(crate) fn gate(&self) -> MutexGuard<'_, Gate<S>> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
