//! The names a database has in its directory.

use crate::shared::coordination::{Word, databases, refusal};
use dash_engine::coordination::CoordinationFile;
use dash_engine::error::Result;
use dash_engine::names::{self, with};
use dash_log::session;
use dash_storage::Storage;
use std::ffi::{OsStr, OsString};
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

/// The names beside a database called `app.db`.
#[derive(Debug, Clone)]
pub struct Names {
    of_log: session::Names,
    /// `app.db-wal`: SQLite's write-ahead log, in its own format.
    pub wal: OsString,
    /// `app.db-shm`: the wal-index.
    pub shm: OsString,
    /// `app.db-dash-wal`: a `-wal` that is being made from the log, until it is durable.
    pub wal_anew: OsString,
    shown_wal: Arc<str>,
}

impl Names {
    /// The names beside `db`.
    #[must_use]
    pub fn of(db: &OsStr) -> Self {
        let wal = with(db, "-wal");
        Self {
            of_log: session::Names::of(db),
            shown_wal: wal.to_string_lossy().into(),
            wal,
            shm: with(db, "-shm"),
            wal_anew: with(db, "-dash-wal"),
        }
    }

    /// Splits a path into its directory and the names beside its last component.
    ///
    /// # Errors
    ///
    /// `CantOpen` if it names no file, or by too long a name.
    pub fn split(path: &Path) -> Result<(&Path, Self)> {
        let (directory, name) = names::split(path, "-dash-fence")?;
        Ok((directory, Self::of(name)))
    }

    /// The write-ahead log's name for messages.
    #[must_use]
    pub fn shown_wal(&self) -> &Arc<str> {
        &self.shown_wal
    }

    /// The names of the log, which its place knows better.
    pub(crate) fn set_log(&mut self, names: &session::Names) {
        self.of_log = names.clone();
    }

    /// The coordination file.
    pub(crate) fn coordination_file(&self) -> CoordinationFile<'_> {
        self.coordination_file_of(databases, Some(Word::Own as usize), refusal)
    }
}

/// Those of the log are among them.
impl Deref for Names {
    type Target = session::Names;

    fn deref(&self) -> &session::Names {
        &self.of_log
    }
}

/// Refuses a place for the log of the database at `path`: see
/// [`refuse_place`](session::refuse_place).
///
/// # Errors
///
/// `CantOpen` with what to do; those of looking.
pub fn refuse_log_place<S: Storage>(storage: &S, path: &Path, log: &Path) -> Result<()> {
    let (folder, names) = Names::split(path)?;
    session::refuse_place(storage, folder, &names, log)
}
