//! What SQLite's calls on a database and the thread that brings databases to rest have in common:
//! one connection of the engine, which is closed at rest and opened again when SQLite wants it
//! (SHADOW-25 in FORMAT.md of `dash-shadow`).

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dash_engine::locks::LockLevel;
use dash_ffi::{Code, HostVfs, OpenFlags, Result, Window};

use super::at_rest::Left;
use super::engine::{Failed, Patience, Rollback, ToOpen};
use super::orphans;
use super::state::{Held, State};
use crate::errors::to_sqlite;
use crate::leftovers::Neighbours;
use crate::mapping::Maps;
use crate::mode::linked::{self, Linked};
use crate::mode::{Parameters, Shared, Statistic};
use crate::rest;

/// For how long nobody who opens or closes the database is waited for again when that was in vain:
/// he may be stopped, and SQLite's busy handler does not count the time.
const GRUDGE: Duration = Duration::from_secs(60);

/// A connection of the engine. SQLite makes one call of it at a time; the thread that brings
/// databases to rest comes between two calls.
pub struct Link<E> {
    /// The database's.
    pub path: PathBuf,
    host: HostVfs,
    shared: Arc<Shared>,
    /// Whether somebody asked for the mode, and it is not only what was found.
    asked: bool,
    /// How long after its last commit the database comes to rest.
    pub rest: Option<Duration>,
    linked: Linked<State<E>>,
    /// All of this process.
    pub siblings: Arc<Links<E>>,
}

/// All of one database.
pub type Links<E> = linked::Links<Link<E>>;

/// How long after its last commit a database comes to rest if nothing is asked for.
const USUAL_REST: Option<Duration> = Some(Duration::from_secs(10));

impl<E> Deref for Link<E> {
    type Target = Linked<State<E>>;

    #[inline]
    fn deref(&self) -> &Linked<State<E>> {
        &self.linked
    }
}

impl<E: Rollback> Link<E> {
    /// Around an engine that was opened so, or none: at rest.
    pub fn new(
        engine: Option<E>,
        what: &ToOpen<'_>,
        shared: &Arc<Shared>,
        window: Arc<Window>,
    ) -> Arc<Self> {
        let state = State {
            chosen: what.parameters.clone(),
            engine,
            maps: Maps::new(window),
            left: Left::default(),
            used: 0,
            is_stale: false,
            is_another: false,
            gave_up: None,
        };
        let chosen = what.parameters.own(rest::PARAMETER);
        let link = Arc::new(Self {
            path: what.path.to_path_buf(),
            host: *what.host,
            shared: Arc::clone(shared),
            asked: what.asked,
            rest: chosen.map_or(USUAL_REST, |text| rest::read(text).ok().flatten()),
            linked: Linked::new(state),
            siblings: shared.of(),
        });
        link.siblings.add(&link);
        link
    }

    /// Does something with the mappings. Nothing in a forked child where a thread has them that is
    /// not there.
    pub fn with_maps(&self, act: impl FnOnce(&mut Maps)) {
        if let Some(mut state) = self.state_here() {
            act(&mut state.maps);
        }
    }

