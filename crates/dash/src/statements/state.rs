//! What is known of a connection between two calls of SQLite's: which of its statements are under
//! way, and what the transaction in hand has run.

use dash_ffi::{Bound, TracedStatement, Unread, Watched, clock};
use dash_statement::{Buffer, Circumstance, Context, Place, Reason, Value, writes_schema};

use super::canaries::Canaries;

/// Bytes that SQLite takes in a value, unless it was built or told otherwise.
const LONGEST: i32 = 1_000_000_000;
/// Digits of a real number that it keeps in a text, unless it was told otherwise.
const DIGITS: i32 = 17;

/// A blob of so many zeros is kept as their number.
const ZEROS: usize = 16;

/// A statement that has begun.
pub struct Running {
    pub id: usize,
    /// None: there was no room for it.
    pub place: Option<Place>,
    /// Its values are known, or can't be had.
    pub is_read: bool,
    /// A query inside of which another program writes: it is in the middle of its own.
    pub is_query: bool,
    /// Rows that its connection had changed when it began.
    pub changes: i32,
}

/// One that has ended.
pub struct Ended {
    pub id: usize,
    pub place: Option<Place>,
    pub preparations: i32,
    pub changes: i32,
    pub transaction: u64,
    /// Its text, if it is being reset before its end: it may commit by that.
    pub reset: Option<Box<[u8]>>,
}

/// See the module.
#[derive(Default)]
pub struct State {
    pub buffer: Buffer,
    pub transaction: u64,
    /// It has been committed.
    pub finished: bool,
    pub running: Vec<Running>,
    /// Statements that other programs run inside one of these, or inside a query, and that write,
    /// begin or end transactions.
    pub inside: Vec<usize>,
    /// The statement of a savepoint or a transaction that is under way.
    pub control: Option<usize>,
    /// The query that began last, unless it has ended.
    pub query: Option<usize>,
    /// The statement that ended last.
    pub ended: Option<Ended>,
    pub canaries: Canaries,
    /// What the connection's statements have made of it.
    pub context: Context,
    /// Statements of the transaction that are not known to have changed a row. One that failed has
    /// not; run again, where nothing is in its way, it would.
    pub unconfirmed: Vec<Place>,
}

impl State {
    /// Another transaction.
    pub fn start(&mut self) {
        self.buffer.clear();
        self.running.clear();
        self.inside.clear();
        self.unconfirmed.clear();
        (self.finished, self.control) = (false, None);
        self.transaction += 1;
        self.canaries.start();
    }

    /// Whether a program is under way that writes, or has one inside that does.
    pub fn has_programs(&self) -> bool {
        !self.running.is_empty() || !self.inside.is_empty()
    }

    /// Whether a statement that may write is under way.
    pub fn is_under_way(&self) -> bool {
        !self.finished && (self.has_programs() || self.control.is_some())
    }

