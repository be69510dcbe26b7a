//! The names a database has in its directory.

pub(crate) mod access;
pub(crate) mod empty;
pub(crate) mod exchange;
pub(crate) mod mounted;
pub(crate) mod orphan;
pub(crate) mod super_journal;

use crate::shared::coordination::databases;
use crate::shared::layout::Layout;
use dash_engine::coordination::CoordinationFile;
use dash_engine::error::{Error, Result};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;

/// Bytes that the name of a database may have, so that all names beside it are names (`NAME_MAX`).
const LONGEST: usize = 255 - "-shadow-tmp".len();

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
    /// `app.db-dash-fence`: a name fence that is being taken away.
    pub lowered: OsString,
    /// `app.db-shadow-tmp`: a step of the three renames where names can't be exchanged.
    pub renaming: OsString,
    /// `app.db-shadow-old`: the shadow of a database that was removed at rest.
    pub aside: OsString,
    /// `db`, for messages.
    shown: Arc<str>,
    /// `shadow`, for messages.
    shown_shadow: Arc<str>,
    /// `coordination`, for messages.
    shown_coordination: Arc<str>,
}

impl Names {
    /// The names beside `db`.
    pub fn of(db: &OsStr) -> Self {
        let with = |suffix: &str| {
            let mut name = db.to_owned();
            name.push(suffix);
            name
        };
        let shadow = with("-shadow");
        let coordination = with("-dash");
        Self {
            shown: db.to_string_lossy().into(),
            shown_shadow: shadow.to_string_lossy().into(),
            db: db.to_owned(),
            shadow,
            shown_coordination: coordination.to_string_lossy().into(),
            coordination,
            fence: with("-journal"),
            lowered: with("-dash-fence"),
            renaming: with("-shadow-tmp"),
            aside: with("-shadow-old"),
        }
    }

    /// Splits a path into its directory and the names beside its last component.
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
    pub fn shown(&self) -> &Arc<str> {
        &self.shown
    }

    /// The coordination file.
    pub(crate) fn coordination_file(&self) -> CoordinationFile<'_> {
        let (name, shown) = (&self.coordination, &self.shown_coordination);
        let refusal = |word, db: &str| Layout::of(word).refusal(db);
        let (named, db) = (&self.db, &self.shown);
        CoordinationFile { name, shown, named, db, databases, own: None, refusal }
    }

    /// The coordination file's name for messages.
    pub fn shown_coordination(&self) -> &Arc<str> {
        &self.shown_coordination
    }

    /// The shadow's name for messages.
    pub fn shown_shadow(&self) -> &Arc<str> {
        &self.shown_shadow
    }
}