    /// The engine; opened, if it was at rest.
    ///
    /// # Errors
    ///
    /// Why it can't be opened: `SQLITE_BUSY` while somebody else writes.
    #[inline]
    pub fn engine(&self) -> Result<Held<'_, E>> {
        Ok(self.engine_or_why()?)
    }

    /// The same, with what kind of failure it was.
    ///
    /// # Errors
    ///
    /// As of [`engine`](Self::engine).
    #[inline]
    pub fn engine_or_why(&self) -> core::result::Result<Held<'_, E>, Failed> {
        let mut state = self.state();
        if state.engine.is_none() {
            self.open(&mut state)?;
        }
        Ok(Held(state))
    }

    /// The engine, unless it is at rest.
    #[inline]
    pub fn engine_if_open(&self) -> Option<Held<'_, E>> {
        let state = self.state();
        state.engine.is_some().then_some(Held(state))
    }

    /// Ends a rest.
    #[cold]
    fn open(&self, state: &mut State<E>) -> core::result::Result<(), Failed> {
        let mut chosen = Parameters::default();
        state.keep(&mut chosen);
        let begun = Instant::now();
        let in_vain = state.gave_up.is_some_and(|at| at.elapsed() < GRUDGE);
        let patience = if in_vain { Patience::NONE } else { Patience::AFTER_REST };
        let opened = E::open(&ToOpen {
            host: &self.host,
            path: &self.path,
            parameters: &chosen,
            flags: OpenFlags::READWRITE,
            beside: &Neighbours::of(&self.path),
            asked: self.asked,
            patience,
        });
        state.gave_up = match &opened {
            Ok(_) => None,
            Err(_) if begun.elapsed() >= patience.others => Some(Instant::now()),
            Err(_) => state.gave_up,
        };
        let engine = opened?;
        let found = engine.identity();
        state.is_stale |= !state.left.is_state(&found);
        state.is_another |= !state.left.is_of::<E>(&found, &self.path);
        state.engine = Some(engine);
        Ok(())
    }

    /// SQLite is about to read what is there without the engine.
    pub fn is_read_at_rest(&self) {
        let mut state = self.state();
        state.is_stale = true;
        state.is_another |= state.left.is_read::<E>(&self.path);
    }

    /// SQLite has read that there.
    pub fn has_read_at_rest(&self, read: &mut [u8], offset: u64) {
        let mut state = self.state();
        if state.is_stale || state.is_another {
            state.answer_wrong(read, offset);
        }
    }

    /// What maps pages of the database.
    pub fn window(&self) -> Arc<Window> {
        Arc::clone(self.state().maps.window())
    }

    /// Whether the database was put into WAL mode at rest, by somebody else, and nobody wants it to
    /// stay in this one.
    pub fn is_in_wal_mode(&self) -> bool {
        let beside = Neighbours::of(&self.path);
        !self.asked
            && self.state().engine.is_none()
            && (beside.says_wal(&self.path) || beside.has_wal().unwrap_or(false))
    }

    /// Closes the engine, if nothing is lost by that. `tell` hears what the user should know of
    /// what is left behind. `false`: it is to be tried again later. Whoever is in a transaction is
    /// not waited for: its end has the database watched again.
    ///
    /// # Errors
    ///
    /// Those of closing; it is closed all the same, and the next one to open it sees to the rest.
    pub fn let_go(&self, state: &mut State<E>, tell: &mut dyn FnMut(&str)) -> Result<bool> {
        let Some(engine) = state.engine.take_if(|engine| engine.is_idle()) else {
            return Ok(true);
        };
        if E::is_at_work(&self.shared) || state.maps.are_in_use() {
            state.engine = Some(engine);
            return Ok(false);
        }
        // The mappings go first, as in `close_engine` of the file.
        state.maps.end();
        state.left.note(&engine, &self.path);
        orphans::close(engine, &self.path, tell).map_err(to_sqlite)?;
        Ok(true)
    }

    /// The same; what is to be told, and what fails, goes to the log.
    pub fn try_let_go(&self, state: &mut State<E>) -> bool {
        let host = self.host;
        let let_go = self.let_go(state, &mut |message| host.note(Code::WARNING, message));
        let_go.unwrap_or_else(|error| {
            host.note(
                error.code,
                &format!("{} did not come to rest: {error}", self.path.display()),
            );
            true
        })
    }

    /// What the connections of this process share.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Takes the engine out, to be closed. `None`: it is at rest.
    pub fn take(&self) -> Option<E> {
        let mut state = self.state();
        state.maps.end();
        state.engine.take()
    }

    /// The lock held.
    #[inline]
    pub fn level(&self) -> LockLevel {
        self.engine_if_open().map_or(LockLevel::None, |engine| engine.level())
    }

    /// What is chosen, for the next engine, too.
    pub fn chosen<R>(&self, look: impl FnOnce(&Parameters) -> R) -> R {
        look(&self.state().chosen)
    }

    /// Chooses one of [`Rollback::CHOSEN`], from now on.
    pub fn choose(&self, name: &'static str, value: &str) {
        let State { chosen, engine, .. } = &mut *self.state();
        chosen.set_own(name, value);
        if let Some(engine) = engine {
            engine.choose(chosen);
        }
    }

    /// Whether an engine that is open now has one of the files of this one.
    pub fn has_file_of(&self, other: &E) -> bool {
        let Some(state) = self.try_state() else {
            return false;
        };
        match &state.engine {
            Some(engine) => other.files().iter().any(|id| engine.files().contains(id)),
            None => state.left.is_of::<E>(&other.identity(), &self.path),
        }
    }

    /// Whether the database is at rest, or what it waits for, as `dash_stats` has it.
    pub fn resting(&self) -> &'static str {
        let state = self.state();
        let is_written = match &state.engine {
            Some(engine) => engine.is_written(),
            None => E::is_open(&self.path),
        };
        drop(state);
        if !is_written {
            return "at rest";
        }
        if self.rest.is_none() {
            return "off";
        }
        let siblings = self.siblings.open();
        // This one is in a transaction, as it is asked. One that is in use just now may be about to
        // be let go.
        let others = || siblings.iter().filter(|link| !std::ptr::eq(&***link, self));
        let is = |held: fn(&State<E>) -> bool| {
            others().any(|link| link.try_state().is_some_and(|state| held(&state)))
        };
        match () {
            () if is(State::is_at_work) => "transaction",
            () if is(|state| state.maps.are_in_use()) => "mapped",
            () => "soon",
        }
    }

    /// Rows of `dash_stats`.
    pub fn statistics(&self) -> Vec<Statistic> {
        let state = self.state();
        let (engine, left) = (state.engine.as_ref(), &state.left);
        let (mut rows, totals) = engine.map(E::counters).unwrap_or_default();
        left.add_to(&mut rows);
        let mut rows = Statistic::with_totals(&rows, &totals);
        let more = [
            // What is kept for readers of older states, of any connection.
            ("kept_bytes", engine.map_or(0, E::kept_bytes)),
            // The newest commit's number, over all connections.
            ("sequence", engine.map_or(left.sequence, E::sequence)),
            ("rests", left.rests),
        ];
        rows.extend(more.map(Statistic::alone));
        rows
    }
}
