//! What a journal mode of dash is: the seam between the side of this crate that SQLite sees and the
//! engines.
//!
//! A [`Mode`] says what it is called and opens databases; a [`Database`] is one that is open in it.
//! A new mode is a folder with these two and a line in [`crate::modes`]. It knows this folder, and
//! nothing of the other modes.

pub mod caller;
mod database;
pub mod linked;
mod parameters;
mod permissions;
pub mod registry;
mod request;
mod shared;
mod table;
mod unchanged;

pub use database::{Database, Statistic, Watched};
pub use parameters::{BACKUP, COMMIT, DEFAULT, ON, Parameters};
pub use request::{Opening, Place, Request, Switching};
pub use shared::{Shared, Writing};
pub use table::Modes;
pub(crate) use unchanged::{IN_TRANSACTION, gone, in_use};

use core::fmt;
use std::ffi::OsString;
use std::path::Path;

use dash_engine::names::with;
use dash_ffi::{HostVfs, OpenFlags, Opened, Result};

/// A journal mode, as `PRAGMA journal_mode` and the URI parameter `journal_mode` choose it.
pub trait Mode: Sync {
    /// What `dash_engine()` answers. No two modes have the same.
    fn engine(&self) -> &'static str;

    /// What `journal_mode` takes for it, in lower case.
    fn names(&self) -> &'static [&'static str];

    /// How a database is open in it, for messages: "in mode shadow".
    fn described(&self) -> String {
        format!("in mode {}", self.names()[0])
    }

    /// Whether SQLite itself is at work, with a journal of its own: it knows what `PRAGMA
    /// journal_mode` answers.
    fn is_plain(&self) -> bool {
        false
    }

    /// Whether SQLite itself keeps what makes a commit one: then it answers `PRAGMA journal_mode`,
    /// and leaves the mode by itself where another one of its own is asked for.
    fn is_sqlites(&self) -> bool {
        self.is_plain()
    }

    /// The mode of which this is another form: one engine has the database in both, so that
    /// connections in both have it open together, and the file is left in that one. It opens what
    /// this one opens.
    fn is_form_of(&self) -> Option<&'static dyn Mode> {
        None
    }

    /// Whether what its connections run is recorded.
    fn records_statements(&self) -> bool {
        false
    }

    /// What it leaves beside a database at rest, by the endings of the names.
    fn files(&self) -> &'static [&'static str] {
        &[]
    }

    /// The PRAGMAs that only its databases answer.
    fn pragmas(&self) -> &'static [&'static str] {
        &[]
    }

    /// The URI parameters that are its own.
    fn parameters(&self) -> &'static [Parameter] {
        &[]
    }

    /// Whether what lies there is in this mode, though nobody asks for it: for modes that a file
    /// keeps.
    ///
    /// # Errors
    ///
    /// `SQLITE_CANTOPEN` if it can't be looked at.
    fn recognises(&self, _place: &Place<'_>) -> Result<bool> {
        Ok(false)
    }

    /// Whether something of this mode lies there that was not closed: no other one may begin before
    /// it was seen to.
    ///
    /// # Errors
    ///
    /// `SQLITE_CANTOPEN` if it can't be looked at.
    fn holds(&self, _place: &Place<'_>) -> Result<bool> {
        Ok(false)
    }

    /// Whether another process has it open in this mode, and perhaps puts it into that right now.
    ///
    /// # Errors
    ///
    /// `SQLITE_CANTOPEN` if it can't be looked at.
    fn is_open_elsewhere(&self, _place: &Place<'_>) -> Result<bool> {
        Ok(false)
    }

    /// Whether stock SQLite has to read what lies there, for a connection that may only read.
    ///
    /// # Errors
    ///
    /// `SQLITE_CANTOPEN` if it can't be looked at.
    fn stock_has_to_read(&self, request: &Request<'_>) -> Result<bool> {
        request.stock_has_to_read()
    }

    /// Refuses to have stock SQLite read an older state than the newest one, which takes the right
    /// to write to be given its name.
    ///
    /// # Errors
    ///
    /// `SQLITE_CANTOPEN`.
    fn refuse_stock(&self, _path: &Path) -> Result<()> {
        Ok(())
    }

    /// Leaves to another mode, which is about to open it for writing, a database in which nothing
    /// of this one is left to do, nor in that one's way. Nothing, where it never had it.
    ///
    /// # Errors
    ///
    /// Why it can't.
    fn give_way(&self, _host: &HostVfs, _place: &Place<'_>, _to: &dyn Mode) -> Result<()> {
        Ok(())
    }

    /// Opens and closes the database at `path`, where what was found may be of a process that was
    /// killed in this mode.
    ///
    /// # Errors
    ///
    /// Why it can't.
    fn recover(&self, _host: &HostVfs, _path: &Path) -> Result<()> {
        Ok(())
    }

    /// A database was opened for writing in another mode, and no other connection of this process
    /// has it: removes what lies there of this mode and counts no more. `held`: that mode keeps
    /// this one away as long as the connection is there.
    fn forget(&self, _path: &Path, _held: bool) {}

    /// Whether it could open the database for writing as it is: tried, and nothing of that stays.
    ///
    /// # Errors
    ///
    /// `SQLITE_BUSY` while others are in the way.
    fn can_open(&self, _request: &Request<'_>) -> Result<bool> {
        Ok(true)
    }

    /// Opens a database that SQLite asks for.
    ///
    /// # Errors
    ///
    /// Why it can't be opened; no lock is left.
    fn open(&self, opening: Opening<'_>) -> Result<Opened>;

    /// Opens what another mode has left, a plain SQLite file at rest, under the same connection.
    ///
    /// # Errors
    ///
    /// Why it can't be opened; no lock is left.
    fn enter(&self, switching: &Switching<'_>) -> Result<Box<dyn Database>>;

    /// The same, for a database that others have put into this mode. `None`: it is in it no more.
    ///
    /// # Errors
    ///
    /// Why it can't be opened; no lock is left.
    fn join(&self, _switching: &Switching<'_>) -> Result<Option<Box<dyn Database>>> {
        Ok(None)
    }

    /// A file beside a database that is open in this mode; `None`: it is the host's.
    ///
    /// # Errors
    ///
    /// `SQLITE_CANTOPEN` if there is none.
    fn open_beside(
        &self,
        _shared: &Shared,
        _path: &Path,
        _flags: OpenFlags,
    ) -> Result<Option<Opened>> {
        Ok(None)
    }

    /// Deletes such a file; `None`: the host does. One that is only said to be there, or not to be,
    /// needs no deleting.
    fn delete_beside(&self, shared: &Shared, path: &Path, beside: Beside) -> Option<Result<()>> {
        self.exists_beside(shared, path, beside).map(|_| Ok(()))
    }

    /// Whether there is such a file; `None`: the host looks.
    fn exists_beside(&self, _shared: &Shared, _path: &Path, _beside: Beside) -> Option<bool> {
        None
    }
}

/// A file that SQLite keeps beside a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    /// The rollback journal.
    Journal,
    /// The log of WAL mode.
    Wal,
}

/// A parameter of the URI that is a mode's own.
pub struct Parameter {
    /// Its name; begins with `dash_`.
    pub name: &'static str,
    /// What is to be put for its value, for messages.
    pub value: &'static str,
    /// Why a value is none, with those that are.
    pub check: fn(&str) -> core::result::Result<(), String>,
}

impl fmt::Debug for dyn Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.engine())
    }
}

impl dyn Mode {
    /// The names of what it leaves beside the database at `path`.
    pub(crate) fn files_beside(&self, path: &Path) -> impl Iterator<Item = OsString> {
        let db = path.file_name().unwrap_or_default().to_owned();
        self.files().iter().map(move |ending| with(&db, ending))
    }

    /// The mode whose engine it is in.
    pub(crate) fn base(&'static self) -> &'static dyn Mode {
        self.is_form_of().unwrap_or(self)
    }
}

impl PartialEq for dyn Mode {
    fn eq(&self, other: &Self) -> bool {
        self.engine() == other.engine()
    }
}

impl Eq for dyn Mode {}
