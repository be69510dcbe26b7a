//! Whose file SQLite means when it opens or deletes one beside a database.
//!
//! It names the file, not the connection, of which there may be several in one process. But it does
//! so in the thread in which it has just called the database's own file, and calls no other one in
//! between; so each thread remembers which it called last.

use std::cell::Cell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// An open database file, as SQLite calls it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Caller {
    /// A hash of the database's path: files of other databases are told apart by it.
    pub database: u64,
    /// A number that no other one has had in this process.
    number: u64,
}

thread_local! {
    static LAST: Cell<Caller> = const { Cell::new(Caller { database: 0, number: 0 }) };
}

impl Caller {
    /// A new one, of the database at `path`.
    pub fn new(path: &Path) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        Self { database: hash(path), number: NUMBERS.fetch_add(1, Ordering::Relaxed) }
    }

    /// SQLite calls it, in this thread.
    #[inline]
    pub fn note(self) {
        LAST.set(self);
    }

    /// The one that SQLite called last in this thread.
    pub fn last() -> Self {
        LAST.get()
    }
}

/// The hash of a database's path.
fn hash(path: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    hasher.finish()
}
