//! What the database's file, its log and a sleeping busy handler have in common: one connection of
//! the engine, and what is remembered between their calls.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use dash_ffi::{Code, ConnectionRef, Error, KeptConnection, Result};
use dash_storage::real::{Memory, Real};
use dash_wal::{Connection, Error as EngineError, LockLevel, Reading, Turn};

use super::paper::Paper;
use super::parameters;
use super::reservations::{self, Reserves};
use crate::errors::{errno_of, to_sqlite};
use crate::latency::{Latencies, Op};
use crate::mode::Parameters;
use crate::mode::caller::Caller;
use crate::mode::linked::{self, Linked};
use crate::rest;
use crate::statements::capturer::Captured;
use crate::statements::kept::Kept;
use crate::statements::{self, Text};
use crate::wake::writer::{Reserve, Urgent};

/// A connection of the engine. SQLite calls one of its files at a time; a thread of dash's own may
/// come between two calls.
pub struct Link {
    pub caller: Caller,
    /// The database's.
    pub path: PathBuf,
    /// Whether SQLite may only read.
    pub is_read_only: bool,
    /// Whether this connection's statements are recorded.
    pub records: AtomicBool,
    /// See [`Together`].
    pub together: Together,
    linked: Linked<State>,
    /// All of this process.
    pub siblings: Weak<Links>,
    /// Whether [`reservations`] looks after it.
    pub watched: AtomicBool,
    /// In a forked child, the one that goes on for it.
    renewed: OnceLock<Arc<Self>>,
}

/// All of one database.
pub type Links = linked::Links<Link, Together>;

/// What they share.
#[derive(Default, Clone)]
pub struct Together {
    /// Who has waited too long for WRITER, of this process.
    pub urgent: Arc<Urgent>,
    /// The last statements of all whose statements are recorded.
    pub statements: Arc<Kept>,
}

impl Deref for Link {
    type Target = Linked<State>;

    #[inline]
    fn deref(&self) -> &Linked<State> {
        &self.linked
    }
}

/// For how long WRITER is held for SQLite: longer than a thread waits for a core on a busy machine.
const LEASE: Duration = Duration::from_millis(100);

/// See [`Link`].
#[derive(Default)]
pub struct State {
    /// None: it is closed.
    pub(super) connection: Option<Connection<Real>>,
    /// SQLite's own connection, to be asked about its other databases.
    pub kept: Option<KeptConnection>,
    /// Until when WRITER is held for SQLite, which has not come for it yet.
    pub reserved: Option<Instant>,
    /// Whether the connection has `-wal` open.
    pub has_log: bool,
    /// SQLite has closed `-wal`, and its cache may be older than what was in there: see
    /// [`super::file::WalFile`].
    pub outdated: bool,
    /// Whether the transaction in hand writes another file, too.
    pub undeferred: bool,
    /// When the commit frame was written.
    pub begun: Option<Instant>,
    /// What the transaction ran whose last frame is written.
    pub captured: Option<Captured>,
    /// How much of that is recorded in the log.
    pub text: Text,
    /// Whether they may carry it.
    pub paper: Paper,
    /// The user has said when the database is to come to rest.
    pub rest_is_chosen: bool,
    pub latencies: Latencies,
    /// The `errno` of the last failure.
    pub errno: i32,
}

impl State {
    /// What the URI says that is not the engine's.
    pub fn choose(&mut self, parameters: &Parameters) {
        self.text = parameters::chosen_text(parameters);
        self.rest_is_chosen = parameters.own(rest::PARAMETER).is_some();
        if parameters.is_on(statements::PARAMETER) {
            self.record();
        }
    }

    /// What is flushed in `-wal` is not in the log, nor what it ran: who records that lets the log
    /// stay in use, unless told otherwise.
    pub fn record(&mut self) {
        if let (false, Some(engine)) = (self.rest_is_chosen, &mut self.connection) {
            engine.settings.rest = None;
        }
    }

    /// The engine.
    ///
    /// # Errors
    ///
    /// `SQLITE_IOERR` once it is closed.
    pub fn engine(&mut self) -> Result<&mut Connection<Real>> {
        self.connection
            .as_mut()
            .ok_or_else(|| Error::new(Code::IOERR, "the database's file is closed"))
    }

    /// Calls the engine; keeps the `errno` of a failure.
    ///
    /// # Errors
    ///
    /// The engine's, as SQLite is told of it.
    #[inline]
    pub fn call<R>(
        &mut self,
        call: impl FnOnce(&mut Connection<Real>) -> core::result::Result<R, EngineError>,
    ) -> Result<R> {
        let result = call(self.engine()?);
        result.map_err(|error| {
            self.errno = errno_of(&error);
            to_sqlite(error)
        })
    }

