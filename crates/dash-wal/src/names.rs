//! The names a database has in its directory.

use crate::shared::coordination::{Word, databases, refusal};
use dash_engine::coordination::CoordinationFile;
use dash_engine::error::{Error, Result};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;

/// Bytes that the name of a database may have, so that all names beside it are names (`NAME_MAX`).
const LONGEST: usize = 255 - "-dash-fence".len();

/// The names beside a database called `app.db`.
#[derive(Debug, Clone)]
pub struct Names {
    /// `app.db`.
    pub db: OsString,
    /// `app.db-wal`: SQLite's write-ahead log, in its own format.
    pub wal: OsString,
    /// `app.db-shm`: the wal-index.
    pub shm: OsString,
    /// `app.db-dashlog`: the preallocated log in which commits become durable; or, where that lies
    /// elsewhere, the sign that says where.
    pub log: OsString,
    /// `app.db-dash-sign`: a sign that is being written.
    pub new_sign: OsString,
    /// `app.db-dash`: memory shared by the connections that have it open; gone at rest.
    pub coordination: OsString,
    /// `app.db-journal`: as a directory, the name fence.
    pub fence: OsString,
    /// `app.db-dash-fence`: a name fence that is being put up or taken away.
    pub lowered: OsString,
    shown: Arc<str>,
    shown_wal: Arc<str>,
    shown_log: Arc<str>,
    shown_coordination: Arc<str>,
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
        let (wal, log, coordination) = (with("-wal"), with("-dashlog"), with("-dash"));
        Self {
            shown: db.to_string_lossy().into(),
            shown_wal: wal.to_string_lossy().into(),
            shown_log: log.to_string_lossy().into(),
            shown_coordination: coordination.to_string_lossy().into(),
            db: db.to_owned(),
            wal,
            shm: with("-shm"),
            log,
            new_sign: with("-dash-sign"),
            coordination,
            fence: with("-journal"),
            lowered: with("-dash-fence"),
        }
    }

    /// Splits a path into its directory and the names beside its last component.
    ///
    /// # Errors
    ///
    /// [`Error::CantOpen`] if it names no file, or by too long a name.
    pub fn split(path: &Path) -> Result<(&Path, Self)> {
        let name = path
            .file_name()
            .ok_or_else(|| Error::CantOpen(format!("{} does not name a file", path.display())))?;
        if name.len() > LONGEST {
            return Err(Error::CantOpen(format!(
                "{} is too long a name: with those of dash's own files beside it, it may have {LONGEST} bytes",
                name.to_string_lossy()
            )));
        }
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        Ok((directory, Self::of(name)))
    }

    /// The database's name for messages.
    #[must_use]
    pub fn shown(&self) -> &Arc<str> {
        &self.shown
    }

    /// The write-ahead log's name for messages.
    #[must_use]
    pub fn shown_wal(&self) -> &Arc<str> {
        &self.shown_wal
    }

    /// Where the log is, as a sign says it; for messages.
    pub(crate) fn log_is_at(&mut self, path: &Path) {
        self.shown_log = path.to_string_lossy().into();
    }

    /// The log is beside the database.
    pub(crate) fn log_is_beside(&mut self) {
        self.shown_log = self.log.to_string_lossy().into();
    }

    /// The log's name, or its path where it lies elsewhere, for messages.
    #[must_use]
    pub fn shown_log(&self) -> &Arc<str> {
        &self.shown_log
    }

    /// The coordination file's name for messages.
    #[must_use]
    pub fn shown_coordination(&self) -> &Arc<str> {
        &self.shown_coordination
    }

    /// The coordination file.
    pub(crate) fn coordination_file(&self) -> CoordinationFile<'_> {
        let (name, shown) = (&self.coordination, &self.shown_coordination);
        let (named, db, own) = (&self.db, &self.shown, Some(Word::Own as usize));
        CoordinationFile { name, shown, named, db, databases, own, refusal }
    }
}
