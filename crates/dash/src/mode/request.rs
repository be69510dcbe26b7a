//! What a mode is asked to open.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dash_engine::names::with;
use dash_ffi::{
    AccessCheck, Code, Error, FileName, HostVfs, KeptConnection, OpenFlags, Result, Window,
};
use dash_storage::Storage;
use dash_storage::real::{self, Real};

use super::caller::Caller;
use super::registry::Membership;
use super::{Modes, Parameters};
use crate::errors::whose;
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
    /// All that there are.
    pub(crate) modes: &'static Modes,
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
    /// All that there are.
    pub(crate) modes: &'static Modes,
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

    /// Whether stock SQLite could not use what lies beside the database, either. It reads beside
    /// files that it may only read.
    pub(crate) fn stock_lacks_a_right(&self) -> bool {
        self.has_unreadable("-wal")
    }

    /// Whether there is a file of this ending beside the database that may not be read.
    pub(crate) fn has_unreadable(&self, ending: &str) -> bool {
        let beside = self.path_beside(ending);
        beside.symlink_metadata().is_ok() && !real::may_be_read(&beside)
    }

    fn path_beside(&self, ending: &str) -> PathBuf {
        with(self.path.as_os_str(), ending).into()
    }

    /// Says that it was opened without an engine, and what would change that.
    pub(crate) fn note_by_stock(&self, why: &Error, needs: &str) {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        let may_make = self.host.access(folder, AccessCheck::ReadWrite).unwrap_or(true);
        let reading = match self.beside.says_wal(self.path)
            && !may_make
            && !self.path_beside("-shm").exists()
        {
            true => {
                ". Nor can it be read, as stock SQLite may not make -shm: while nobody writes it, add immutable=1 to the URI"
            }
            false => "",
        };
        let said = format!(
            "{} was opened by stock SQLite's rules, without dash: {why}. A commit is as durable as PRAGMA synchronous says. {needs}{reading}",
            self.path.display()
        );
        self.host.note(Code::WARNING, said.trim_end());
    }

    /// SQLite refuses writes by itself from then on, and asks nobody: what `dash_last_error()` is
    /// to say then is said now.
    pub(crate) fn note_read_only(&self, why: &str) {
        let path = self.path.display();
        let mut more = self.on_read_only_medium().unwrap_or_else(|| self.rights());
        if self.beside.says_wal(self.path) && !real::is_read_only(self.path) {
            more.push_str("; to read it while nobody writes it, add immutable=1 to the URI");
        }
        self.host.note(Code::NOTICE, &format!("{path} was opened for reading only: {why}; {more}"));
    }

    /// Whose it is, and its folder, and what to do.
    fn rights(&self) -> String {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        format!(
            "it is {}, its folder, {}, is {}, and this process is user {}: have root make that user the owner (chown), or give the group \
             the right to write it and the right to write its folder",
            whose(self.path),
            folder.display(),
            whose(folder),
            Real.user()
        )
    }

    /// What to do where the medium can't be written.
    fn on_read_only_medium(&self) -> Option<String> {
        (real::is_read_only(self.path) && !self.parameters.immutable).then(|| {
            format!(
                "the file system of {} is mounted read-only: use mode=ro&immutable=1, which reads what is in that file alone",
                self.path.display()
            )
        })
    }

    /// In WAL mode stock SQLite makes `-shm` to read, which it can't there, and says nothing of it.
    pub(crate) fn note_unreadable_wal(&self) {
        let is_there = |ending| self.path_beside(ending).exists();
        if is_there("-wal") && is_there("-shm") || !self.beside.says_wal(self.path) {
            return;
        }
        if let Some(medium) = self.on_read_only_medium() {
            self.host.note(
                Code::NOTICE,
                &format!("{} is in WAL mode, and {medium}", self.path.display()),
            );
        }
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
