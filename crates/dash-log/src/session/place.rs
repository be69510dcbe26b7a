//! Where a database's log lies: beside it, or where a sign under the log's name says (WAL-25). What
//! a sign speaks of is there, whole, and of this database; or the database is not opened, for what
//! the log held may be nowhere else (WAL-26).
//!
//! A sign leads out of the database's folder. So it is followed only if it belongs to the
//! database's owner, and what lies at its path is used only if that does, too.

use super::Names;
use super::strayed::{Strayed, refusal};
use super::whose::belongs;
use crate::file::{LogFile, LogName};
use crate::format::{Invalid, RING_START};
use crate::head::Head;
use crate::mutation::{Mutation, broken};
use crate::sign::Sign;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_storage::{Directory, File, Metadata, Storage};
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

/// Letters of a database's name in that of its log in another folder.
const LETTERS: usize = 50;

/// Where a log lies.
pub struct Place<S: Storage> {
    /// The database's folder.
    pub(super) home: Arc<S::Directory>,
    /// The database: whose the log is to be. `None`: it is not there.
    database: Option<Arc<S::File>>,
    /// The names there.
    pub names: Names,
    /// The log's folder; `None`: it can't be opened, or there is no log.
    folder: Option<Arc<S::Directory>>,
    name: OsString,
    /// What says so, if it is not beside the database.
    pub sign: Option<Sign>,
}

/// A log that was opened, if there is one; or why it is not used.
pub type Opened<S> = std::result::Result<Option<LogFile<<S as Storage>::File>>, Strayed>;

impl<S: Storage> Place<S> {
    /// Beside the database, if no sign says otherwise.
    pub fn beside(home: &Arc<S::Directory>, names: Names, database: Option<&Arc<S::File>>) -> Self {
        let (home, database, name) = (Arc::clone(home), database.cloned(), names.log.clone());
        Self { folder: Some(Arc::clone(&home)), home, database, names, name, sign: None }
    }

    /// Goes where a sign says, if there is one. Why what is there is not used, if it isn't.
    pub fn follow(&mut self, storage: &S) -> Result<Option<Strayed>> {
        match self.read_sign()? {
            Ok(None) => Ok(None),
            Ok(Some(sign)) => self.go(storage, Some(sign)).and_then(|()| self.strayed()),
            Err(strayed) => Ok(Some(strayed)),
        }
    }

    /// Is where a sign of this database says from here on; `None`: beside that.
    pub(super) fn go(&mut self, storage: &S, sign: Option<Sign>) -> Result<()> {
        (self.folder, self.name) = match &sign {
            None => (Some(Arc::clone(&self.home)), self.names.log.clone()),
            Some(sign) if self.calls_void(sign) => (None, OsString::new()),
            Some(sign) => {
                let folder = sign.path.parent().unwrap_or(Path::new("/"));
                let opened = storage.open_directory(folder).map(Arc::new);
                let is_there = !opened.as_ref().is_err_and(|error| {
                    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
                });
                let name = sign.path.file_name().unwrap_or_default().to_owned();
                let opened = is_there.then_some(opened).transpose();
                (opened.during(Operation::Open, folder.display())?, name)
            }
        };
        self.names.log_is_at(sign.as_ref().map(|sign| &*sign.path));
        self.sign = sign;
        Ok(())
    }

    /// Inode number of the database.
    pub(super) fn owner(&self) -> u64 {
        self.database.as_ref().map_or(0, |database| database.id().inode)
    }

    /// Whether a sign says nothing of the database: it was another one's, which is gone, or was
    /// copied, and no log was made by then.
    pub(super) fn calls_void(&self, sign: &Sign) -> bool {
        !sign.is_made && sign.owner != self.owner()
    }

    /// Whether it is where such a sign says: nowhere.
    pub fn is_void(&self) -> bool {
        self.sign.as_ref().is_some_and(|sign| self.calls_void(sign))
    }

    /// Why a log that strayed is not used, and what to do.
    pub fn refusal(&self, strayed: Strayed) -> Error {
        refusal(&self.names, strayed)
    }

    /// The log's name in its folder.
    pub(super) fn name(&self) -> &OsStr {
        &self.name
    }

