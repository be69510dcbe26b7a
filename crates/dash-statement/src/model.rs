//! What is known of a transaction: its statements in the order in which they began, with what they
//! were run with, and why that may not be all.

use std::sync::Arc;

use crate::context::Context;
use crate::reason::Reasons;

/// The text of a statement, as it was prepared: with parameters where it has them. UTF-8 as a rule;
/// SQLite does not check.
pub type Sql = Arc<[u8]>;

/// What was bound to a parameter, exactly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// NULL, or nothing.
    Null,
    /// An integer.
    Integer(i64),
    /// The bits of a real number: `-0.0`, infinities and the last digit are what they were.
    Real(u64),
    /// A text in UTF-8, zero bytes included. SQLite does not check that it is UTF-8.
    Text(Vec<u8>),
    /// Bytes.
    Blob(Vec<u8>),
    /// As many zero bytes.
    Zeroblob(u64),
    /// A pointer of the program's, which means nothing outside of it.
    Pointer,
}

/// A statement that was run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Its text.
    pub sql: Sql,
    /// The values of its parameters, the first one first; `None`: they are not known.
    pub values: Option<Vec<Value>>,
    /// The time that it was told by the clock, in milliseconds since 1970 (`'now'`,
    /// `CURRENT_TIMESTAMP`); `None`: it did not ask.
    pub clock: Option<i64>,
    /// Statements that ran inside of it, of triggers and of other programs.
    pub nested: u32,
}

/// What divides a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// `SAVEPOINT`.
    Savepoint,
    /// `RELEASE`.
    Release,
    /// `ROLLBACK TO`.
    RollbackTo,
}

/// One step of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A statement that writes, whether it succeeded or not: SQLite does not tell.
    Statement(Statement),
    /// A savepoint's statement. What was rolled back to it stays in the list.
    Control(Control, Sql),
}

/// A transaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transaction {
    /// Its steps, in the order in which they began.
    pub events: Vec<Event>,
    /// Steps that came after those, and were dropped.
    pub dropped: u32,
    /// Why the steps may not be all that the transaction did.
    pub reasons: Reasons,
    /// What was so of the connection; `None`: that is not known.
    pub context: Option<Context>,
}

impl Transaction {
    /// Each step once. SQLite runs a statement again whose schema has changed since it was
    /// prepared; the first time did nothing, and its values are not known.
    #[must_use]
    pub fn once(mut self) -> Self {
        let statement = |event: Option<&Event>| match event {
            Some(Event::Statement(it)) => Some((Sql::clone(&it.sql), it.values.is_some())),
            _ => None,
        };
        let mut at = 0;
        while at < self.events.len() {
            match (statement(self.events.get(at)), statement(self.events.get(at + 1))) {
                (Some((sql, false)), Some((next, _))) if sql == next => {
                    drop(self.events.remove(at));
                }
                _ => at += 1,
            }
        }
        self
    }
}
