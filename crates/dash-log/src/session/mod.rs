//! A session of the log: from the first record on, as long as anybody commits.
//!
//! | file | owns |
//! |---|---|
//! | `words` | the words of shared memory that tell of the log |
//! | `leader` | what a process keeps of the log |
//! | `room` | where in the ring a record goes |
//! | `write` | a record into the log |

mod leader;
mod room;
mod words;
mod write;

pub use leader::{Leader, Leading, LogMedium};
pub use words::{Word, Words};
pub use write::Means;

use dash_storage::{File, Storage};
use std::ops::RangeInclusive;

/// What a connection knows of the log that its commits go to.
pub struct Session<S: Storage> {
    /// What all connections know of it.
    pub words: Words<<S::File as File>::Memory>,
    /// What this one has done.
    pub counts: Counts,
    ring: RangeInclusive<u64>,
}

/// What a connection has done to the log.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// Records written.
    pub records: u64,
    /// Bytes of them, padding included.
    pub bytes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Times it was made longer.
    pub growths: u64,
}

impl<S: Storage> Session<S> {
    /// `ring`: bytes of a new ring, and of the longest one.
    pub fn new(words: Words<<S::File as File>::Memory>, ring: RangeInclusive<u64>) -> Self {
        Self { words, counts: Counts::default(), ring }
    }
}