    /// Its name, and for messages its path where it is not beside the database.
    pub(super) fn log_name(&self) -> LogName<'_> {
        let shown = self.sign.as_ref().map(|sign| sign.path.to_string_lossy());
        LogName { file: &self.name, shown: shown.unwrap_or_else(|| self.name.to_string_lossy()) }
    }

    /// The database.
    pub(super) fn database(&self) -> Result<&S::File> {
        self.database.as_deref().ok_or(Error::OutOfMemory)
    }

    /// The log's folder.
    ///
    /// # Errors
    ///
    /// [`Error::CantOpen`] if there is none.
    pub(super) fn directory(&self) -> Result<&S::Directory> {
        self.folder.as_deref().ok_or_else(|| {
            let folder = self.sign.as_ref().and_then(|sign| sign.path.parent());
            let folder = folder.unwrap_or(Path::new("/")).display();
            Error::CantOpen(format!("{folder}, where the log is to be, can't be opened"))
        })
    }

    /// Opens the log for writing.
    pub fn open(&self) -> Result<Opened<S>> {
        self.open_by(|directory, name| LogFile::open(directory, name))
    }

    /// Opens it only to read.
    pub fn open_to_read(&self) -> Result<Opened<S>> {
        self.open_by(|directory, name| LogFile::open_to_read(directory, name))
    }

    /// Opens the log, if a sign may lead there: before it is opened by its name, and after, as the
    /// folder may be another user's.
    fn open_by(
        &self,
        open: impl Fn(&S::Directory, LogName<'_>) -> Result<Option<LogFile<S::File>>>,
    ) -> Result<Opened<S>> {
        let Some(directory) = &self.folder else { return Ok(Ok(None)) };
        if self.sign.is_none() {
            return open(directory, self.log_name()).map(Ok);
        }
        let shown = self.log_name().shown;
        let found = directory.metadata(&self.name).during(Operation::Stat, &*shown)?;
        let Some(found) = found else { return Ok(Ok(None)) };
        if !self.is_ours(&found)? {
            return Ok(Err(Strayed::Alien));
        }
        let Some(log) = open(directory, self.log_name())? else { return Ok(Ok(None)) };
        if !self.is_ours(&log.file().metadata().during(Operation::Stat, &*shown)?)? {
            return Ok(Err(Strayed::Alien));
        }
        match log.read_head()? {
            // Recovery says so, and what to do.
            Err(Invalid::Newer(_)) => Ok(Ok(Some(log))),
            head if !self.is_it(&head) => Ok(Err(Strayed::Foreign)),
            _ => Ok(Ok(Some(log))),
        }
    }

    /// Whether a file elsewhere is one of the database's, by its owner and its names.
    pub(super) fn is_ours(&self, found: &Metadata) -> Result<bool> {
        if self.sign.is_none() {
            return Ok(true);
        }
        let belongs = belongs(found, self.database()?);
        Ok(belongs.during(Operation::Stat, self.name.to_string_lossy())?
            || broken(Mutation::AlienLogTaken))
    }

    /// Removes the log, durably if it lies elsewhere. What may be no log is left there.
    pub fn unlink(&self) -> Result<()> {
        if self.sign.is_some() {
            match self.open_to_read()? {
                Err(strayed) => return Err(self.refusal(strayed)),
                Ok(Some(log)) if log.read_head()?.is_err() => return Ok(()),
                Ok(_) => {}
            }
        }
        self.unlink_name()
    }

    /// Removes a log that was being made, which is nothing but zeros; whether it was.
    pub(super) fn unlink_unmade(&self, log: &LogFile<S::File>) -> Result<bool> {
        if self.sign.is_some() && log.read_all()?.iter().any(|&byte| byte != 0) {
            return Ok(false);
        }
        self.unlink_name().map(|()| true)
    }

    fn unlink_name(&self) -> Result<()> {
        let Some(directory) = &self.folder else { return Ok(()) };
        unlink(&**directory, &self.name, self.names.shown_log())?;
        match self.sign {
            Some(_) => directory.flush().during(Operation::FlushDirectory, self.names.shown_log()),
            None => Ok(()),
        }
    }

    /// Whether a log with this head is the one that the sign speaks of. Zeros are one that was
    /// being made.
    pub(super) fn is_it(&self, head: &std::result::Result<Head, Invalid>) -> bool {
        let Some(sign) = &self.sign else { return true };
        if broken(Mutation::ForeignLogTaken) || broken(Mutation::SignNotChecked) {
            return true;
        }
        match head {
            Ok(head) => head.id == sign.id,
            Err(why) => !sign.is_made && *why == Invalid::Absent,
        }
    }

    /// What is wrong with what the sign speaks of, if anything is (WAL-26).
    pub(super) fn strayed(&self) -> Result<Option<Strayed>> {
        let Some(sign) = &self.sign else { return Ok(None) };
        if self.calls_void(sign) || broken(Mutation::SignNotChecked) {
            return Ok(None);
        }
        if sign.owner != self.owner() && !broken(Mutation::CopiedSignTaken) {
            return Ok(Some(Strayed::Copied));
        }
        let log = match self.open_to_read()? {
            Err(strayed) => return Ok(Some(strayed)),
            Ok(Some(log)) => log,
            Ok(None) => {
                let lost = sign.is_made && !broken(Mutation::LostPlaceEmpty);
                return Ok(lost.then_some(Strayed::Lost));
            }
        };
        Ok(match log.read_head()? {
            // It was being made, or is of a newer dash.
            Err(_) => None,
            Ok(head) => {
                let len = log.file().metadata().during(Operation::Stat, log.name())?.len;
                (len < head.ring.saturating_add(RING_START)).then_some(Strayed::Cut)
            }
        })
    }
}

/// Removes a file, if it is there.
pub(super) fn unlink<D: Directory>(directory: &D, name: &OsStr, shown: &str) -> Result<()> {
    match directory.unlink(name) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other.during(Operation::Delete, shown),
    }
}

/// The name of a log in a folder that is not its own.
pub(super) fn name_in_folder(names: &Names, id: u64) -> String {
    let db: String = names.shown().chars().take(LETTERS).collect();
    format!("{db}-{id:016x}-dashlog")
}
