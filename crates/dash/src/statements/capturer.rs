//! `Capturer`: the log capturer of the paper. SQLite tells it of every statement of one connection;
//! what a transaction ran is there when the transaction's last frame is written.
//!
//! A transaction begins with the first statement that is told while no other one is under way and
//! nothing was begun. Statements are in the order in which they began: one that is not read to its
//! end (`INSERT … RETURNING`) has written everything before its first row.
//!
//! Values are read where a program has run: when SQLite tells of its end; or, where it commits by
//! itself, with the last frame, as SQLite tells of the end only after that.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dash_ffi::{Capture, TracedStatement, Watched};
use dash_statement::{Circumstance, Reason, encode};

use super::canaries::Committer;
use super::kind::Kind;
use super::state::State;

/// What a transaction ran, with its last frame.
#[derive(Debug, PartialEq, Eq)]
pub struct Captured {
    /// The connection's number, in this process; `None`: nothing is known of it.
    pub connection: Option<u64>,
    /// The transaction's number, in its connection.
    transaction: u64,
    /// How many steps it has.
    pub steps: usize,
    /// A [`dash_statement::Transaction`], encoded.
    pub bytes: Vec<u8>,
}

impl Captured {
    /// Of a connection whose statements nobody is told of.
    pub fn nothing(reason: Reason) -> Self {
        let mut known = dash_statement::Transaction::default();
        known.reasons.add(reason);
        Self { connection: None, transaction: 0, steps: 0, bytes: encode(&known) }
    }
}

/// See the module.
pub struct Capturer {
    number: u64,
    state: Mutex<State>,
}

impl Default for Capturer {
    fn default() -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        Self { number, state: Mutex::default() }
    }
}

impl Capturer {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the host is known to have the hook by now.
    pub fn has_lost_the_hook(&self) -> bool {
        self.state().canaries.is_lost()
    }

    /// The connection asks for the right to write. Of its transactions so many steps are of use.
    pub fn asks_to_write(&self, watched: &Watched<'_>, steps: usize) {
        let mut state = self.state();
        state.buffer.limit_steps(steps);
        if !state.is_under_way() {
            state.look_who_asks(watched);
        }
        state.canaries.asks();
    }

    /// It gives that right up.
    pub fn ceases_to_write(&self) {
        self.state().canaries.gives_up();
    }

    /// What the transaction ran whose last frame is about to be written into the log of the
    /// database at `path`; `several`: it writes another database, too.
    pub fn at_commit(&self, watched: &Watched<'_>, path: &Path, several: bool) -> Captured {
        let mut state = self.state();
        if state.finished {
            state.start();
        }
        let mut committer = Committer::default();
        let before = usize::from(state.resume_one(watched));
        state.read_clock(before, 0);
        watched.busy(|statement| {
            committer.look(statement, state.knows(statement));
            state.read_committing(statement);
        });
        let State { canaries, buffer, .. } = &mut *state;
        canaries.at_commit(&committer, buffer);
        if several {
            buffer.note(Reason::SeveralDatabases);
        }
        let mut context = state.context;
        if !watched.has_only(path) {
            context.add(Circumstance::OtherDatabase);
        }
        if !state.is_confirmed() {
            context.add(Circumstance::Unconfirmed);
        }
        state.buffer.context(context);
        Captured {
            connection: Some(self.number),
            transaction: state.transaction,
            steps: state.buffer.transaction().events.len(),
            bytes: encode(state.buffer.transaction()),
        }
    }

    /// The transaction in hand is committed. Whether it is the one of `captured`.
    pub fn committed(&self, captured: &Captured) -> bool {
        let mut state = self.state();
        state.finished = true;
        state.transaction == captured.transaction
    }
}

impl Capture for Capturer {
    fn begins(&self, statement: &TracedStatement<'_>) {
        let mut state = self.state();
        if state.goes_on(statement) {
            return;
        }
        state.read_clock(0, 1);
        let autocommit = statement.is_autocommit();
        let sql = statement.sql().unwrap_or_default();
        let kind = Kind::of(sql);
        let is_query = kind == Kind::Other && statement.is_read_only();
        // SQLite itself runs queries on the schema in between.
        if !is_query && (state.finished || (autocommit && !state.has_programs())) {
            state.start();
        }
        let is_full = state.buffer.is_full();
        if !autocommit && !is_full {
            let State { canaries, buffer, .. } = &mut *state;
            canaries.between(statement, buffer);
        }
        match kind {
            _ if is_query => state.query = Some(statement.id()),
            Kind::Other => {
                state.canaries.writes();
                if !is_full {
                    state.look_around(statement, sql);
                }
                state.push(statement, sql);
            }
            kind => {
                state.control = Some(statement.id());
                if let Kind::Control(control) = kind {
                    state.buffer.control(control, sql);
                }
            }
        }
    }

    fn runs_inside(&self, statement: &TracedStatement<'_>) {
        let mut state = self.state();
        let id = statement.id();
        let before = usize::from(state.resume(statement));
        let trigger_of = state.find(id).map(|running| running.place);
        let is_part = trigger_of.is_some() || state.query == Some(id);
        state.read_clock(before, u32::from(!is_part));
        if let Some(place) = trigger_of {
            if let Some(place) = place {
                state.buffer.nest(place);
            }
            return;
        }
        let is_read_only = statement.is_read_only();
        if is_read_only && Kind::of(statement.sql().unwrap_or_default()) == Kind::Other {
            return;
        }
        // Virtual tables run statements in the middle of a COMMIT.
        if state.finished || (statement.is_autocommit() && !state.is_under_way()) {
            state.start();
        }
        if state.running.is_empty() && state.control.is_none() {
            state.push_query(statement);
        }
        if !state.inside.contains(&id) {
            state.inside.push(id);
            if let Some(place) = state.running.last().and_then(|running| running.place) {
                state.buffer.nest(place);
            }
        }
        if !is_read_only {
            state.canaries.writes();
            state.look_around(statement, statement.sql().unwrap_or_default());
        }
        state.buffer.note(Reason::OtherProgram);
    }

    fn ends(&self, statement: &TracedStatement<'_>) {
        let mut state = self.state();
        let id = statement.id();
        let before = usize::from(state.resume(statement));
        state.read_clock(before, 1);
        if state.query == Some(id) {
            state.query = None;
        }
        if state.inside.contains(&id) || state.control == Some(id) {
            state.inside.retain(|inside| *inside != id);
            state.control = state.control.filter(|control| *control != id);
            state.ended = Some(state.ended_now(statement, None));
        }
        if state.find(id).is_some() {
            if !state.finished {
                state.read(statement);
                state.confirm(statement);
            }
            let place = state.find(id).and_then(|running| running.place);
            state.running.retain(|running| running.id != id);
            state.ended = Some(state.ended_now(statement, place));
        }
        // What is not known whole needs no more reasons.
        if !state.buffer.is_full() && !statement.is_autocommit() {
            state.canaries.mark(statement);
        }
    }

    fn panicked(&self) {
        self.state().buffer.note(Reason::Failed);
    }
}
