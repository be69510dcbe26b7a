//! `Capturer`: the log capturer of the paper. SQLite tells it of every statement of one connection;
//! what a transaction ran is there when the transaction's last frame is written.
//!
//! A transaction begins with the first statement that is told while no other one is under way and
//! nothing was begun. Statements are in the order in which they began: one that is not read to its
//! end (`INSERT … RETURNING`) has written everything before its first row.
//!
//! Values are read where a program has run: when SQLite tells of its end; or, where it commits by
//! itself, with the last frame, as SQLite tells of the end only after that.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dash_ffi::{Bound, Capture, TracedStatement, Unread, Watched, clock};
use dash_statement::{Buffer, Place, Reason, Value, encode};

use super::canaries::{Canaries, Committer};
use super::kind::Kind;

/// A blob of so many zeros is kept as their number.
const ZEROS: usize = 16;

/// What a transaction ran, with its last frame.
#[derive(Debug, PartialEq, Eq)]
pub struct Captured {
    /// The connection's number, in this process; `None`: nothing is known of it.
    pub connection: Option<u64>,
    /// The transaction's number, in its connection.
    transaction: u64,
    /// A [`dash_statement::Transaction`], encoded.
    pub bytes: Vec<u8>,
}

impl Captured {
    /// Of a connection whose statements nobody is told of.
    pub fn nothing(reason: Reason) -> Self {
        let mut known = dash_statement::Transaction::default();
        known.reasons.add(reason);
        Self { connection: None, transaction: 0, bytes: encode(&known) }
    }
}

/// See the module.
pub struct Capturer {
    number: u64,
    state: Mutex<State>,
}

/// A statement that has begun.
struct Running {
    id: usize,
    /// None: there was no room for it.
    place: Option<Place>,
    /// Its values are known, or can't be had.
    is_read: bool,
    /// A query inside of which another program writes: it is in the middle of its own.
    is_query: bool,
}