    /// The same, timed where it flushed something, or waited for somebody's flush: most flushes
    /// that SQLite asks for are put off, and not all commits have to be durable.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn call_that_flushes<R>(
        &mut self,
        call: impl FnOnce(&mut Connection<Real>) -> core::result::Result<R, EngineError>,
    ) -> Result<R> {
        let (begun, before) = (Instant::now(), self.engine()?.flushes_and_waits());
        let result = self.call(call);
        if self.engine()?.flushes_and_waits() != before {
            self.latencies.record(Op::Flush, begun);
        }
        result
    }

    /// WRITER was had: a transaction that has read goes on with it, if it may. Whether others have
    /// committed since it began.
    ///
    /// # Errors
    ///
    /// The engine's; WRITER is given up then.
    pub fn upgrade_if_reading(&mut self) -> Result<bool> {
        let kept = self.kept.clone();
        let reads = |it: &ConnectionRef<'_>| match it.is_reading() {
            false => Reading::Nothing,
            true if it.reads_several() => Reading::Several,
            true => Reading::Own,
        };
        let reads = || kept.and_then(|kept| kept.visit(reads)).unwrap_or(Reading::Nothing);
        self.call(|engine| engine.upgrade_if(reads))
    }

    /// Gives WRITER up that was taken for SQLite, if it is still held so; whether it was.
    pub fn give_up(&mut self) -> bool {
        // What fails here fails again where SQLite sees it.
        self.reserved.take().map(|_| self.call(Connection::release_writer)).is_some()
    }
}

impl Link {
    /// Around an open engine; known to [`caller`] as long as somebody has it.
    pub fn new(
        engine: Connection<Real>,
        links: &Arc<Links>,
        caller: Caller,
        path: PathBuf,
        is_read_only: bool,
        records: bool,
    ) -> Arc<Self> {
        let state = State { connection: Some(engine), ..State::default() };
        let link = Arc::new(Self {
            caller,
            path,
            is_read_only,
            records: AtomicBool::new(records),
            together: links.more.clone(),
            linked: Linked::new(state),
            siblings: Arc::downgrade(links),
            watched: AtomicBool::new(false),
            renewed: OnceLock::new(),
        });
        links.add(&link);
        link
    }

    /// Whether this connection's statements are recorded.
    #[inline]
    pub fn records(&self) -> bool {
        self.records.load(Ordering::Relaxed)
    }

    /// The one that goes on for it.
    #[inline]
    pub fn renewed(&self) -> Option<&Arc<Self>> {
        self.renewed.get()
    }

    /// Leaves everything to another one, and stays as it is, for ever.
    pub fn give_way(self: &Arc<Self>, to: &Arc<Self>) {
        // Nobody drops what is the parent's.
        std::mem::forget(Arc::clone(self));
        drop(self.renewed.set(Arc::clone(to)));
    }

    /// Takes the engine out, to be closed.
    pub fn take(&self) -> Option<Connection<Real>> {
        let mut state = self.state();
        state.give_up();
        state.kept = None;
        state.connection.take()
    }

    /// `xDelete` of `-wal`: the end of what is in the log.
    ///
    /// # Errors
    ///
    /// The engine's.
    pub fn delete_log(&self) -> Result<()> {
        self.state().call(Connection::wal_delete)
    }
}

impl Reserves for Link {
    fn give_up_if_due(&self) -> bool {
        let mut state = self.state();
        if state.reserved.is_some_and(|until| until <= Instant::now()) {
            state.give_up();
        }
        let held = state.reserved.is_some();
        self.watched.store(held, Ordering::SeqCst);
        held
    }
}

impl Reserve for Link {
    fn was_called_last(&self) -> bool {
        Caller::last() == self.caller
    }

    fn reserve(&self) -> bool {
        if self.is_inherited() || !reservations::can_be_watched() {
            return false;
        }
        let mut state = self.state();
        let reserved = state.call(Connection::try_writer).unwrap_or(false);
        if reserved {
            state.reserved = Some(Instant::now() + LEASE);
        }
        reserved
    }

    fn watch(self: Arc<Self>) {
        if !self.watched.swap(true, Ordering::SeqCst) {
            let link: Arc<dyn Reserves> = self;
            reservations::watch(Arc::downgrade(&link));
        }
    }

    fn give_up(&self) {
        if !self.is_inherited() {
            self.state().give_up();
        }
    }

    fn urgent(&self) -> Arc<Urgent> {
        Arc::clone(&self.together.urgent)
    }

    fn turn(&self) -> Option<(Turn<Memory>, bool)> {
        if self.is_inherited() {
            return None;
        }
        let mut state = self.state();
        let engine = state.engine().ok()?;
        Some((engine.turn()?, engine.stock() == dash_wal::Stock::Read))
    }
}

/// The connection whose `-wal` SQLite opens or deletes: that which it has called last in this
/// thread. `None`: a connection that stock SQLite's rules read through the host.
///
/// # Errors
///
/// `SQLITE_CANTOPEN` if that can't be told.
pub fn caller(links: &Links) -> Result<Option<Arc<Link>>> {
    let links = links.open();
    let last = Caller::last();
    let Some(some) = links.first() else {
        return Ok(None);
    };
    // A file that left the mode and came back had another one before.
    let is_open = |link: &Link| link.state().connection.is_some();
    if let Some(link) = links.iter().find(|link| link.caller == last && is_open(link)) {
        return Ok(Some(Arc::clone(link)));
    }
    if some.caller.database == last.database {
        return Ok(None);
    }
    // Under locking_mode=EXCLUSIVE SQLite may have called nothing of it in this statement.
    let may_be = |link: &&Arc<Link>| {
        let mut state = link.state();
        !state.has_log
            && state.engine().is_ok_and(|engine| engine.database().level() == LockLevel::Exclusive)
    };
    match links.iter().find(may_be) {
        Some(link) => Ok(Some(Arc::clone(link))),
        None => Err(Error::new(
            Code::CANTOPEN,
            "a log is opened for a connection that has not locked its database",
        )),
    }
}
