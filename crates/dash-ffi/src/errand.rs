//! Statements that a file wants to have run on the user's own connection, while that prepares a
//! PRAGMA. SQLite prepares a statement there as it does for a virtual table that is being
//! connected: one parser inside another.

use crate::error::Result;
use std::cell::RefCell;

/// Where the statements would run.
pub(crate) trait Place {
    /// The name of the file's database in the connection, if it can be told.
    fn schema(&self) -> Option<String>;

    /// Runs statements on the connection.
    ///
    /// # Errors
    ///
    /// SQLite's code and message.
    fn run(&self, sql: &str) -> Result<()>;
}

/// What a file asks for, and what became of it.
pub(crate) struct Errand<'a> {
    place: &'a dyn Place,
    state: RefCell<State>,
}

enum State {
    Idle,
    Ordered(String),
    Done(Result<()>),
}

impl<'a> Errand<'a> {
    /// Nothing yet.
    pub(crate) fn new(place: &'a dyn Place) -> Self {
        Self { place, state: RefCell::new(State::Idle) }
    }

    /// See [`Pragma::run_first`](crate::Pragma::run_first).
    pub(crate) fn order(&self, statements: impl FnOnce(&str) -> String) -> bool {
        let Some(schema) = self.place.schema() else {
            return false;
        };
        let quoted = format!("\"{}\"", schema.replace('"', "\"\""));
        *self.state.borrow_mut() = State::Ordered(statements(&quoted));
        true
    }

    /// See [`Pragma::ran`](crate::Pragma::ran).
    pub(crate) fn outcome(&self) -> Option<Result<()>> {
        match &*self.state.borrow() {
            State::Done(outcome) => Some(outcome.clone()),
            _ => None,
        }
    }

    /// Runs what was ordered; `false`: nothing was. Not inside the file, which SQLite calls
    /// meanwhile.
    pub(crate) fn run(&self) -> bool {
        let sql = match &*self.state.borrow() {
            State::Ordered(sql) => sql.clone(),
            _ => return false,
        };
        let outcome = self.place.run(&sql);
        *self.state.borrow_mut() = State::Done(outcome);
        true
    }
}
