//! What a mode is asked to open.

use std::path::Path;
use std::sync::Arc;

use dash_ffi::{Code, FileName, HostVfs, KeptConnection, OpenFlags, Result, Window};

use super::Parameters;
use super::caller::Caller;
use super::registry::Membership;
use crate::leftovers::Neighbours;

/// What SQLite asked for.
pub struct Request<'a> {
    pub(crate) host: &'a HostVfs,
    pub(crate) name: FileName<'a>,
    pub(crate) path: &'a Path,
    pub(crate) flags: OpenFlags,
    pub(crate) parameters: Parameters,
    pub(crate) window: Arc<Window>,
    /// What lies beside it.
    pub(crate) beside: Neighbours,
    /// The file that SQLite gets, among those of the process.
    pub(crate) caller: Caller,
}

/// What tells in which mode a database is.
pub struct Place<'a> {
    pub(crate) path: &'a Path,
    pub(crate) parameters: &'a Parameters,
    /// What lies beside it.
    pub(crate) beside: &'a Neighbours,
    /// Whether it may be made where there is none.
    pub(crate) creates: bool,
}

/// A database that a mode is to open.
pub struct Opening<'a> {
    /// By whom.
    pub(crate) request: Request<'a>,
    /// Only for reading.
    pub(crate) reading: bool,
    /// Its place in the process's list.
    pub(crate) membership: Membership,
}

/// What a mode needs to know of a connection that comes to it from another one.
pub struct Switching<'a> {
    pub(crate) host: &'a HostVfs,
    pub(crate) path: &'a Path,
    pub(crate) parameters: &'a Parameters,
    pub(crate) window: &'a Arc<Window>,
    pub(crate) membership: &'a Membership,
    pub(crate) caller: Caller,
    /// Whether somebody wants this mode, and it is not only what was found or the first one.
    pub(crate) asked: bool,
    /// SQLite's own connection, where it has said which.
    pub(crate) connection: Option<&'a KeptConnection>,
}

impl Request<'_> {
    /// What tells in which mode it is.
    pub(crate) fn place(&self) -> Place<'_> {
        let creates = self.flags.contains(OpenFlags::CREATE);
        Place { path: self.path, parameters: &self.parameters, beside: &self.beside, creates }
    }

    /// Whether only stock SQLite can make sense of a file that may not be written.
    pub(crate) fn stock_has_to_read(&self) -> Result<bool> {
        match self.parameters.mode {
            Some(mode) => Ok(mode.is_plain()),
            None => self.beside.stock_has_to_read(),
        }
    }

    /// SQLite refuses writes by itself from then on, and asks nobody: what `dash_last_error()` is
    /// to say then is said now.
    pub(crate) fn note_read_only(&self, why: &str) {
        let path = self.path.display();
        let folder = self.path.parent().unwrap_or(self.path).display();
        let more = match self.beside.says_wal(self.path) {
            true => format!(
                ". A database in WAL mode takes the right to write its folder, too, {folder}, for -wal and -shm, but where both are \
                 there. If nobody writes it meanwhile, add immutable=1 to the URI"
            ),
            false => String::new(),
        };
        self.host.note(Code::NOTICE, &format!("{path} was opened for reading only: {why}{more}"));
    }

    /// Says that a chmod or chown of the database did not reach its shadow, and can't from here.
    pub(crate) fn note_exposed(&self) {
        let path = self.path.display();
        self.host.note(
            Code::WARNING,
            &format!(
                "{path}-shadow may be read or written by users who have no right to {path}, and this process may not \
                 change that: give it the same owner, group and permissions (chown, chmod), or remove it while the \
                 database is closed"
            ),
        );
    }
}
