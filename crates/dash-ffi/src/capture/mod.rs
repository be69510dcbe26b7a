//! `Capture`: who is told of the statements of a connection, by SQLite's trace hook.
//!
//! There is one hook a connection, and whoever sets it last has it; nobody is told of a loss. So
//! ours is set when SQLite has just opened the connection, before the host can set its own, and
//! never again: to set it again would take the host's away.

mod hook;
mod kept;
mod statement;
mod values;

pub(crate) use hook::{Hook, install};
pub(crate) use kept::{connected, disconnected};
pub use statement::TracedStatement;
pub use values::{Bound, Unread};

use core::any::Any;

/// Who is told of statements: in the thread that runs them, one call at a time for a connection.
///
/// Statements that the hook's owner runs itself are not told of. No call may run a statement on the
/// connection, but for [`TracedStatement::values`].
pub trait Capture: Any + Send + Sync {
    /// A program begins that no other one runs. SQLite tells nothing of one without a text, which
    /// is a blob handle's.
    fn begins(&self, statement: &TracedStatement<'_>);

    /// A program begins inside another one: a trigger's, which is part of its statement, or a
    /// statement that a function or a virtual table runs.
    fn runs_inside(&self, statement: &TracedStatement<'_>);

    /// A program has ended; its effects may be part of a transaction that goes on. Comes also for
    /// those that ran inside another one, and for some whose begin was not told.
    fn ends(&self, statement: &TracedStatement<'_>);

    /// One of these calls has panicked.
    fn panicked(&self);
}
