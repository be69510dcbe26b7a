//! What an engine is to the files here.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use dash_engine::coordination::OPEN_PATIENCE;
use dash_engine::error::Result;
use dash_engine::locks::LockLevel;
use dash_ffi::{Error, HostVfs, OpenFlags};
use dash_storage::FileId;

use crate::by_stock::PATIENCE;
use crate::leftovers::Neighbours;
use crate::mode::{Mode, Parameters, Shared};

/// A counter, by its name.
pub type Counter = (&'static str, u64);

/// A connection of an engine under which SQLite is in its rollback mode: it commits at
/// `SQLITE_FCNTL_COMMIT_PHASETWO`, and recovers without a journal of SQLite's.
pub trait Rollback: Sized + Send + 'static {
    /// The mode whose engine it is.
    const MODE: &'static dyn Mode;

    /// The parameters that PRAGMAs choose, too.
    const CHOSEN: &'static [&'static str];

    /// Opens it, after stock SQLite has dealt with its own leftovers.
    ///
    /// # Errors
    ///
    /// Why it can't be opened.
    fn open(what: &ToOpen<'_>) -> core::result::Result<Self, Failed>;

    /// Takes what was chosen since it was opened.
    fn choose(&mut self, parameters: &Parameters);

    /// Closes it; `tell` hears what the user should know of what is left behind.
    ///
    /// # Errors
    ///
    /// The engine's; it is closed all the same.
    fn close_telling(self, tell: &mut dyn FnMut(&str)) -> Result<()>;

    /// Whether a connection has the database at `path` open for writing, in any process.
    fn is_open(path: &Path) -> bool;

    /// Whether a database that nobody has open was closed cleanly.
    ///
    /// # Errors
    ///
    /// Those of looking.
    fn is_at_rest(path: &Path) -> Result<bool>;

    /// Removes a super-journal that nothing depends on, of a database that this thread does not
    /// write.
    ///
    /// # Errors
    ///
    /// Those of the files; it stays then.
    fn remove_orphan(path: &Path, name: &OsStr) -> Result<()>;

    /// Whether a thread of this process is at work on the database, in no transaction.
    fn is_at_work(_shared: &Shared) -> bool {
        false
    }

    /// Waits for that thread.
    fn finish_work(_shared: &Shared) {}

    /// Reads as SQLite does.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize>;

    /// The lock held.
    fn level(&self) -> LockLevel;

    /// The newest commit's number, over all connections.
    fn sequence(&self) -> u64;

    /// Whether nothing is lost where it is closed and opened again.
    fn is_idle(&self) -> bool;

    /// Whether somebody has written since the first one opened the database.
    fn is_written(&self) -> bool;

    /// Whether it has been in a transaction over several databases.
    fn has_had_several(&self) -> bool;

    /// Which database it has, and in which state.
    fn identity(&self) -> Identity;

    /// The files that SQLite's cache may be of.
    fn files(&self) -> Vec<FileId>;

    /// What it has counted, and for the first ones of these what all connections have.
    fn counters(&self) -> (Vec<Counter>, Vec<u64>);

    /// What is kept for readers of older states, of any connection.
    fn kept_bytes(&self) -> u64;
}

/// A database that is to be opened.
#[derive(Clone, Copy)]
pub struct ToOpen<'a> {
    pub host: &'a HostVfs,
    pub path: &'a Path,
    pub parameters: &'a Parameters,
    pub flags: OpenFlags,
    pub beside: &'a Neighbours,
    /// Whether somebody wants the mode. Else it was chosen because the database was not in WAL
    /// mode: if others put it into that meanwhile, the answer is `SQLITE_BUSY` at once, and the
    /// mode has to be chosen again.
    pub asked: bool,
    pub patience: Patience,
}

/// What tells one database, and one state of it, from others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Identity {
    /// Random number of the database. Another one, once somebody else has written it.
    pub database: u64,
    /// Random id of the newest commit, or of what somebody else wrote; 0: an empty database.
    pub commit: u64,
}

/// Why the engine could not open a database for writing.
pub enum Failed {
    /// Writing is not allowed here.
    Forbidden(Error),
    /// There is no space for what writing needs.
    NoSpace(Error),
    /// Anything else.
    Other(Error),
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Forbidden(error) | Failed::NoSpace(error) | Failed::Other(error) => error,
        }
    }
}

/// Who is waited for, and how long.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// A stock process that writes.
    pub stock: Duration,
    /// One of dash that opens, closes or recovers the database. A stopped one does so for good.
    pub others: Duration,
}

impl Patience {
    /// At the end of a rest: SQLite asks the busy handler after a stock writer.
    pub const AFTER_REST: Self = Self { stock: Duration::ZERO, others: OPEN_PATIENCE };
    /// Nobody.
    pub const NONE: Self = Self { stock: Duration::ZERO, others: Duration::ZERO };
    /// As it is opened.
    pub const OPENING: Self = Self { stock: PATIENCE, others: OPEN_PATIENCE };
}
