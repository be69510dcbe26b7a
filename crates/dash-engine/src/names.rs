//! The names that a database has in its directory, whatever the engine.

use crate::coordination::{CoordinationFile, Head};
use crate::error::{Error, Result};
use dash_storage::FileId;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;

/// Bytes that a name may have (`NAME_MAX`).
const LONGEST: usize = 255;

/// The names beside a database called `app.db`.
#[derive(Debug, Clone)]
pub struct Names {
    /// `app.db`.
    pub db: OsString,
    /// `app.db-dash`: memory shared by the connections that have it open; gone at rest.
    pub coordination: OsString,
    /// `app.db-journal`: as a directory, the name fence.
    pub fence: OsString,
    /// `app.db-dash-fence`: a name fence that is being put up or taken away.
    pub lowered: OsString,
    shown: Arc<str>,
    shown_coordination: Arc<str>,
}

/// The name `db` with an ending.
#[must_use]
pub fn with(db: &OsStr, ending: &str) -> OsString {
    [db, OsStr::new(ending)].into_iter().collect()
}

/// Splits a path into the database's directory and its name, beside which `longest` is the longest
/// ending.
///
/// # Errors
///
/// [`Error::CantOpen`] if it names no file, or by too long a name.
pub fn split<'a>(path: &'a Path, longest: &str) -> Result<(&'a Path, &'a OsStr)> {
    let name = path
        .file_name()
        .ok_or_else(|| Error::CantOpen(format!("{} does not name a file", path.display())))?;
    let longest = LONGEST - longest.len();
    if name.len() > longest {
        return Err(Error::CantOpen(format!(
            "{} is too long a name: with those of dash's own files beside it, it may have {longest} bytes",
            name.to_string_lossy()
        )));
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    Ok((directory.unwrap_or(Path::new(".")), name))
}

impl Names {
    /// The names beside `db`.
    #[must_use]
    pub fn of(db: &OsStr) -> Self {
        let coordination = with(db, "-dash");
        Self {
            shown: db.to_string_lossy().into(),
            shown_coordination: coordination.to_string_lossy().into(),
            db: db.to_owned(),
            coordination,
            fence: with(db, "-journal"),
            lowered: with(db, "-dash-fence"),
        }
    }

    /// The database's name for messages.
    #[must_use]
    pub fn shown(&self) -> &Arc<str> {
        &self.shown
    }

    /// The coordination file's name for messages.
    #[must_use]
    pub fn shown_coordination(&self) -> &Arc<str> {
        &self.shown_coordination
    }

    /// The coordination file, as an engine reads it.
    #[must_use]
    pub fn coordination_file_of(
        &self,
        databases: fn(&Head) -> [Option<FileId>; 2],
        own: Option<usize>,
        refusal: fn(u64, &str) -> Option<Error>,
    ) -> CoordinationFile<'_> {
        let (name, shown) = (&self.coordination, &self.shown_coordination);
        CoordinationFile { name, shown, named: &self.db, db: &self.shown, databases, own, refusal }
    }
}
