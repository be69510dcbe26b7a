//! What a journal mode of dash is: the seam between the side of this crate that SQLite sees and the
//! engines.
//!
//! A [`Mode`] says what it is called and opens databases; a [`Database`] is one that is open in it.
//! A new mode is a folder with these two and a line in [`crate::modes`]. It knows this folder, and
//! nothing of the other modes.

pub mod caller;
mod parameters;
mod permissions;
pub mod registry;
mod request;
mod shared;
mod table;
mod unchanged;

pub use parameters::{BACKUP, COMMIT, DEFAULT, ON, Parameters};
pub use request::{Opening, Place, Request, Switching};
pub use shared::{Shared, Writing};
pub use table::Modes;
pub(crate) use unchanged::{IN_TRANSACTION, gone, in_use};

use core::fmt;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use dash_ffi::{
    ConnectionRef, File, HostFile, HostVfs, LockLevel, OpenFlags, Opened, Result, Row, Value,
};
use dash_statement::Schema;
use dash_storage::FileId;

use crate::errors::inherited;
use crate::holders::{InTheWay, Wanted};

/// A journal mode, as `PRAGMA journal_mode` and the URI parameter `journal_mode` choose it.
pub trait Mode: Sync {
    /// What `dash_engine()` answers. No two modes have the same.
    fn engine(&self) -> &'static str;

    /// What `journal_mode` takes for it, in lower case.
    fn names(&self) -> &'static [&'static str];

    /// How a database is open in it, for messages: "in mode shadow".
    fn described(&self) -> &'static str;

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

    /// Leaves to another mode, which is about to open it for writing, a database in which nothing
    /// of this one is left to do, nor in that one's way. Nothing, where it never had it.
    ///
    /// # Errors
    ///
    /// Why it can't.
    fn give_way(&self, _host: &HostVfs, _place: &Place<'_>, _to: &dyn Mode) -> Result<()> {
        Ok(())
    }

    /// Opens and closes the database at `path`, where what was found may be this mode's: whoever had
    /// it open was killed.
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

/// A number of `dash_stats`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistic {
    /// What it counts.
    pub name: &'static str,
    /// This connection's.
    pub value: u64,
    /// That of all connections; `None`: it is not kept, or the value is of all of them already.
    pub total: Option<u64>,
}

