//! The statement log buffer of the paper: what the transaction in hand has run so far, in bounded
//! memory.

use std::collections::HashSet;

use crate::context::Context;
use crate::model::{Control, Event, Sql, Statement, Transaction, Value};
use crate::reason::Reason;

/// Bytes that a transaction may take by default.
pub const LIMIT: usize = 256 << 10;

/// Steps of a transaction that no more than a block of a record is going to hold: to read the
/// values of more costs more than to run them.
pub const STEPS_OF_A_BLOCK: usize = 500;

/// Bytes of a step or a value, whatever it holds.
const STEP: usize = 24;
const VALUE: usize = 9;

/// Where a statement is in the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place(usize);

/// See the module.
#[derive(Debug)]
pub struct Buffer {
    transaction: Transaction,
    texts: HashSet<Sql>,
    /// The one that came last: programs run few statements over and over.
    last: Option<Sql>,
    used: usize,
    limit: usize,
    /// So many steps at most.
    steps: usize,
    full: bool,
}

impl Default for Buffer {
    fn default() -> Self {
        Self::new(LIMIT)
    }
}

impl Buffer {
    /// An empty one that takes so many bytes at most.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        let transaction = Transaction::default();
        let (texts, steps) = (HashSet::new(), usize::MAX);
        Self { transaction, texts, last: None, used: 0, limit, steps, full: false }
    }

    /// Bytes that values may still take.
    #[must_use]
    pub fn room(&self) -> usize {
        if self.full { 0 } else { self.limit.saturating_sub(self.used) }
    }

    /// Lets transactions have so many steps.
    pub fn limit_steps(&mut self, steps: usize) {
        self.steps = steps;
    }

    /// Whether what follows is dropped.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Whether nothing is known of the transaction.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.transaction == Transaction::default()
    }

    /// A statement begins; its values are not known yet. `None`: it is dropped.
    pub fn begin(&mut self, sql: &[u8]) -> Option<Place> {
        let sql = self.text(sql)?;
        let statement = Statement { sql, values: None, clock: None, nested: 0 };
        self.transaction.events.push(Event::Statement(statement));
        Some(Place(self.transaction.events.len() - 1))
    }

    /// A savepoint's statement.
    pub fn control(&mut self, control: Control, sql: &[u8]) {
        if let Some(sql) = self.text(sql) {
            self.transaction.events.push(Event::Control(control, sql));
        }
    }

    /// Whether the step before has this text.
    #[must_use]
    pub fn is_last_text(&self, sql: &[u8]) -> bool {
        self.last.as_deref() == Some(sql)
    }

    /// The text of a statement.
    #[must_use]
    pub fn sql(&self, place: Place) -> Option<&[u8]> {
        match self.transaction.events.get(place.0)? {
            Event::Statement(statement) => Some(&statement.sql),
            Event::Control(..) => None,
        }
    }

    /// What a statement was run with.
    pub fn values(&mut self, place: Place, values: Vec<Value>) {
        let size = values.iter().map(size).sum::<usize>();
        if size > self.room() {
            return self.fill();
        }
        if values.contains(&Value::Pointer) {
            self.note(Reason::Pointer);
        }
        if let Some(statement) = self.statement(place) {
            statement.values = Some(values);
            self.used += size;
        }
    }

    /// The time that a statement was told, in milliseconds since 1970.
    pub fn clock(&mut self, place: Place, time: i64) {
        if let Some(statement) = self.statement(place) {
            statement.clock = Some(time);
        }
    }

    /// A statement ran inside another one.
    pub fn nest(&mut self, place: Place) {
        if let Some(statement) = self.statement(place) {
            statement.nested = statement.nested.saturating_add(1);
        }
    }

    /// Why it may not be all.
    pub fn note(&mut self, reason: Reason) {
        self.transaction.reasons.add(reason);
    }

    /// What is so of the connection as the transaction ends.
    pub fn context(&mut self, context: Context) {
        self.transaction.context = Some(context);
    }

    /// The memory is used up: what follows is dropped (`STATEMENT-2`).
    pub fn fill(&mut self) {
        self.full = true;
        self.note(Reason::Full);
    }

    /// What is known of the transaction so far.
    #[must_use]
    pub fn transaction(&self) -> &Transaction {
        &self.transaction
    }

    /// Forgets everything, for the next transaction.
    pub fn clear(&mut self) {
        self.transaction.events.clear();
        (self.transaction.dropped, self.transaction.reasons) = (0, crate::Reasons::default());
        self.transaction.context = None;
        self.texts.clear();
        (self.last, self.used, self.full) = (None, 0, false);
    }

    /// Room for a step with this text, which is kept once.
    fn text(&mut self, sql: &[u8]) -> Option<Sql> {
        let known = match &self.last {
            Some(last) if **last == *sql => self.last.clone(),
            _ => self.texts.get(sql).cloned(),
        };
        let size = STEP + if known.is_some() { 0 } else { sql.len() };
        if size > self.room() || self.transaction.events.len() >= self.steps {
            self.transaction.dropped = self.transaction.dropped.saturating_add(1);
            self.fill();
            return None;
        }
        self.used += size;
        let sql = known.unwrap_or_else(|| {
            let sql = Sql::from(sql);
            self.texts.insert(Sql::clone(&sql));
            sql
        });
        self.last = Some(Sql::clone(&sql));
        Some(sql)
    }

    fn statement(&mut self, place: Place) -> Option<&mut Statement> {
        match self.transaction.events.get_mut(place.0)? {
            Event::Statement(statement) => Some(statement),
            Event::Control(..) => None,
        }
    }
}

