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
use dash_engine::error::Result;
use dash_engine::names::{self, with};
use std::ffi::{OsStr, OsString};
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

/// The names beside a database called `app.db`, which is the current copy, a plain SQLite file.
#[derive(Debug, Clone)]
pub struct Names {
    every: names::Names,
    /// `app.db-shadow`: the other copy.
    pub shadow: OsString,
    /// `app.db-shadow-tmp`: a step of the three renames where names can't be exchanged.
    pub renaming: OsString,
    /// `app.db-shadow-old`: the shadow of a database that was removed at rest.
    pub aside: OsString,
    shown_shadow: Arc<str>,
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
    pub fn of(db: &OsStr) -> Self {
        let shadow = with(db, "-shadow");
        Self {
            every: names::Names::of(db),
            shown_shadow: shadow.to_string_lossy().into(),
            shadow,
            renaming: with(db, "-shadow-tmp"),
            aside: with(db, "-shadow-old"),
        }
    }

    /// Splits a path into its directory and the names beside its last component.
    pub fn split(path: &Path) -> Result<(&Path, Self)> {
        let (directory, name) = names::split(path, "-shadow-tmp")?;
        Ok((directory, Self::of(name)))
    }

    /// The coordination file.
    pub(crate) fn coordination_file(&self) -> CoordinationFile<'_> {
        self.coordination_file_of(databases, None, |word, db| Layout::of(word).refusal(db))
    }

    /// The shadow's name for messages.
    pub fn shown_shadow(&self) -> &Arc<str> {
        &self.shown_shadow
    }
}
