//! The names that a database's log has beside it.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;

/// The names beside a database called `app.db`.
#[derive(Debug, Clone)]
pub struct Names {
    /// `app.db`.
    pub db: OsString,
    /// `app.db-dashlog`: the preallocated log in which commits become durable; or, where that lies
    /// elsewhere, the sign that says where.
    pub log: OsString,
    /// `app.db-dash-sign`: a sign that is being written.
    pub new_sign: OsString,
    shown: Arc<str>,
    shown_log: Arc<str>,
}

impl Names {
    /// The names beside `db`.
    #[must_use]
    pub fn of(db: &OsStr) -> Self {
        let with = |suffix: &str| {
            let mut name = db.to_owned();
            name.push(suffix);
            name
        };
        let log = with("-dashlog");
        Self {
            shown: db.to_string_lossy().into(),
            shown_log: log.to_string_lossy().into(),
            db: db.to_owned(),
            log,
            new_sign: with("-dash-sign"),
        }
    }

    /// The database's name for messages.
    #[must_use]
    pub fn shown(&self) -> &Arc<str> {
        &self.shown
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