/// Bytes of a value.
fn size(value: &Value) -> usize {
    match value {
        Value::Text(bytes) | Value::Blob(bytes) => VALUE + bytes.len(),
        _ => VALUE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_kept_once_and_counted_once() {
        let mut buffer = Buffer::new(1000);
        for _ in 0..3 {
            buffer.begin(&[b'x'; 300]);
        }
        assert_eq!(buffer.room(), 1000 - 300 - 3 * STEP);
        assert!(buffer.transaction().reasons.is_empty());
    }

    /// `STATEMENT-2`: what is there is the beginning, and what is missing is counted.
    #[test]
    fn beyond_its_bound_everything_is_dropped_and_said() {
        let mut buffer = Buffer::new(200);
        let place = buffer.begin(b"first").expect("room");
        buffer.values(place, vec![Value::Blob(vec![1; 100])]);
        assert_eq!(buffer.begin(&[b'x'; 100]), None);
        assert_eq!(buffer.begin(b"short"), None, "nothing after a gap");
        buffer.control(Control::Savepoint, b"s");
        let known = buffer.transaction();
        assert_eq!((known.events.len(), known.dropped), (1, 3));
        assert_eq!(known.reasons.iter().collect::<Vec<_>>(), [Reason::Full]);
        buffer.clear();
        assert!(buffer.is_empty() && buffer.room() == 200);
    }

    #[test]
    fn values_that_are_too_large_are_not_known_and_nothing_follows_them() {
        let mut buffer = Buffer::new(200);
        let place = buffer.begin(b"first").expect("room");
        buffer.values(place, vec![Value::Text(vec![b'a'; 300])]);
        assert_eq!(buffer.begin(b"second"), None);
        let Some(Event::Statement(first)) = buffer.transaction().events.first() else {
            panic!("no statement");
        };
        assert_eq!(first.values, None);
        assert!(buffer.transaction().reasons.has(Reason::Full));
    }

    #[test]
    fn a_pointer_is_a_reason() {
        let mut buffer = Buffer::default();
        let place = buffer.begin(b"first").expect("room");
        buffer.values(place, vec![Value::Pointer]);
        assert!(buffer.transaction().reasons.has(Reason::Pointer));
    }
}
