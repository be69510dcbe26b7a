//! What the connections of one process share about one database, beside the log: see
//! [`dash_log::session::Leading`].

use crate::memory::InMemory;
use crate::notes::Notes;
use dash_log::session::{self, Leading};
use dash_storage::Storage;
use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Shared by the connections of a process, for one database.
pub struct Process<S: Storage> {
    pub(crate) leading: Arc<Leading<S::File, Frames>>,
    /// `-wal` and the wal-index, where they are in memory, as long as a connection has them.
    memory: Mutex<Weak<InMemory<S>>>,
    /// What is to be said of commits that are not durable yet.
    pub(crate) notes: Notes,
    /// Whether anything ever was.
    pub(crate) records: AtomicBool,
}

impl<S: Storage> Default for Process<S> {
    fn default() -> Self {
        let (leading, memory, notes) = (Arc::default(), Mutex::default(), Notes::default());
        Self { leading, memory, notes, records: AtomicBool::new(false) }
    }
}

impl<S: Storage> Process<S> {
    /// Has other connections find it.
    pub(crate) fn remember(&self, memory: &Arc<InMemory<S>>) {
        *self.memory.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(memory);
    }

    /// What one of them has.
    pub(crate) fn remembered(&self) -> Option<Arc<InMemory<S>>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }
}

/// What whoever writes the log needs.
pub(crate) type Leader<S> = session::Leader<<S as Storage>::File, Frames>;

/// Frames that differences are made of, and against.
#[derive(Debug, Default)]
pub struct Frames {
    pub(crate) window: Window,
    /// Commits of the record that is built which their statements carry; 0: frames do.
    pub(crate) carried: u32,
    /// Frames read back.
    pub(crate) read: Vec<u8>,
    /// Those of the record before, which the next differences are mostly made against.
    pub(crate) before: Vec<u8>,
    /// Another image that one is made against.
    pub(crate) old: Vec<u8>,
}

impl Frames {
    /// Whether frame `number` is among [`Self::before`], with frames of `size` bytes.
    pub(crate) fn holds(&self, number: u32, size: usize) -> bool {
        let first = self.window.before;
        let len = u32::try_from(self.before.len() / size).unwrap_or(0);
        first != 0 && number >= first && number - first < len
    }
}

/// Where the last image of each page is, of those in the retained window.
#[derive(Debug, Default)]
pub struct Window {
    /// Of which generation it speaks,
    pub(crate) generation: u64,
    /// from which frame on,
    pub(crate) first: u32,
    /// and up to which.
    pub(crate) upto: u32,
    /// The last frame of each page.
    pub(crate) last: HashMap<u32, u32>,
    /// The first frame in [`Frames::before`]; 0: none of this window is there.
    pub(crate) before: u32,
}
