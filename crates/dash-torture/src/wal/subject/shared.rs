//! What the calls of a connection's files go to: its engine, and how it was opened.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dash_ffi::{Code, Error, Result};
use dash_simulated::Simulated;
use dash_wal::{Barrier, OpenOptions, Process, Stock, Tuning};

use super::busy::Busy;
use super::carry::{Carry, Executor};
use super::older::Older;
use crate::sim::subject::{DB, Sizes, World};

type Connection = dash_wal::Connection<Simulated>;

/// The variant whose log lies elsewhere, on the same file system.
pub(super) const ELSEWHERE: &str = "elsewhere";
/// The variant whose log is stored to.
pub(super) const MEMORY: &str = "memory";
/// The variant whose `-wal` is in memory.
pub(super) const ALONE: &str = "alone";
/// The variant beside which stock SQLite writes.
pub(super) const BESIDE: &str = "beside";
/// The variant beside which it checkpoints, too.
pub(super) const CHECKPOINTED: &str = "checkpointed";
/// The folder that is in memory.
pub(super) const FOLDER: &str = "pmem";
/// And the log there.
pub(super) const LOG: &str = "/pmem/app.db-dashlog";

/// Where a variant's log is, if not beside the database.
fn log_of(variant: &str) -> Option<&'static str> {
    match variant {
        MEMORY => Some(LOG),
        ELSEWHERE => Some("/log-of-app.db"),
        _ => None,
    }
}

/// An engine's result as SQLite's.
pub(super) fn engine<T>(result: dash_wal::Result<T>, code: Code) -> Result<T> {
    use dash_wal::Error as E;
    result.map_err(|error| match error {
        E::Busy => Code::BUSY.into(),
        E::Held(who) => Error::new(Code::BUSY, who),
        E::BusySnapshot => Code::BUSY_SNAPSHOT.into(),
        error => Error::new(code, error.to_string()),
    })
}

/// What the calls of a connection's files go to.
pub(super) struct Shared {
    connection: Mutex<Option<Connection>>,
    /// What its commits say of themselves: so many bytes; 0: nothing.
    pub(super) says: AtomicUsize,
    /// Whether statements carry them.
    carry: Mutex<Carry>,
    /// Whether its SQLite is an older one.
    pub(super) older: Older,
    /// `psow=0`: the last frame of a commit is written again, to the end of a sector.
    pub(super) pads: AtomicBool,
    /// SQLite does not tell that it reads.
    pub(super) hides: AtomicBool,
    pub(super) busy: Busy,
}

impl Shared {
    pub(super) fn open(world: &World) -> Result<Self> {
        let new = || Arc::new(Process::<Simulated>::default()) as Arc<dyn Any + Send + Sync>;
        let process = Arc::clone(world.of_process.get_or_init(new));
        let process = process.downcast::<Process<Simulated>>().map_err(|_| Code::INTERNAL)?;
        let barrier = if world.setup.variant == "barrier" { Barrier::Wal } else { Barrier::Log };
        let tuning = match world.setup.sizes {
            Sizes::Usual => Tuning::default(),
            Sizes::Tiny | Sizes::Wide => Tuning::tiny(),
        };
        let log = log_of(world.setup.variant).map(PathBuf::from);
        let executor = Some(Arc::new(Executor) as Arc<_>);
        let wal_in_memory = (world.setup.variant == ALONE).then_some(true);
        let options = OpenOptions { barrier, tuning, log, executor, ..OpenOptions::default() };
        let stock = match world.setup.variant {
            BESIDE => Some(Stock::Write),
            CHECKPOINTED => Some(Stock::Checkpoint),
            _ => None,
        };
        let options = OpenOptions { wal_in_memory, stock, ..options };
        let opened = Connection::open(&world.process, Path::new(DB), &options, &process);
        engine(opened, Code::CANTOPEN).map(|connection| Self {
            connection: Mutex::new(Some(connection)),
            says: AtomicUsize::new(0),
            carry: Mutex::default(),
            older: Older::default(),
            pads: AtomicBool::new(false),
            hides: AtomicBool::new(false),
            busy: Busy::default(),
        })
    }

    pub(super) fn get(&self) -> Result<Held<'_>> {
        let held = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        if held.is_some() { Ok(Held(held)) } else { Err(Code::MISUSE.into()) }
    }

    pub(super) fn carry(&self) -> MutexGuard<'_, Carry> {
        self.carry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn close(&self) -> Result<()> {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner).take();
        connection.map_or(Ok(()), |connection| engine(connection.close(), Code::IOERR_CLOSE))
    }
}

/// An open connection, locked.
pub(super) struct Held<'a>(MutexGuard<'a, Option<Connection>>);

impl std::ops::Deref for Held<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.0.as_ref().unwrap_or_else(|| unreachable!("Shared::get has looked"))
    }
}

impl std::ops::DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut Connection {
        self.0.as_mut().unwrap_or_else(|| unreachable!("Shared::get has looked"))
    }
}
