//! What a connection's own callbacks can ask about its statements.

use crate::capture::{Capture, Hook, TracedStatement};
use crate::connection::ConnectionRef;
use std::path::Path;
use std::sync::Arc;

/// A connection whose statements somebody is told of, unless the host has taken the hook since.
pub struct Watched<'a> {
    hook: Arc<Hook>,
    connection: &'a ConnectionRef<'a>,
}

impl ConnectionRef<'_> {
    /// Whether this SQLite has what is needed to tell of statements.
    #[must_use]
    pub fn tells_of_statements(&self) -> bool {
        self.slot.api.statements.is_some()
    }

    /// Who is told of its statements; `None`: nobody has been since it was opened.
    #[must_use]
    pub fn watched(&self) -> Option<Watched<'_>> {
        let hook = Hook::of(self.as_ptr(), self.slot.extension)?;
        Some(Watched { hook, connection: self })
    }
}

impl Watched<'_> {
    /// Who is told.
    #[must_use]
    pub fn capture(&self) -> &dyn Capture {
        &*self.hook.capture
    }

    /// Whether it is in no transaction that `BEGIN` or a savepoint began.
    #[must_use]
    pub fn is_autocommit(&self) -> bool {
        // SAFETY: an open connection that this thread holds.
        unsafe { (self.hook.api.get_autocommit)(self.connection.as_ptr()) != 0 }
    }

    /// Whether it has nothing but the database at `own` as its `main`, and temporary tables. An
    /// SQLite before 3.39 does not tell.
    #[must_use]
    pub fn has_only(&self, own: &Path) -> bool {
        self.connection.has_only(own)
    }

    /// Shows every statement whose program is under way, also those that nobody was told of. It
    /// looks at each one that is prepared.
    pub fn busy(&self, mut show: impl FnMut(&TracedStatement<'_>)) {
        // SAFETY: this thread holds the connection.
        unsafe { self.hook.busy(&mut show) }
    }
}
