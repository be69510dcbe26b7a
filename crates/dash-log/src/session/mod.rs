//! A session of the log: from the first record on, as long as anybody commits. Errors are those of
//! the file system, where nothing else is said.
//!
//! | file | owns |
//! |---|---|
//! | `commit` | waiting until a commit is durable, by helping |
//! | `engine` | what only an engine knows of it |
//! | `words` | the words of shared memory that tell of the log |
//! | `leader` | what a process keeps of the log |
//! | `names`, `place`, `signed` | where the log lies, and the sign that says so |
//! | `placing`, `target` | who moves it, and where a person wants it |
//! | `strayed`, `whose` | why one that is there is not used |
//! | `begin` | its first record, and the log opened for it |
//! | `write` | a record into the log, and where in the ring it goes |

mod begin;
mod commit;
mod engine;
mod leader;
mod names;
mod place;
mod placing;
mod signed;
mod strayed;
mod target;
mod whose;
mod words;
mod write;

pub use commit::{FlushTurn, Seen, WAIT, commit, open_log, with_log, with_log_waiting};
pub use engine::{Batch, Engine, LeaderOf, MemoryOf};
pub use leader::{Leader, Leading, LogMedium};
pub use names::Names;
pub use place::{Opened, Place};
pub use placing::place_log;
pub use strayed::Strayed;
pub use target::refuse_place;
pub use whose::Whose;
pub use words::{Group, Word, Words};
pub use write::Means;

use dash_storage::{File, Storage};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

/// What a connection knows of the log that its commits go to.
pub struct Session<S: Storage, M> {
    /// Where that is.
    pub storage: S,
    /// Of the database's folder.
    pub path: PathBuf,
    /// Where the log lies.
    pub place: Place<S>,
    /// What this process keeps of it.
    pub leading: Arc<Leading<S::File, M>>,
    /// What all connections know of it.
    pub words: Words<<S::File as File>::Memory>,
    /// What this one has done.
    pub counts: Counts,
    /// Bytes of a new ring, and of the longest one.
    pub ring: RangeInclusive<u64>,
    /// It was told to have the log elsewhere.
    pub makes_elsewhere: bool,
    /// How commits become durable where there is no log, for people.
    pub otherwise: String,
    /// What the user should know, though nothing failed.
    pub notice: Option<String>,
    /// No log was there, and only others may make it: [`Word::Id`] by then, and how many commits do
    /// without another look.
    pub unasked: Option<(u64, u32)>,
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
    /// Flushes that failed and were made good without it.
    pub failed: u64,
    /// Times it was full within a window.
    pub wraps: u64,
    /// Times it was made longer.
    pub growths: u64,
    /// Flushes of a folder.
    pub folder_flushes: u64,
}
