//! The names that a database's log has beside it.

use dash_engine::names::{self, with};
use std::ffi::{OsStr, OsString};
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

/// The names beside a database called `app.db`.
#[derive(Debug, Clone)]
pub struct Names {
    every: names::Names,
    /// `app.db-dashlog`: the preallocated log in which commits become durable; or, where that lies
    /// elsewhere, the sign that says where.
    pub log: OsString,
    /// `app.db-dash-sign`: a sign that is being written.
    pub new_sign: OsString,
    shown_log: Arc<str>,
}

/// Those of every engine.
impl Deref for Names {
    type Target = names::Names;

    fn deref(&self) -> &names::Names {
        &self.every
    }
}

impl Names {
    /// The names beside `db`.
    #[must_use]
    pub fn of(db: &OsStr) -> Self {
        let log = with(db, "-dashlog");
        Self {
            every: names::Names::of(db),
            shown_log: log.to_string_lossy().into(),
            log,
            new_sign: with(db, "-dash-sign"),
        }
    }

    /// The log's name, or its path where it lies elsewhere, for messages.
    #[must_use]
    pub fn shown_log(&self) -> &Arc<str> {
        &self.shown_log
    }

    /// Where the log is, as a sign says it; `None`: beside the database.
    pub(super) fn log_is_at(&mut self, path: Option<&Path>) {
        let shown = path.map_or_else(|| self.log.to_string_lossy(), Path::to_string_lossy);
        self.shown_log = shown.into();
    }
}
