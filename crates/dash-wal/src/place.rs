//! Where a database's log lies: beside it, or where a sign under the log's name says (WAL-25). What
//! a sign speaks of is there, whole, and of this database; or the database is not opened, for what
//! the log held may be nowhere else (WAL-26).

use crate::mutation::{Mutation, broken};
use crate::names::Names;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::open::open_if_there;
use dash_log::file::LogFile;
use dash_log::format::{Invalid, RING_START};
use dash_log::head::Head;
use dash_log::sign::{self, Found, Sign};
use dash_storage::{Directory, File, OpenMode, Storage};
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
}

/// Why a log that lies elsewhere is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strayed {
    /// It is not there, or its folder is not.
    Lost,
    /// What is there is another log, or none.
    Foreign,
    /// It is shorter than it was.
    Cut,
    /// The sign is another database's: somebody has copied it.
    Copied,
    /// The sign is damaged.
    Unreadable,
}

impl<S: Storage> Place<S> {
    /// Beside the database.
    pub(crate) fn beside(directory: &Arc<S::Directory>, names: &Names) -> Self {
        let directory = Some(Arc::clone(directory));
        Self { directory, name: names.log.clone(), sign: None }
    }

    /// Nowhere: there is none.
    pub(crate) fn nowhere() -> Self {
        Self { directory: None, name: OsString::new(), sign: None }
    }

    /// Where a sign says.
    ///
    /// # Errors
    ///
    /// Those of a folder that may be there.
    pub(crate) fn of(storage: &S, sign: Sign) -> Result<Self> {
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
        Ok(Self { directory, name, sign: Some(sign) })
    }

    /// The log's name in its folder.
    pub(crate) fn name(&self) -> &OsStr {
        &self.name
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

    /// Opens the log for writing; `None`: there is none.
    pub(crate) fn open(&self) -> Result<Option<LogFile<S::File>>> {
        match &self.directory {
            Some(directory) => LogFile::open(&**directory, &self.name),
            None => Ok(None),
        }
    }

    /// The same, for reading.
    pub(crate) fn open_to_read(&self) -> Result<Option<LogFile<S::File>>> {
        match &self.directory {
            Some(directory) => LogFile::open_to_read(&**directory, &self.name),
            None => Ok(None),
        }
    }

    /// Removes the log, durably if it lies elsewhere.
    pub(crate) fn unlink(&self, names: &Names) -> Result<()> {
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
        let Some(log) = self.open_to_read()? else {
            let lost = sign.is_made && !broken(Mutation::LostPlaceEmpty);
            return Ok(lost.then_some(Strayed::Lost));
        };
        Ok(match log.read_head()? {
            // Recovery says so, and what to do.
            Err(Invalid::Newer(_)) => None,
            head if !self.is_it(&head) => Some(Strayed::Foreign),
            // It was being made.
            Err(_) => None,
            Ok(head) => {
                let len = log.file().metadata().during(Operation::Stat, log.name())?.len;
                (len < head.ring.saturating_add(RING_START)).then_some(Strayed::Cut)
            }
        })
    }
}

/// Reads the sign of a database. `Err` in it: it is damaged.
pub(crate) fn read<S: Storage>(
    directory: &S::Directory,
    names: &Names,
) -> Result<std::result::Result<Option<Sign>, Strayed>> {
    Ok(match sign::look::<S>(directory, &names.log)? {
        Found::Nothing | Found::Log => Ok(None),
        Found::Sign(sign) => Ok(Some(sign)),
        Found::Damaged => Err(Strayed::Unreadable),
    })
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
    let permissions = database.metadata().during(Operation::Stat, names.shown())?.permissions;
    let mode = OpenMode::Create { permissions };
    let file = directory.open(&names.new_sign, mode).during(Operation::Open, &*shown)?;
    // Whoever may use the database may read where its log is; as far as that can be.
    drop(file.copy_access(database));
    file.set_len(0).during(Operation::Resize, &*shown)?;
    file.write_at(&bytes, 0).during(Operation::Write, &*shown)?;
    file.flush().during(Operation::Flush, &*shown)?;
    directory.rename(&names.new_sign, &names.log).during(Operation::Exchange, &*shown)
}

/// Changes a word of the sign that is there, durably.
pub(crate) fn mark<S: Storage>(
    directory: &S::Directory,
    names: &Names,
    (at, word): (u64, Vec<u8>),
) -> Result<()> {
    let shown = names.log.to_string_lossy();
    let file = directory.open(&names.log, OpenMode::ReadWrite).during(Operation::Open, &*shown)?;
    file.write_at(&word, at).during(Operation::Write, &*shown)?;
    file.flush().during(Operation::Flush, &*shown)
}

/// The path of the log that a person has asked for: a folder's is that of a new file in it.
pub(crate) fn wanted<S: Storage>(storage: &S, names: &Names, path: &Path, id: u64) -> Wanted {
    match storage.open_directory(path) {
        Ok(_) => {
            let db: String = names.shown().chars().take(LETTERS).collect();
            Wanted::In(path.join(format!("{db}-{id:016x}-dashlog")))
        }
        Err(_) => Wanted::At,
    }
}

/// What a path that was asked for is.
pub(crate) enum Wanted {
    /// A folder, in which this would be the log.
    In(std::path::PathBuf),
    /// The log itself.
    At,
}

/// Why a database is not opened whose log strayed, and what to do.
pub(crate) fn refusal(names: &Names, strayed: Strayed) -> Error {
    let (db, log, sign) = (names.shown(), names.shown_log(), names.log.to_string_lossy());
    let without = format!("let `dash recover {db} --discard` take {db} without it");
    Error::CantOpen(match strayed {
        Strayed::Lost => format!(
            "{log} is missing: it is the log of {db}, as {sign} says, and may hold commits that are nowhere else; mount the \
             folder that it is in, or put it back, or {without}. What lay on a tmpfs is gone after a reboot"
        ),
        Strayed::Foreign => format!(
            "{log} is not the log of {db} that {sign} speaks of, but another one, or damaged; put the right one there, or {without}"
        ),
        Strayed::Cut => format!(
            "{log}, the log of {db}, is shorter than it was, and may have lost commits; put it back whole, or {without}"
        ),
        Strayed::Copied => format!(
            "{sign} says that the log of {db} is {log}, and was written for another file: {db} is a copy of it. Where its log \
             moved with it, `dash recover {db} --keep` takes that; else {without}"
        ),
        Strayed::Unreadable => format!(
            "{sign} says where the log of {db} is, and is damaged; put it back, or {without}"
        ),
    })
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

/// Whether a file is there.
pub(crate) fn is_there<S: Storage>(directory: &S::Directory, name: &OsStr) -> Result<bool> {
    Ok(open_if_there::<S>(directory, name, OpenMode::Read)?.is_some())
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
        mark::<S>(directory, names, sign.state_word())?;
    }
    place.unlink(names)
}