/// One that has ended.
struct Ended {
    id: usize,
    place: Option<Place>,
    preparations: i32,
    transaction: u64,
    /// Its text, if it is being reset before its end: it may commit by that.
    reset: Option<Box<[u8]>>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) buffer: Buffer,
    transaction: u64,
    /// It has been committed.
    finished: bool,
    running: Vec<Running>,
    /// Statements that other programs run inside one of these, and that write.
    inside: Vec<usize>,
    /// The statement of a savepoint or a transaction that is under way.
    control: Option<usize>,
    /// The query that began last, unless it has ended.
    query: Option<usize>,
    /// The statement that ended last.
    ended: Option<Ended>,
    canaries: Canaries,
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

    /// The connection is about to write, for the first time in its transaction.
    pub fn first_write(&self, watched: &Watched<'_>) {
        let mut state = self.state();
        if state.is_under_way() {
            return;
        }
        if state.resume_one(watched) {
            state.read_clock(1, 0);
            return;
        }
        if state.finished || watched.is_autocommit() {
            state.start();
        }
        if state.canaries.unseen_writer(watched) {
            // Nobody has told how the transaction before ended.
            state.start();
        }
    }

    /// What the transaction ran whose last frame is about to be written; `several`: it writes
    /// another database, too.
    pub fn at_commit(&self, watched: &Watched<'_>, several: bool) -> Captured {
        let mut state = self.state();
        if state.finished {
            state.start();
        }
        if several {
            state.buffer.note(Reason::SeveralDatabases);
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
        Captured {
            connection: Some(self.number),
            transaction: state.transaction,
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

impl State {
    /// Another transaction.
    fn start(&mut self) {
        self.buffer.clear();
        self.running.clear();
        self.inside.clear();
        (self.finished, self.control) = (false, None);
        self.transaction += 1;
        self.canaries.start();
    }

    /// Whether a statement that may write is under way.
    fn is_under_way(&self) -> bool {
        !self.finished
            && (!self.running.is_empty() || !self.inside.is_empty() || self.control.is_some())
    }

    /// Whether a statement was told that is under way, or is just being reset. After the hook is
    /// lost another one may have its number, but hardly its text.
    fn knows(&self, statement: &TracedStatement<'_>) -> bool {
        let (id, sql) = (statement.id(), statement.sql());
        let is_it = |running: &Running| {
            let known = running.place.and_then(|place| self.buffer.sql(place));
            running.id == id && (known.is_none() || known == sql)
        };
        let is_reset = |ended: &Ended| ended.id == id && ended.reset.as_deref() == sql;
        self.control == Some(id)
            || self.inside.contains(&id)
            || self.running.iter().any(is_it)
            || self.ended.as_ref().is_some_and(is_reset)
    }

    fn find(&self, id: usize) -> Option<&Running> {
        self.running.iter().find(|running| running.id == id)
    }

    /// Looks at the clock since it was told of a statement last. Of the readings the first `before`
    /// and the last `after` ones are SQLite's own.
    fn read_clock(&mut self, before: usize, after: u32) {
        let readings = clock::take();
        let place = self.running.last().and_then(|running| running.place);
        let is_read = readings.count.saturating_sub(after) as usize > before;
        let time = readings.first.get(before).filter(|_| is_read);
        if let (Some(place), Some(time)) = (place, time) {
            self.buffer.clock(place, *time);
        }
    }

    /// SQLite runs a statement again whose schema has changed since it was prepared. The first run
    /// did nothing. SQLite tells of both ends, and of the second begin before 3.39 only: there such
    /// a statement is recorded twice within `BEGIN` and `COMMIT`.
    fn resume(&mut self, statement: &TracedStatement<'_>) -> bool {
        if self.find(statement.id()).is_some() {
            return false;
        }
        let transaction = self.transaction;
        let again = self.ended.take_if(|ended| {
            ended.id == statement.id()
                && ended.transaction == transaction
                && ended.preparations < statement.preparations()
        });
        let Some(Ended { id, place, .. }) = again else { return false };
        self.running.push(Running { id, place, is_read: true, is_query: false });
        true
    }

    fn resume_one(&mut self, watched: &Watched<'_>) -> bool {
        let mut found = false;
        if !self.finished && self.ended.is_some() && self.running.is_empty() {
            watched.busy(|statement| found |= self.resume(statement));
        }
        found
    }

    /// A statement that writes begins.
    fn push(&mut self, statement: &TracedStatement<'_>, sql: &[u8]) {
        let id = statement.id();
        self.running.retain(|running| running.id != id);
        let place = self.buffer.begin(sql);
        self.running.push(Running { id, place, is_read: false, is_query: false });
    }

    /// A query turns out to be more than that: a function in it runs statements that write.
    fn push_query(&mut self, inner: &TracedStatement<'_>) {
        let Some(id) = self.query else { return };
        let mut place = None;
        inner.busy(|statement| {
            if statement.id() == id {
                place = statement.sql().and_then(|sql| self.buffer.begin(sql));
            }
        });
        if place.is_some() {
            self.running.push(Running { id, place, is_read: false, is_query: true });
        }
    }

    /// Reads the values of the statement that commits. One inside of which others run is in the
    /// middle of its program, and so is a query.
    fn read_committing(&mut self, statement: &TracedStatement<'_>) {
        let is_it = |running: &Running| running.id == statement.id() && !running.is_query;
        if self.inside.is_empty() && self.running.iter().any(is_it) {
            self.read(statement);
        }
    }

    /// Reads the values of a statement whose program has run.
    fn read(&mut self, statement: &TracedStatement<'_>) {
        let room = self.buffer.room();
        let id = statement.id();
        let Some(running) = self.running.iter_mut().find(|running| running.id == id) else {
            return;
        };
        if std::mem::replace(&mut running.is_read, true) {
            return;
        }
        let Some(place) = running.place else { return };
        match statement.values(room) {
            Ok(values) => self.buffer.values(place, values.into_iter().map(exact).collect()),
            Err(Unread::TooLarge) => self.buffer.fill(),
            Err(Unread::Refused) => self.buffer.note(Reason::Unreadable),
        }
    }
}

impl Capture for Capturer {
    fn begins(&self, statement: &TracedStatement<'_>) {
        let mut state = self.state();
        state.read_clock(0, 1);
        let autocommit = statement.is_autocommit();
        let sql = statement.sql().unwrap_or_default();
        let kind = Kind::of(sql);
        let is_query = kind == Kind::Other && statement.is_read_only();
        // SQLite itself runs queries on the schema in between.
        if !is_query && (state.finished || (autocommit && state.running.is_empty())) {
            state.start();
        }
        if !autocommit {
            let State { canaries, buffer, .. } = &mut *state;
            canaries.between(statement, buffer);
        }
        match kind {
            _ if is_query => state.query = Some(statement.id()),
            Kind::Other => {
                state.canaries.writes();
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
        if statement.is_read_only() {
            return;
        }
        if state.finished {
            state.start();
        }
        if state.running.is_empty() {
            state.push_query(statement);
        }
        if !state.inside.contains(&id) {
            state.inside.push(id);
            if let Some(place) = state.running.last().and_then(|running| running.place) {
                state.buffer.nest(place);
            }
        }
        state.canaries.writes();
        state.buffer.note(Reason::OtherProgram);
    }

    fn ends(&self, statement: &TracedStatement<'_>) {
        let mut state = self.state();
        let id = statement.id();
        let before = usize::from(state.resume(statement));
        state.read_clock(before, 1);
        state.inside.retain(|inside| *inside != id);
        if state.query == Some(id) {
            state.query = None;
        }
        if state.control == Some(id) {
            state.control = None;
            state.ended = Some(state.ended_now(statement, None));
        }
        if state.find(id).is_some() {
            if !state.finished {
                state.read(statement);
            }
            let place = state.find(id).and_then(|running| running.place);
            state.running.retain(|running| running.id != id);
            state.ended = Some(state.ended_now(statement, place));
        }
        if !statement.is_autocommit() {
            state.canaries.mark(statement);
        }
    }

    fn panicked(&self) {
        self.state().buffer.note(Reason::Failed);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl State {
    fn ended_now(&self, statement: &TracedStatement<'_>, place: Option<Place>) -> Ended {
        let (id, preparations) = (statement.id(), statement.preparations());
        let reset = statement.is_busy().then(|| statement.sql().unwrap_or_default().into());
        Ended { id, place, preparations, transaction: self.transaction, reset }
    }
}

fn exact(value: Bound) -> Value {
    match value {
        Bound::Null => Value::Null,
        Bound::Integer(value) => Value::Integer(value),
        Bound::Real(value) => Value::Real(value.to_bits()),
        Bound::Text(text) => Value::Text(text),
        Bound::Blob(blob) if blob.len() >= ZEROS && blob.iter().all(|byte| *byte == 0) => {
            Value::Zeroblob(blob.len() as u64)
        }
        Bound::Blob(blob) => Value::Blob(blob),
        Bound::Pointer => Value::Pointer,
    }
}
