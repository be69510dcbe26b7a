//! What an engine has to be on simulated storage: opened by processes, and driven as SQLite drives
//! a VFS. A new engine implements [`Subject`] and [`Session`], and says how the real SQLite runs on
//! it ([`SqliteFiles`]).

use std::any::Any;
use std::ffi::OsStr;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use dash_ffi::OpenFlags;
use dash_simulated::{Machine, Simulated};

use super::commit::CommitStep;
use crate::variant::Variant;

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
    /// The name of one of [`Subject::variants`].
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

/// What an engine promises beyond commits that survive. Programs about what it does not promise are
/// left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claims {
    /// Its transactions are SQLite's own, in WAL mode: programs of statements in that mode are for
    /// it, and no others.
    pub wal_mode: Option<WalMode>,
    /// A transaction over several databases is there in all or in none, by a super-journal.
    pub several_databases: bool,
    /// Stock SQLite may write before, beside and after its sessions, in every mode, and loses
    /// nothing.
    pub stock_neighbours: bool,
    /// Nothing is lost on a file system without a journal either, on which each inode reaches the
    /// disk by itself.
    pub without_journal: bool,
}

/// What an engine below SQLite's WAL mode promises beyond what stock SQLite does: a commit under
/// `synchronous=FULL` survives a power loss, all others a kill, and each of them only after those
/// before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalMode {
    /// Connections with `synchronous=OFF` beside others take away nothing of that: their own
    /// commits may be lost, and tear nothing.
    pub beside_off: bool,
    /// Of a flush that failed no later one is believed.
    pub failed_flushes: bool,
    /// Stock SQLite may not write as long as a connection of the engine is open.
    pub keeps_stock_writers_out: bool,
    /// `PRAGMA dash_durability`, `dash_barrier` mean something.
    pub pragmas: bool,
}

/// An engine.
pub trait Subject: Send + Sync {
    /// Its name.
    fn engine(&self) -> &'static str;

    /// Its variants: ways to commit that are told apart on the command line.
    fn variants(&self) -> &'static [Variant];

    /// What it promises besides.
    fn claims(&self) -> Claims;

    /// The engine page by page; `None`: its transactions are SQLite's own ([`Claims::wal_mode`]).
    fn sessions(&self) -> Option<&dyn Sessions>;

    /// How the real SQLite runs on it.
    fn sqlite_files(&self) -> &'static dyn SqliteFiles;

    /// Makes a new machine what the variant is meant for.
    fn prepare(&self, machine: &Machine, setup: &Setup);

    /// The endings of the names of the files beside the database that somebody has to copy with
    /// it.
    fn beside(&self) -> &'static [&'static str];

    /// Whether an error says that nobody but the user can tell which of two states counts.
    fn leaves_a_choice(&self, _error: &str) -> bool {
        false
    }

    /// Why stock SQLite would refuse to read what is under the name now; `None`: it would not, for
    /// any reason that is not in the bytes of the file.
    fn stock_refuses(&self, _machine: &Machine, _path: &str) -> Option<&'static str> {
        None
    }

    /// Whether stock SQLite may refuse it, as some versions of it do.
    fn stock_may_refuse(&self, machine: &Machine, path: &str) -> bool {
        self.stock_refuses(machine, path).is_some()
    }

    /// The format checker, after the last connection has closed the database. `held`: the inodes
    /// that stock processes have had open since before that.
    fn check_at_rest(&self, machine: &Machine, path: &str, held: &[u64]) -> Result<(), String>;
}

/// An engine whose transactions are its own, driven page by page.
pub trait Sessions: Send + Sync {
    /// The steps of a commit. The last one is kept always.
    fn commit_steps(&self, setup: &Setup) -> &'static [CommitStep];

    /// Opens a database, an empty one if there is none; recovers it if it has to.
    fn open(&self, process: &Simulated, path: &str, setup: &Setup) -> Outcome<Box<dyn Session>>;

    /// Opens a database as a process that may not write it.
    fn open_for_reading(&self, process: &Simulated, path: &str) -> Outcome<Box<dyn Session>>;

    /// Does something while nobody has the database open through the engine, and nobody can open
    /// it: stock SQLite rolls back its own journal then.
    fn while_closed(&self, process: &Simulated, path: &str, act: &mut dyn FnMut()) -> Outcome<()>;

    /// The format checker, on a database that somebody has open, right after a commit.
    fn check_committed(&self, machine: &Machine, path: &str) -> Result<(), String>;

    /// What must hold whenever all processes of ours are gone, killed or not: no stock process may
    /// write while another one has a former file open. `held`: as above.
    fn check_abandoned(
        &self,
        _machine: &Machine,
        _path: &str,
        _held: &[u64],
    ) -> Result<(), String> {
        Ok(())
    }
}