impl Statistic {
    /// One that no total is kept of.
    pub const fn alone((name, value): (&'static str, u64)) -> Self {
        Self { name, value, total: None }
    }

    /// Those of an engine, of whose first ones totals are kept.
    pub fn with_totals(rows: &[(&'static str, u64)], totals: &[u64]) -> Vec<Self> {
        let totals = totals.iter().map(|total| Some(*total)).chain(std::iter::repeat(None));
        let both = rows.iter().zip(totals);
        both.map(|(&(name, value), total)| Self { name, value, total }).collect()
    }
}

/// A table about all connections of a database.
#[derive(Debug, Clone, Copy)]
pub enum Watched<'a> {
    /// `dash_commits`.
    Commits,
    /// `dash_locks`.
    Locks,
    /// `dash_readers`.
    Readers,
    /// `dash_statements`, of this process only; with the schema, by which it is judged what
    /// provably replays.
    Statements(&'a Schema),
}

/// A database that is open in some mode.
pub trait Database: File {
    /// What `dash_engine()` answers.
    fn engine(&self) -> &'static str;

    /// Whether it works in a forked child as in its parent.
    fn survives_fork(&self) -> bool {
        false
    }

    /// The lock that SQLite keeps in no transaction as well.
    fn resting_level(&self) -> LockLevel {
        LockLevel::None
    }

    /// Puts into `parameters` what `PRAGMA`s have chosen, for whoever opens it again.
    fn keep(&mut self, _parameters: &mut Parameters) {}

    /// In a forked child, in no transaction: opens it again, for the same connection of SQLite's,
    /// which has it locked to `level` and goes on with what it knows. What came over the fork is
    /// forgotten after that; it is never closed, and gives no lock up, for these are the parent's.
    ///
    /// # Errors
    ///
    /// `SQLITE_CANTOPEN` where it can't go on with what lies there; or why it can't be opened. No
    /// lock is left.
    fn renew(&mut self, switching: &Switching<'_>, _level: LockLevel) -> Result<Box<dyn Database>> {
        Err(inherited(switching.path))
    }

    /// A PRAGMA, in lower case: the answer to one of the mode's own. `None`: somebody else's, which
    /// it may take notice of.
    fn pragma(&mut self, _name: &str, _value: Option<&str>) -> Option<Result<String>> {
        None
    }

    /// The rows of `dash_stats`; `None`: dash doesn't write it.
    fn statistics(&self) -> Option<Vec<Statistic>> {
        None
    }

    /// Rows of `dash_stats` that are words, for a connection: NULL if it isn't known.
    fn words(&self, _connection: &ConnectionRef<'_>) -> Vec<(&'static str, Option<String>)> {
        Vec::new()
    }

    /// Goes on in a form of its mode, or in the mode itself.
    fn takes_form(&mut self, _mode: &'static dyn Mode) {}

    /// How a commit becomes durable now, if `PRAGMA synchronous` answers this: the value of the row
    /// `durability` of `dash_stats`, NULL if it isn't known; `None`: there is no such row.
    fn durability(&self, _synchronous: Option<&str>) -> Option<Value> {
        None
    }

    /// The rows of `dash_latency`; `None`: dash doesn't write it.
    fn latencies(&self) -> Option<Vec<Row>> {
        None
    }

    /// The rows of a table about all connections; `None`: the mode keeps none.
    fn watched(&self, _what: Watched<'_>) -> Option<Result<Vec<Row>>> {
        None
    }

    /// Whether SQLite has taken it out of the mode by itself, without a word: what lies there is a
    /// plain file, and this connection holds no lock on it.
    fn is_left(&self) -> bool {
        false
    }

    /// Whether another connection has put it into WAL mode, for which SQLite wants shared memory of
    /// a file that has none. It is asked with SHARED, before SQLite reads.
    ///
    /// # Errors
    ///
    /// Those of reading.
    fn is_in_wal_mode(&mut self) -> Result<bool> {
        Ok(false)
    }

    /// Whether it reads that file, whatever the name is by now; `None`: SQLite's own VFS has it.
    fn is_of(&self, _file: FileId) -> Option<bool> {
        None
    }

    /// What it knows, without a system call, of who was in the way of what it has just refused.
    fn in_the_way(&mut self, _wanted: Wanted) -> InTheWay {
        InTheWay::default()
    }

    /// Whether SQLite has given the write lock of WAL mode up as it has got it, since somebody had
    /// committed since it began to read.
    fn was_outdated(&mut self) -> bool {
        false
    }

    /// Whether the mode can be changed now.
    ///
    /// # Errors
    ///
    /// Why not.
    fn may_leave(&mut self) -> Result<()>;

    /// Gives it up: what stays is a plain SQLite file at rest, which the host has open, without a
    /// lock. What `PRAGMA`s have chosen goes into `parameters`, for whoever opens it again.
    ///
    /// # Errors
    ///
    /// `SQLITE_BUSY` if somebody else has it open; it is closed all the same.
    fn leave(
        self: Box<Self>,
        parameters: &mut Parameters,
        path: &Path,
        host: &HostVfs,
    ) -> Result<HostFile>;

    /// Closes it.
    ///
    /// # Errors
    ///
    /// Those of the engine; it is closed all the same.
    fn end(self: Box<Self>, host: &HostVfs) -> Result<()>;
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
        let name = move |ending: &&str| [&*db, OsStr::new(ending)].into_iter().collect();
        self.files().iter().map(name)
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