    /// Whether a statement was told that is under way, or is just being reset. After the hook is
    /// lost another one may have its number, but hardly its text.
    pub fn knows(&self, statement: &TracedStatement<'_>) -> bool {
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

    pub fn find(&self, id: usize) -> Option<&Running> {
        self.running.iter().find(|running| running.id == id)
    }

    /// Looks at the clock since it was told of a statement last. Of the readings the first `before`
    /// and the last `after` ones are SQLite's own.
    pub fn read_clock(&mut self, before: usize, after: u32) {
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
    pub fn resume(&mut self, statement: &TracedStatement<'_>) -> bool {
        if self.find(statement.id()).is_some() {
            return false;
        }
        let transaction = self.transaction;
        let again = self.ended.take_if(|ended| {
            ended.id == statement.id()
                && ended.transaction == transaction
                && ended.preparations < statement.preparations()
        });
        let Some(Ended { id, place, changes, .. }) = again else { return false };
        self.running.push(Running { id, place, is_read: true, is_query: false, changes });
        true
    }

    /// The same, for whichever is under way now.
    pub fn resume_one(&mut self, watched: &Watched<'_>) -> bool {
        let mut found = false;
        let no_other_writes = self.running.iter().all(|running| running.is_query);
        if no_other_writes && !self.finished && self.ended.is_some() {
            watched.busy(|statement| found |= self.resume(statement));
        }
        found
    }

    /// Whether what begins is a part of a statement that has begun, and not ended: the action of a
    /// foreign key is a program without a name, which SQLite tells of by its statement's text.
    pub fn goes_on(&mut self, statement: &TracedStatement<'_>) -> bool {
        let begun = self.find(statement.id()).filter(|_| !self.finished);
        let Some(place) = begun.map(|running| running.place) else { return false };
        // No clock was read for its begin.
        self.read_clock(0, 0);
        if let Some(place) = place {
            self.buffer.nest(place);
        }
        true
    }

    /// The connection asks for the right to write, and no statement is known to be under way.
    pub fn look_who_asks(&mut self, watched: &Watched<'_>) {
        if self.resume_one(watched) {
            return self.read_clock(1, 0);
        }
        if self.finished || watched.is_autocommit() {
            self.start();
        }
        if self.canaries.unseen_writer(watched) {
            // Nobody has told how the transaction before ended.
            self.start();
        }
    }

    /// Notes what a statement that writes makes of its connection, and what that allows it.
    pub fn look_around(&mut self, statement: &TracedStatement<'_>, sql: &[u8]) {
        if !self.buffer.is_last_text(sql) && writes_schema(sql) {
            self.context.add(Circumstance::SchemaWritten);
        }
        if statement.has_temporary() {
            self.context.add(Circumstance::Temporary);
        }
        let has_all_digits = statement.digits_of_reals().is_none_or(|digits| digits == DIGITS);
        if statement.longest_value() < LONGEST || !has_all_digits {
            self.context.add(Circumstance::Settings);
        }
    }

    /// A statement that writes begins.
    pub fn push(&mut self, statement: &TracedStatement<'_>, sql: &[u8]) {
        let id = statement.id();
        self.running.retain(|running| running.id != id);
        let (place, changes) = (self.buffer.begin(sql), statement.total_changes());
        self.unconfirmed.extend(place);
        self.running.push(Running { id, place, is_read: false, is_query: false, changes });
    }

    /// A statement that writes has ended.
    pub fn confirm(&mut self, statement: &TracedStatement<'_>) {
        let Some(running) = self.find(statement.id()) else { return };
        let Some(place) = running.place else { return };
        if running.changes == statement.total_changes() {
            return;
        }
        let found = self.unconfirmed.iter().rposition(|it| *it == place);
        found.map(|at| self.unconfirmed.swap_remove(at));
    }

    /// Whether each statement of the transaction has changed a row, as its last frame is written.
    /// One that commits by itself has done what it does, though SQLite tells of its end after that.
    pub fn is_confirmed(&self) -> bool {
        match self.unconfirmed[..] {
            [] => true,
            [place] => {
                self.control.is_none()
                    && self.buffer.transaction().events.len() == 1
                    && self.running.iter().any(|running| running.place == Some(place))
            }
            _ => false,
        }
    }

    /// A query turns out to be more than that: a function in it runs statements that write.
    pub fn push_query(&mut self, inner: &TracedStatement<'_>) {
        let Some(id) = self.query else { return };
        let mut place = None;
        inner.busy(|statement| {
            if statement.id() == id {
                place = statement.sql().and_then(|sql| self.buffer.begin(sql));
            }
        });
        if place.is_some() {
            let changes = inner.total_changes();
            self.running.push(Running { id, place, is_read: false, is_query: true, changes });
        }
    }

    /// Reads the values of the statement that commits. One inside of which others run is in the
    /// middle of its program, and so is a query.
    pub fn read_committing(&mut self, statement: &TracedStatement<'_>) {
        let is_it = |running: &Running| running.id == statement.id() && !running.is_query;
        if self.inside.is_empty() && self.running.iter().any(is_it) {
            self.read(statement);
        }
    }

    /// Reads the values of a statement whose program has run.
    pub fn read(&mut self, statement: &TracedStatement<'_>) {
        let room = self.buffer.room();
        let id = statement.id();
        let Some(running) = self.running.iter_mut().find(|running| running.id == id) else {
            return;
        };
        if std::mem::replace(&mut running.is_read, true) {
            return;
        }
        let Some(place) = running.place else { return };
        let values = statement.values(room);
        // What that has read of the clock is nobody's.
        clock::take();
        match values {
            Ok(values) => self.buffer.values(place, values.into_iter().map(exact).collect()),
            Err(Unread::TooLarge) => self.buffer.fill(),
            Err(Unread::Refused) => self.buffer.note(Reason::Unreadable),
        }
    }

    pub fn ended_now(&self, statement: &TracedStatement<'_>, place: Option<Place>) -> Ended {
        let (id, preparations) = (statement.id(), statement.preparations());
        let reset = statement.is_busy().then(|| statement.sql().unwrap_or_default().into());
        let changes = statement.total_changes();
        Ended { id, place, preparations, changes, transaction: self.transaction, reset }
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
