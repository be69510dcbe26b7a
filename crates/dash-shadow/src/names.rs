//! The names a database has in its directory.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::error::{Error, Result};

/// The names beside a database called `app.db`.
#[derive(Debug, Clone)]
pub struct Names {
    /// `app.db`: the current copy, a plain SQLite file.
    pub db: OsString,
    /// `app.db-shadow`: the other copy.
    pub shadow: OsString,
    /// `app.db-dash`: memory shared by the connections that have it open; gone at rest.
    pub coordination: OsString,
    /// `app.db-journal`: as a directory, the name fence.
    pub fence: OsString,
    /// `app.db-shadow-tmp`: a step of the three renames where names can't be exchanged.
    pub renaming: OsString,
}

impl Names {
    /// The names beside `db`.
    pub fn of(db: &OsStr) -> Self {
        let with = |suffix: &str| {
            let mut name = db.to_owned();
            name.push(suffix);
            name
        };
        Self {
            db: db.to_owned(),
            shadow: with("-shadow"),
            coordination: with("-dash"),
            fence: with("-journal"),
            renaming: with("-shadow-tmp"),
        }
    }

    /// Splits a path into its directory and the names beside its last component.
    pub fn split(path: &Path) -> Result<(&Path, Self)> {
        let name = path
            .file_name()
            .ok_or_else(|| Error::CantOpen(format!("{} does not name a file", path.display())))?;
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        Ok((directory, Self::of(name)))
    }

    /// The database's name for messages.
    pub fn shown(&self) -> std::borrow::Cow<'_, str> {
        self.db.to_string_lossy()
    }
}
