//! How to open a database, and what a commit is to survive.

use crate::execute::Execute;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// When a commit is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// As `PRAGMA synchronous` says: FULL and EXTRA are durable when a commit returns, NORMAL at
    /// the next checkpoint, OFF never.
    #[default]
    Host,
    /// Durable when the commit returns, whatever `synchronous` says: one write and one flush.
    Full,
    /// The same by one write that the device is to put through its cache (`RWF_DSYNC`).
    Device,
    /// Written past the page cache and not flushed: durable where the device's cache is.
    None,
}

/// What makes `-wal`'s frames durable before a checkpoint copies them into the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Barrier {
    /// The log: every frame is in it.
    #[default]
    Log,
    /// A flush of `-wal`. It writes every frame a second time; the log is not part of the database.
    Wal,
}

/// What stock SQLite may do while the database is open; each may do what the one before may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Stock {
    /// It reads.
    #[default]
    Read,
    /// It writes, too, and checkpoints where no session of the log lasts.
    Write,
    /// It checkpoints, and begins `-wal` anew, whenever it likes. What that is under
    /// `synchronous=OFF` a power loss may take, as in stock SQLite, from everybody.
    Checkpoint,
}

impl Stock {
    /// All of them, by what `dash_stock` calls them.
    pub const NAMED: [(&'static str, Self); 3] =
        [("read", Self::Read), ("write", Self::Write), ("checkpoint", Self::Checkpoint)];

    /// Of what the coordination file says.
    pub(crate) fn of(word: u64) -> Self {
        match word {
            0 => Self::Read,
            1 => Self::Write,
            _ => Self::Checkpoint,
        }
    }

    /// What `dash_stock` calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMED[self as usize].0
    }
}

/// How to open a database for reading and writing.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// Make an empty database if there is none.
    pub create: bool,
    /// Permission bits of a new database.
    pub permissions: u32,
    /// When a commit is durable.
    pub durability: Durability,
    /// What a checkpoint relies on.
    pub barrier: Barrier,
    /// A reader waits until what it sees is durable.
    pub durable_reads: bool,
    /// How long nobody is to have committed before the database comes to rest
    /// ([`Connection::come_to_rest`](crate::Connection::come_to_rest)), and after which commits
    /// that come one by one are no beginning of more. `None`: it does not.
    pub rest: Option<Duration>,
    /// Where the log is to lie: the absolute path of a folder, in which it gets a name of its own,
    /// or of the log itself. `None`: where it is, or else beside the database; one that is to be
    /// made elsewhere is left to whoever names its place. While others have the database open it
    /// stays where it is.
    pub log: Option<PathBuf>,
    /// `-wal` and the wal-index are to be in this process's memory, which the log protects: others
    /// are refused. `Some(false)`: they are to be in files. What the first opener has chosen holds
    /// until the last one has closed; who chooses otherwise is refused, `None` takes what is so.
    pub wal_in_memory: Option<bool>,
    /// What stock SQLite may do while the database is open. What the first opener has chosen holds
    /// until the last one has closed; who chooses otherwise is refused, `None` takes what is so,
    /// and keeps writers out where nobody has chosen.
    pub stock: Option<Stock>,
    /// Another engine's files. As long as one is in the database's folder, whoever was killed in
    /// that mode may have left a commit there, which that engine has to find first.
    pub kept_out_by: Vec<OsString>,
    /// What runs again the statements that carry commits, if a power loss took their frames.
    /// `None`: a database where that has to be done is not opened.
    pub executor: Option<Arc<dyn Execute>>,
    /// Sizes.
    pub tuning: Tuning,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            create: true,
            permissions: 0o644,
            durability: Durability::default(),
            barrier: Barrier::default(),
            durable_reads: false,
            rest: None,
            log: None,
            wal_in_memory: None,
            stock: None,
            kept_out_by: Vec::new(),
            executor: None,
            tuning: Tuning::default(),
        }
    }
}

/// Sizes that trade space, memory and flushes; none of them is part of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuning {
    /// Bytes of the ring of a new log; a multiple of 4096.
    pub ring_min: u64,
    /// The ring grows up to so many bytes.
    pub ring_max: u64,
    /// A log beside the database whose ring has become longer is removed at the last close, if no
    /// statements were recorded in it: its space is given back, and the next session makes one of
    /// `ring_min` bytes.
    pub ring_kept: u64,
    /// A record has at most about so many bytes; frames that need more become durable by a flush of
    /// `-wal`.
    pub record_max: usize,
    /// So many commits of a session become durable by a flush of `-wal`, as in stock SQLite, before
    /// the log is begun: a program that opens, changes and closes needs no log.
    pub stock_commits: u64,
    /// If the session before had fewer flushes than this, so many commits of the next one become
    /// durable so. Beginning and ending a session of the log costs about as many flushes as the log
    /// saves in as many commits.
    pub short_session: u64,
    /// So many commits of a window at most are carried by their statements, as recovery has to run
    /// them again; behind them `-wal` is flushed. The paper (SQLite/SSL) does so by the share of
    /// its log that is full, and by pages.
    pub carried_max: u64,
    /// So many bytes of `-wal` at most are in memory, where it is; those behind are in its file
    /// alone.
    pub wal_in_memory: u64,
    /// From so many frames on a checkpoint keeps writers and new readers back.
    pub drain_frames: u32,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            ring_min: 256 << 10,
            ring_max: 64 << 20,
            ring_kept: 4 << 20,
            record_max: 1 << 20,
            stock_commits: 1,
            short_session: 8,
            carried_max: 10_000,
            wal_in_memory: 64 << 20,
            drain_frames: 4000,
        }
    }
}

impl Tuning {
    /// The smallest sizes that work: for explorers.
    #[must_use]
    pub fn tiny() -> Self {
        Self {
            ring_min: 16 << 10,
            ring_max: 32 << 10,
            ring_kept: 20 << 10,
            record_max: 8 << 10,
            stock_commits: 1,
            short_session: 3,
            carried_max: 12,
            wal_in_memory: 20 << 10,
            drain_frames: 40,
        }
    }
}
