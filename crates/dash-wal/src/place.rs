//! Where a database's log lies: beside it, or where a sign under the log's name says (WAL-25). What
//! a sign speaks of is there, whole, and of this database; or the database is not opened, for what
//! the log held may be nowhere else (WAL-26).
//!
//! A sign leads out of the database's folder. So it is followed only if it belongs to the
//! database's owner, and what lies at its path is used only if that does, too.

use crate::mutation::{Mutation, broken};
use crate::names::Names;
use crate::strayed::{Strayed, refusal};
use crate::whose::belongs;
use dash_engine::beside::make;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::open::open_if_there;
use dash_log::file::{LogFile, LogName};
use dash_log::format::{Invalid, RING_START};
use dash_log::head::Head;
use dash_log::sign::{self, Found, Sign};
use dash_storage::{Directory, File, Metadata, OpenMode, Storage};
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

/// Letters of a database's name in that of its log in another folder.
const LETTERS: usize = 50;

/// Where a log lies.
pub(crate) struct Place<S: Storage> {
    /// Its folder; `None`: it can't be opened.
    directory: Option<Arc<S::Directory>>,
    name: OsString,
    /// What says so, if it is not beside the database.
    pub(crate) sign: Option<Sign>,
    /// The database, if there is a sign: whose the log is to be.
    database: Option<Arc<S::File>>,
}

/// A log that was opened, if there is one; or why it is not used.
pub(crate) type Opened<S> = std::result::Result<Option<LogFile<<S as Storage>::File>>, Strayed>;

impl<S: Storage> Place<S> {
    /// Beside the database.
    pub(crate) fn beside(directory: &Arc<S::Directory>, names: &Names) -> Self {
        let directory = Some(Arc::clone(directory));
        Self { directory, name: names.log.clone(), sign: None, database: None }
    }

    /// Nowhere: there is none.
    pub(crate) fn nowhere() -> Self {
        Self { directory: None, name: OsString::new(), sign: None, database: None }
    }

