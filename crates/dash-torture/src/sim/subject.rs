//! What an engine has to be for this ring: opened on simulated storage and driven as SQLite drives
//! a VFS. A new engine joins by implementing the two traits.

use std::fmt;

use dash_storage::simulated::{Machine, Simulated};

/// The database's path on every machine.
pub const DB: &str = "/app.db";

/// Why a call did not do what it was asked to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// Somebody else is in the way, or has committed since the snapshot was taken: try again.
    Busy,
    /// An error of the engine's, in its words.
    Failed(String),
    /// What was read is no state that any transaction wrote.
    Wrong(String),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => f.write_str("busy"),
            Self::Failed(message) | Self::Wrong(message) => f.write_str(message),
        }
    }
}

/// Shorthand.
pub type Outcome<T> = Result<T, Trouble>;

/// How a program's databases are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// One of [`Subject::variants`].
    pub variant: &'static str,
    /// Bytes of a page of the database.
    pub page: usize,
    /// Sizes of the engine's own.
    pub sizes: Sizes,
    /// Whether what is deleted must be in no file at rest.
    pub secure: bool,
}

/// Sizes of an engine's own: of what it allocates, marks and remembers at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sizes {
    /// As it has them.
    Usual,
    /// As small as can be, so that small databases reach every path.
    Tiny,
    /// The same, but what it says about a database while that is open is said of all of it.
    Wide,
}

/// An engine.
pub trait Subject: Send + Sync {
    /// Its name.
    fn engine(&self) -> &'static str;

    /// Its variants: ways to commit that are told apart on the command line.
    fn variants(&self) -> &'static [&'static str];

    /// Makes a new machine what the variant is meant for.
    fn prepare(&self, machine: &Machine, setup: &Setup);

    /// Opens a database, an empty one if there is none; recovers it if it has to.
    fn open(&self, process: &Simulated, path: &str, setup: &Setup) -> Outcome<Box<dyn Session>>;

    /// Opens a database as somebody who may not write it.
    fn open_for_reading(&self, process: &Simulated, path: &str) -> Outcome<Box<dyn Session>>;

    /// Why stock SQLite would refuse to read what is under the name now; `None`: it would not, for
    /// any reason that is not in the bytes of the file.
    fn stock_refuses(&self, machine: &Machine, path: &str) -> Option<&'static str>;

    /// The format checker, on a database that somebody has open, right after a commit.
    fn check_committed(&self, machine: &Machine, path: &str) -> Result<(), String>;

    /// What nobody who closes last may leave behind. `held`: the inodes that stock processes have
    /// had open since before that.
    fn check_at_rest(&self, machine: &Machine, path: &str, held: &[u64]) -> Result<(), String>;

    /// What must hold whenever all processes of ours are gone, killed or not: no stock process may
    /// write what another one has a former file of. `held`: as above.
    fn check_abandoned(&self, machine: &Machine, path: &str, held: &[u64]) -> Result<(), String>;
}

/// A connection to a database. Dropping it closes its files without a word, as a dead process does.
pub trait Session: Send {
    /// Takes a snapshot: `xLock(SHARED)`.
    fn begin_read(&mut self) -> Outcome<()>;

    /// Bytes of the database as the transaction sees it.
    fn size(&self) -> u64;

    /// Reads; fewer bytes at the end of the database.
    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Outcome<usize>;

    /// Becomes the writer: `xLock(RESERVED)`.
    fn reserve(&mut self) -> Outcome<()>;

    /// Keeps readers off what it is going to write: `xLock(EXCLUSIVE)`.
    fn exclude(&mut self) -> Outcome<()>;

    /// Both.
    fn begin_write(&mut self) -> Outcome<()> {
        self.reserve()?;
        self.exclude()
    }

    /// Writes a page.
    fn write(&mut self, page: &[u8], offset: u64) -> Outcome<()>;

    /// Cuts the database.
    fn truncate(&mut self, size: u64) -> Outcome<()>;

    /// `SQLITE_FCNTL_SYNC`, with the name of the super-journal if there is one.
    fn prepare(&mut self, super_journal: Option<&str>) -> Outcome<()>;

    /// `xSync`.
    fn flush(&mut self) -> Outcome<()>;

    /// `SQLITE_FCNTL_COMMIT_PHASETWO`: after success the transaction must survive everything;
    /// without [`flush`](Self::flush) before (synchronous=OFF) everything but a power loss.
    fn publish(&mut self) -> Outcome<()>;

    /// Goes on as a reader, undoing what was not published: `xUnlock(SHARED)`.
    fn end_write(&mut self) -> Outcome<()>;

    /// Ends the transaction, undoing what was not published: `xUnlock(NONE)`.
    fn end(&mut self) -> Outcome<()>;

    /// Does what the engine does in the background.
    fn idle(&mut self) -> Outcome<()>;

    /// Closes.
    fn close(self: Box<Self>) -> Outcome<()>;
}
