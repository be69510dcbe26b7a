//! The names a database has in its directory.

use crate::shared::coordination::{Word, databases, refusal};
use dash_engine::coordination::CoordinationFile;
use dash_engine::error::{Error, Result};
use dash_log::session;
use dash_storage::Storage;
use std::ffi::{OsStr, OsString};
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

/// Bytes that the name of a database may have, so that all names beside it are names (`NAME_MAX`).
const LONGEST: usize = 255 - "-dash-fence".len();

/// The names beside a database called `app.db`.
#[derive(Debug, Clone)]
pub struct Names {
    of_log: session::Names,
    /// `app.db-wal`: SQLite's write-ahead log, in its own format.
    pub wal: OsString,
    /// `app.db-shm`: the wal-index.
    pub shm: OsString,
    /// `app.db-dash`: memory shared by the connections that have it open; gone at rest.
    pub coordination: OsString,
    /// `app.db-journal`: as a directory, the name fence.
    pub fence: OsString,
    /// `app.db-dash-fence`: a name fence that is being put up or taken away.
    pub lowered: OsString,
    shown_wal: Arc<str>,
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
        let (wal, coordination) = (with("-wal"), with("-dash"));
        Self {
            of_log: session::Names::of(db),
            shown_wal: wal.to_string_lossy().into(),
            shown_coordination: coordination.to_string_lossy().into(),
            wal,
            shm: with("-shm"),
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

    /// The write-ahead log's name for messages.
    #[must_use]
    pub fn shown_wal(&self) -> &Arc<str> {
        &self.shown_wal
    }

    /// The names of the log, which its place knows better.
    pub(crate) fn set_log(&mut self, names: &session::Names) {
        self.of_log = names.clone();
    }

    /// The coordination file's name for messages.
    #[must_use]
    pub fn shown_coordination(&self) -> &Arc<str> {
        &self.shown_coordination
    }

    /// The coordination file.
    pub(crate) fn coordination_file(&self) -> CoordinationFile<'_> {
        let (name, shown) = (&self.coordination, &self.shown_coordination);
        let (named, db, own) = (&self.db, self.shown(), Some(Word::Own as usize));
        CoordinationFile { name, shown, named, db, databases, own, refusal }
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
/// [`Error::CantOpen`] with what to do; those of looking.
pub fn refuse_log_place<S: Storage>(storage: &S, path: &Path, log: &Path) -> Result<()> {
    let (folder, names) = Names::split(path)?;
    session::refuse_place(storage, folder, &names, log)
}