/// What programs of pages ask. An engine without sessions answers [`Trouble::Failed`], or that
/// nothing is wrong.
#[allow(missing_docs, clippy::missing_errors_doc, reason = "each as in Sessions")]
impl dyn Subject + '_ {
    fn driven(&self) -> Outcome<&dyn Sessions> {
        let none = || Trouble::Failed(format!("{} has no transactions of its own", self.engine()));
        self.sessions().ok_or_else(none)
    }

    pub fn commit_steps(&self, setup: &Setup) -> &'static [CommitStep] {
        self.sessions().map_or(&[], |sessions| sessions.commit_steps(setup))
    }

    pub fn open(
        &self,
        process: &Simulated,
        path: &str,
        setup: &Setup,
    ) -> Outcome<Box<dyn Session>> {
        self.driven()?.open(process, path, setup)
    }

    pub fn open_for_reading(&self, process: &Simulated, path: &str) -> Outcome<Box<dyn Session>> {
        self.driven()?.open_for_reading(process, path)
    }

    pub fn while_closed(
        &self,
        process: &Simulated,
        path: &str,
        act: &mut dyn FnMut(),
    ) -> Outcome<()> {
        self.driven()?.while_closed(process, path, act)
    }

    pub fn check_committed(&self, machine: &Machine, path: &str) -> Result<(), String> {
        self.sessions().map_or(Ok(()), |sessions| sessions.check_committed(machine, path))
    }

    pub fn check_abandoned(
        &self,
        machine: &Machine,
        path: &str,
        held: &[u64],
    ) -> Result<(), String> {
        self.sessions().map_or(Ok(()), |sessions| sessions.check_abandoned(machine, path, held))
    }
}

/// A connection to a database. Dropping it closes its files without a word, as a dead process does.
pub trait Session: Send {
    /// Takes a snapshot: `xLock(SHARED)`, or the read lock of WAL mode.
    fn begin_read(&mut self) -> Outcome<()>;

    /// Bytes of the database as the transaction sees it.
    fn size(&self) -> u64;

    /// Reads; fewer bytes at the end of the database.
    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Outcome<usize>;

    /// Becomes the writer: `xLock(RESERVED)`, or the write lock of WAL mode. Finds out what became
    /// of a writer that died.
    fn reserve(&mut self) -> Outcome<()>;

    /// Keeps readers off what it is going to write: `xLock(EXCLUSIVE)`, nothing in WAL mode.
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

    /// [`Sessions::commit_steps`] of what it was opened with; none if it may not write.
    fn commit_steps(&self) -> &'static [CommitStep];

    /// Does one of these steps, by its place in the list; they are done in order.
    /// `super_journal`: its name, if the transaction is over several databases.
    fn commit_step(&mut self, step: usize, super_journal: Option<&str>) -> Outcome<()>;

    /// Goes on as a reader, undoing what can still be undone: `xUnlock(SHARED)`.
    fn end_write(&mut self) -> Outcome<()>;

    /// Ends the transaction, undoing what can still be undone: `xUnlock(NONE)`.
    fn end(&mut self) -> Outcome<()>;

    /// Does what the engine does in the background.
    fn idle(&mut self) -> Outcome<()>;

    /// Closes.
    fn close(self: Box<Self>) -> Outcome<()>;
}

/// What an engine keeps for the connections of a process, or for one of them; what that is only it
/// knows.
pub type Slot = Arc<OnceLock<Arc<dyn Any + Send + Sync>>>;

/// A connection of the real SQLite in a process of a simulated machine, and the engine below it.
#[derive(Clone)]
pub struct World {
    /// The process.
    pub process: Simulated,
    /// The engine.
    pub subject: &'static dyn Subject,
    /// How it is opened.
    pub setup: Setup,
    /// What the engine keeps for all connections of the process,
    pub of_process: Slot,
    /// and for this one.
    pub of_connection: Slot,
}

impl World {
    /// The first connection of a process.
    pub fn new(process: Simulated, subject: &'static dyn Subject, setup: Setup) -> Self {
        let (of_process, of_connection) = Default::default();
        Self { process, subject, setup, of_process, of_connection }
    }

    /// Whether a path names a folder, such as a name fence.
    pub fn is_folder(&self, path: &Path) -> bool {
        let machine = self.process.machine();
        machine.exists(path) && machine.file_view(path).is_none()
    }

    /// One more in the same process.
    #[must_use]
    pub fn another(&self) -> Self {
        Self { of_connection: Slot::default(), ..self.clone() }
    }
}

/// How the real SQLite runs on an engine: which of its files are the engine's, and what its calls
/// are to the engine. [`Rollback`](super::rollback::Rollback) is the one for the rollback
/// modes; an engine below SQLite's WAL mode brings its own, with `-wal` and shared memory.
pub trait SqliteFiles: Send + Sync {
    /// `PRAGMA journal_mode` of every connection.
    fn journal_mode(&self) -> &'static str;

    /// Whether SQLite undoes what it has written by writing what was there before, and syncs that:
    /// so it does in the rollback modes. In WAL mode it forgets.
    fn undoes_by_writing(&self) -> bool;

    /// `xOpen`: a file by its name in the machine's root. The open database holds the world;
    /// without it no other file of that connection is found. `None`: it opens no such file.
    ///
    /// # Errors
    ///
    /// With SQLite's code.
    fn open(
        &self,
        world: &Arc<World>,
        name: &OsStr,
        flags: OpenFlags,
    ) -> dash_ffi::Result<Option<Box<dyn dash_ffi::File>>>;

    /// `xDelete`.
    ///
    /// # Errors
    ///
    /// With SQLite's code.
    fn delete(&self, world: &World, name: &OsStr, flush_folder: bool) -> dash_ffi::Result<()>;

    /// `xAccess`: whether there is such a file.
    ///
    /// # Errors
    ///
    /// With SQLite's code.
    fn exists(&self, world: &World, name: &OsStr) -> dash_ffi::Result<bool>;
}