    /// Where a sign of this database says.
    ///
    /// # Errors
    ///
    /// Those of a folder that may be there.
    pub(crate) fn of(storage: &S, sign: Sign, database: &Arc<S::File>) -> Result<Self> {
        let folder = sign.path.parent().unwrap_or(Path::new("/"));
        let directory = match storage.open_directory(folder) {
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                None
            }
            other => Some(Arc::new(other.during(Operation::Open, folder.display())?)),
        };
        let name = sign.path.file_name().unwrap_or_default().to_owned();
        Ok(Self { directory, name, sign: Some(sign), database: Some(Arc::clone(database)) })
    }

    /// The log's name in its folder.
    pub(crate) fn name(&self) -> &OsStr {
        &self.name
    }

    /// The same, and its path for messages where it is not beside the database.
    pub(crate) fn log_name(&self) -> LogName<'_> {
        let shown = self.sign.as_ref().map(|sign| sign.path.to_string_lossy());
        LogName { file: &self.name, shown: shown.unwrap_or_else(|| self.name.to_string_lossy()) }
    }

    /// The log's folder.
    ///
    /// # Errors
    ///
    /// [`Error::CantOpen`] if there is none.
    pub(crate) fn directory(&self) -> Result<&S::Directory> {
        self.directory.as_deref().ok_or_else(|| {
            let folder = self.sign.as_ref().and_then(|sign| sign.path.parent());
            let folder = folder.unwrap_or(Path::new("/")).display();
            Error::CantOpen(format!("{folder}, where the log is to be, can't be opened"))
        })
    }

    /// Opens the log for writing.
    pub(crate) fn open(&self) -> Result<Opened<S>> {
        self.open_by(|directory, name| LogFile::open(directory, name))
    }

    /// The same, for reading.
    pub(crate) fn open_to_read(&self) -> Result<Opened<S>> {
        self.open_by(|directory, name| LogFile::open_to_read(directory, name))
    }

    /// Opens the log, if a sign may lead there: before it is opened by its name, and after, as the
    /// folder may be another user's.
    fn open_by(
        &self,
        open: impl Fn(&S::Directory, LogName<'_>) -> Result<Option<LogFile<S::File>>>,
    ) -> Result<Opened<S>> {
        let Some(directory) = &self.directory else { return Ok(Ok(None)) };
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
    pub(crate) fn is_ours(&self, found: &Metadata) -> Result<bool> {
        let Some(database) = &self.database else { return Ok(true) };
        let belongs = belongs(found, &**database);
        Ok(belongs.during(Operation::Stat, self.name.to_string_lossy())?
            || broken(Mutation::AlienLogTaken))
    }

    /// Removes the log, durably if it lies elsewhere. What may be no log is left there.
    pub(crate) fn unlink(&self, names: &Names) -> Result<()> {
        if self.sign.is_some() {
            match self.open_to_read()? {
                Err(strayed) => return Err(refusal(names, strayed)),
                Ok(Some(log)) if log.read_head()?.is_err() => return Ok(()),
                Ok(_) => {}
            }
        }
        self.unlink_name(names)
    }

    /// Removes a log that was being made, which is nothing but zeros; whether it was.
    pub(crate) fn unlink_unmade(&self, log: &LogFile<S::File>, names: &Names) -> Result<bool> {
        if self.sign.is_some() && log.read_all()?.iter().any(|&byte| byte != 0) {
            return Ok(false);
        }
        self.unlink_name(names).map(|()| true)
    }

    fn unlink_name(&self, names: &Names) -> Result<()> {
        let Some(directory) = &self.directory else { return Ok(()) };
        match directory.unlink(&self.name) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            other => other.during(Operation::Delete, names.shown_log())?,
        }
        match self.sign {
            Some(_) => directory.flush().during(Operation::FlushDirectory, names.shown_log()),
            None => Ok(()),
        }
    }

    /// Whether a log with this head is the one that the sign speaks of. Zeros are one that was
    /// being made.
    pub(crate) fn is_it(&self, head: &std::result::Result<Head, Invalid>) -> bool {
        let Some(sign) = &self.sign else { return true };
        if broken(Mutation::ForeignLogTaken) || broken(Mutation::SignNotChecked) {
            return true;
        }
        match head {
            Ok(head) => head.id == sign.id,
            Err(why) => !sign.is_made && *why == Invalid::Absent,
        }
    }

    /// What is wrong with what the sign speaks of, if anything is (WAL-26). `owner`: inode number
    /// of the database.
    pub(crate) fn strayed(&self, owner: u64) -> Result<Option<Strayed>> {
        let Some(sign) = &self.sign else { return Ok(None) };
        if broken(Mutation::SignNotChecked) {
            return Ok(None);
        }
        if sign.owner != owner && !broken(Mutation::CopiedSignTaken) {
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

/// Reads the sign of a database. `Err` in it: it is not followed. One that is void may be
/// anybody's.
pub(crate) fn read<S: Storage>(
    directory: &S::Directory,
    names: &Names,
    database: &S::File,
) -> Result<std::result::Result<Option<Sign>, Strayed>> {
    let Some(file) = open_if_there::<S>(directory, &names.log, OpenMode::Read)? else {
        return Ok(Ok(None));
    };
    let shown = names.log.to_string_lossy();
    let found = sign::examine(&file, &shown)?;
    let is_followed = match &found {
        Found::Sign(sign) if is_void(sign, database.id().inode) => true,
        Found::Nothing | Found::Log => true,
        Found::Sign(_) | Found::Damaged => is_theirs(&file, database, &shown)?,
    };
    Ok(match found {
        _ if !is_followed => Err(Strayed::Planted),
        Found::Nothing | Found::Log => Ok(None),
        Found::Sign(sign) => Ok(Some(sign)),
        Found::Damaged => Err(Strayed::Unreadable),
    })
}

/// Whether a sign's file is of the database's owner.
fn is_theirs<F: File>(file: &F, database: &F, shown: &str) -> Result<bool> {
    let belongs = file.metadata().and_then(|found| belongs(&found, database));
    Ok(belongs.during(Operation::Stat, shown)? || broken(Mutation::PlantedSignFollowed))
}

/// Whether a sign says nothing of the database with this inode number: it was another one's, which
/// is gone, or was copied, and no log was made by then.
pub(crate) fn is_void(sign: &Sign, owner: u64) -> bool {
    !sign.is_made && sign.owner != owner
}

/// Puts a sign under the log's name, in the place of what is there. Its content is durable, its
/// name is not before the folder is flushed.
pub(crate) fn write<S: Storage>(
    directory: &S::Directory,
    names: &Names,
    database: &S::File,
    sign: &Sign,
) -> Result<()> {
    let shown = names.log.to_string_lossy();
    let bytes = sign.encode()?;
    // What lies there was not finished, or is somebody else's.
    match directory.unlink(&names.new_sign) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        other => other.during(Operation::Delete, &*shown)?,
    }
    // Whoever may use the database may read where its log is; and follows no other sign.
    let file = make(directory, &names.new_sign, database).during(Operation::Open, &*shown)?;
    if !is_theirs(&file, database, &shown)? {
        drop(directory.unlink(&names.new_sign));
        return Err(Error::CantOpen(format!(
            "dash_log={}: {shown}, which says that, can't be given to the owner of {}, so nobody would follow it",
            sign.path.display(),
            names.shown()
        )));
    }
    file.write_at(&bytes, 0).during(Operation::Write, &*shown)?;
    file.flush().during(Operation::Flush, &*shown)?;
    directory.rename(&names.new_sign, &names.log).during(Operation::Exchange, &*shown)
}

/// Changes a word of the sign that is there, durably, if that is still this one.
pub(crate) fn mark<S: Storage>(
    directory: &S::Directory,
    names: &Names,
    database: &S::File,
    sign: &Sign,
    (at, word): (u64, Vec<u8>),
) -> Result<()> {
    let shown = names.log.to_string_lossy();
    let file = directory.open(&names.log, OpenMode::ReadWrite).during(Operation::Open, &*shown)?;
    if !is_theirs(&file, database, &shown)? {
        return Err(refusal(names, Strayed::Planted));
    }
    let is_it = |found: &Sign| (found.id, &found.path) == (sign.id, &sign.path);
    if !matches!(sign::examine(&file, &shown)?, Found::Sign(found) if is_it(&found)) {
        return Err(refusal(names, Strayed::Unreadable));
    }
    file.write_at(&word, at).during(Operation::Write, &*shown)?;
    file.flush().during(Operation::Flush, &*shown)
}

/// The name of a log in a folder that is not its own.
pub(crate) fn name_in_folder(names: &Names, id: u64) -> String {
    let db: String = names.shown().chars().take(LETTERS).collect();
    format!("{db}-{id:016x}-dashlog")
}

/// Removes a sign that is there, durably.
pub(crate) fn remove<S: Storage>(directory: &S::Directory, names: &Names) -> Result<()> {
    let shown = names.log.to_string_lossy();
    match directory.unlink(&names.log) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        other => other.during(Operation::Delete, &*shown)?,
    }
    directory.flush().during(Operation::FlushDirectory, &*shown)
}

/// Removes a log in which nothing counts. Where it lies elsewhere the sign says first that it may
/// be missing (WAL-27), and stays.
pub(crate) fn retire<S: Storage>(
    directory: &S::Directory,
    names: &Names,
    place: &mut Place<S>,
) -> Result<()> {
    if let Some(sign) = &mut place.sign
        && sign.is_made
        && !broken(Mutation::RetiredEarly)
    {
        sign.is_made = false;
        let database = place.database.as_ref().ok_or(Error::OutOfMemory)?;
        mark::<S>(directory, names, database, sign, sign.state_word())?;
    }
    place.unlink(names)
}
