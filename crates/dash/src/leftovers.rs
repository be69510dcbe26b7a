//! What stock SQLite may have left beside a database: a rollback journal, or a WAL. The engine
//! knows neither, so stock SQLite itself finishes that first ([`crate::clearing`]).
//!
//! A *directory* under the journal's name is the engine's name fence, no journal.

use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use dash_engine::error::{Error as EngineError, Operation};
use dash_engine::header::{HEADER_LEN, Header};
use dash_engine::names::with;
use dash_engine::note;
use dash_ffi::{Code, Error, Result};
use dash_storage::real::{self, Real};
use dash_storage::{Directory, File, FileKind, Metadata, OpenMode, Storage};

use crate::errors::{looking_for, to_sqlite};

fn has_one_name(name: &OsStr, links: u64) -> Result<()> {
    if links <= 1 {
        return Ok(());
    }
    let name = name.to_string_lossy();
    let message = format!(
        "{name} is another file, too ({links} hard links), which would be overwritten: remove the other links"
    );
    Err(Error::new(Code::CANTOPEN, message))
}

/// Length of the header that SQLite itself reads first.
pub const HEADER: usize = 100;

/// How a header begins.
pub const MAGIC: &[u8] = b"SQLite format 3\0";

/// Bytes 18 and 19 of the header: 2 in a file in WAL mode.
const VERSIONS: Range<usize> = 18..20;
const WAL_VERSION: u8 = 2;

/// What lies beside a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leftover {
    /// A rollback journal, hot or not.
    Journal,
    /// A WAL, or a header that says WAL mode.
    Wal,
}

/// Whether a header, or its beginning, says WAL mode.
pub fn says_wal(header: &[u8]) -> bool {
    header.get(VERSIONS).is_some_and(|versions| versions.contains(&WAL_VERSION))
}

/// The names around a database. Looks at names only: opening and closing the database itself is
/// dear while anybody holds locks on it.
pub struct Neighbours {
    folder: Option<Arc<real::Directory>>,
    wal: OsString,
    memory: OsString,
    journal: OsString,
}

impl Neighbours {
    /// Those of the database at `path`.
    pub fn of(path: &Path) -> Self {
        let named = |ending| with(path.file_name().unwrap_or_default(), ending);
        Self {
            // If there is none, opening the database will say so.
            folder: path.parent().and_then(|folder| Real.open_directory(folder).ok().map(Arc::new)),
            wal: named("-wal"),
            memory: named("-shm"),
            journal: named("-journal"),
        }
    }

    /// The folder they are all in, if it could be opened.
    pub fn folder(&self) -> Option<&Arc<real::Directory>> {
        self.folder.as_ref()
    }

    /// Looks for leftovers. As to stock SQLite an empty WAL is none.
    ///
    /// # Errors
    ///
    /// `SQLITE_CANTOPEN` if they can't be looked for.
    pub fn find(&self) -> Result<Option<Leftover>> {
        if self.has_wal()? {
            return Ok(Some(Leftover::Wal));
        }
        // An empty one is in the way of the name fence.
        Ok(self.has_journal()?.then_some(Leftover::Journal))
    }

    /// Refuses files of SQLite's own that are other files, too: it would write them, and give them
    /// to the database's owner. And pipes: it would wait for somebody who writes into them.
    ///
    /// # Errors
    ///
    /// `SQLITE_CANTOPEN` with the file and what to do.
    pub fn have_one_name(&self) -> Result<()> {
        for name in [&self.journal, &self.wal, &self.memory] {
            let found = self.folder.as_ref().map(|folder| folder.metadata(name));
            let found = found.and_then(|found| found.ok().flatten());
            match found.map(|found| (found.kind, found.links)) {
                Some((FileKind::Regular, links)) => has_one_name(name, links)?,
                Some((FileKind::Other, _)) => {
                    let name = name.to_string_lossy();
                    let message = format!("{name} is a pipe, a link or a device: remove it");
                    return Err(Error::new(Code::CANTOPEN, message));
                }
                Some((FileKind::Directory, _)) | None => {}
            }
        }
        Ok(())
    }

    /// Whether there is a WAL that is not empty.
    ///
    /// # Errors
    ///
    /// `SQLITE_CANTOPEN` if it can't be looked for.
    pub fn has_wal(&self) -> Result<bool> {
        Ok(self.length_of(&self.wal)?.is_some_and(|len| len > 0))
    }

    /// Whether there is a rollback journal that SQLite would roll back, if nobody writes with it:
    /// whatever the header says now, it may say something else then.
    ///
    /// # Errors
    ///
    /// `SQLITE_CANTOPEN`
    pub fn has_hot_journal(&self) -> Result<bool> {
        let first = || {
            let file = self.folder.as_ref()?.open(&self.journal, OpenMode::Read).ok()?;
            let mut first = [0];
            file.read_at(&mut first, 0).ok().filter(|read| *read > 0)?;
            Some(first[0])
        };
        Ok(self.length_of(&self.journal)?.is_some() && first().is_some_and(|byte| byte != 0))
    }

    /// Whether the database at `path` itself says that it is in WAL mode. No, if it can't be read:
    /// opening will say why.
    pub fn says_wal(&self, path: &Path) -> bool {
        self.beginning(path).is_some_and(|header| says_wal(&header))
    }

    /// Whether it begins as a database, and not one in WAL mode.
    pub fn says_rollback_mode(&self, path: &Path) -> bool {
        self.beginning(path).is_some_and(|header| header.starts_with(MAGIC) && !says_wal(&header))
    }

    /// The header up to [`VERSIONS`]; zeros where there is nothing.
    fn beginning(&self, path: &Path) -> Option<[u8; VERSIONS.end]> {
        let mut header = [0; VERSIONS.end];
        self.open(path)?.read_at(&mut header, 0).ok()?;
        Some(header)
    }

    /// Page 1 of the database at `path`, if it can be read.
    pub fn first_page(&self, path: &Path) -> Option<Vec<u8>> {
        let (file, mut header) = (self.open(path)?, [0; HEADER_LEN]);
        file.read_at(&mut header, 0).ok()?;
        let mut first = vec![0; usize::try_from(Header(header).page_size()?).ok()?];
        file.read_at(&mut first, 0).ok()?;
        Some(first)
    }

    /// The database, by a descriptor that is not closed while anybody in this process has locks on
    /// it.
    fn open(&self, path: &Path) -> Option<real::File> {
        self.folder.as_ref()?.open(path.file_name()?, OpenMode::Read).ok()
    }

    /// Whether there is a rollback journal, hot or not.
    ///
    /// # Errors
    ///
    /// `SQLITE_CANTOPEN` if it can't be looked for.
    pub fn has_journal(&self) -> Result<bool> {
        Ok(self.length_of(&self.journal)?.is_some())
    }

    /// Refuses a name fence, for who only has stock SQLite's means.
    ///
    /// # Errors
    ///
    /// `SQLITE_CANTOPEN`
    pub fn refuse_fence(&self, path: &Path) -> Result<()> {
        match self.has_fence()? {
            true => Err(fenced(&path.with_file_name(&self.journal))),
            false => Ok(()),
        }
    }

    /// Whether the name fence stands.
    ///
    /// # Errors
    ///
    /// `SQLITE_CANTOPEN` if it can't be looked for.
    pub fn has_fence(&self) -> Result<bool> {
        let found = self.look_for(&self.journal)?;
        Ok(found.is_some_and(|found| found.kind == FileKind::Directory))
    }

    /// Whether only stock SQLite can make sense of what lies there, for a connection that may only
    /// read. Beside a journal that is not hot the engine can: `app.db` may be the older one of its
    /// two copies.
    ///
    /// # Errors
    ///
    /// `SQLITE_CANTOPEN` if that can't be looked for.
    pub fn stock_has_to_read(&self) -> Result<bool> {
        Ok(match (self.find()?, &self.folder) {
            (Some(Leftover::Journal), Some(folder)) => self.begins_hot(folder),
            (found, _) => found.is_some(),
        })
    }

    /// Refuses what is neither a journal nor a name fence under the name of both: no commit could
    /// be made beside it.
    ///
    /// # Errors
    ///
    /// `SQLITE_CANTOPEN`
    pub fn leave_the_fence_its_name(&self) -> Result<()> {
        if self.look_for(&self.journal)?.is_none_or(|found| found.kind != FileKind::Other) {
            return Ok(());
        }
        let name = self.journal.to_string_lossy();
        Err(Error::new(
            Code::CANTOPEN,
            format!(
                "{name} is a symbolic link, a named pipe, a socket or a device; neither stock SQLite nor dash can write the \
                 database beside it: remove it"
            ),
        ))
    }

    /// Makes durable which names there are, and which not.
    ///
    /// # Errors
    ///
    /// `SQLITE_IOERR_DIR_FSYNC`
    pub fn flush_folder(&self) -> Result<()> {
        let flushed = self.folder.as_ref().map_or(Ok(()), |folder| folder.flush());
        flushed.map_err(|source| {
            let operation = Operation::FlushDirectory;
            let name = self.journal.to_string_lossy().into_owned();
            to_sqlite(EngineError::Io { operation, name, source })
        })
    }

    fn length_of(&self, name: &OsStr) -> Result<Option<u64>> {
        let found = self.look_for(name)?.filter(|found| found.kind == FileKind::Regular);
        Ok(found.map(|found| found.len))
    }

    fn look_for(&self, name: &OsStr) -> Result<Option<Metadata>> {
        let Some(folder) = &self.folder else {
            return Ok(None);
        };
        folder.metadata(name).map_err(|error| looking_for(name.display(), &error))
    }

    /// Removes an empty folder under the name of stock SQLite's shared memory. The check of a file
    /// system without a journal may leave one there, where that file had the inode number of a
    /// former name fence, and stock SQLite can't open the database beside it.
    pub fn remove_folder_for_shared_memory(&self) {
        if let (Some(folder), Ok(Some(found))) = (&self.folder, self.look_for(&self.memory))
            && found.kind == FileKind::Directory
        {
            // One that is not empty stays, and stock SQLite says what it can't do.
            drop(note::remove_folder(&**folder, &self.memory));
        }
    }
}

impl Neighbours {
    /// Refuses to read beside what only somebody who may write can deal with; for a connection that
    /// may only read, once it holds SQLite's SHARED lock on the database at `path`. `reserved`:
    /// whether a writer lives.
    ///
    /// # Errors
    ///
    /// `SQLITE_READONLY_ROLLBACK` beside a hot journal, as stock SQLite says; with `by_stock`,
    /// where the engine does not choose the copy to read, `SQLITE_CANTOPEN` beside a name fence.
    pub fn refuse_half_written(
        &self,
        path: &Path,
        by_stock: bool,
        mut reserved: impl FnMut() -> Result<bool>,
    ) -> Result<()> {
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        let journal = path.with_file_name(&self.journal);
        let shown = journal.display();
        let failed = |error| looking_for(&shown, &error);
        let Some(found) = folder.metadata(&self.journal).map_err(failed)? else {
            return Ok(());
        };
        match found.kind {
            FileKind::Regular if found.len > 0 => {}
            FileKind::Directory if by_stock && !reserved()? => return Err(fenced(&journal)),
            _ => return Ok(()),
        }
        if reserved()? || !self.begins_hot(folder) {
            return Ok(());
        }
        Err(Error::new(
            Code::READONLY_ROLLBACK,
            format!(
                "{} has a hot rollback journal beside it, {shown}: a program was stopped in the middle of writing it, and this \
                 connection may only read; open it once for writing, with or without dash, to have that rolled back",
                path.display()
            ),
        ))
    }

    /// As stock SQLite has it: hot is what does not begin with a zero, and what may not be looked
    /// at.
    fn begins_hot(&self, folder: &real::Directory) -> bool {
        let mut first = [0];
        match folder.open(&self.journal, OpenMode::Read) {
            Ok(file) => file.read_at(&mut first, 0).map_or(true, |_| first != [0]),
            Err(error) => error.kind() != std::io::ErrorKind::NotFound,
        }
    }
}

/// Refuses to open as a rollback journal what is the name fence, or another file, too: SQLite gives
/// any journal to the database's owner.
///
/// # Errors
///
/// `SQLITE_CANTOPEN` with the reason.
pub fn refuse_odd_journal(path: &Path) -> Result<()> {
    use std::os::unix::fs::MetadataExt;
    match path.metadata() {
        Ok(found) if found.is_dir() => Err(fenced(path)),
        Ok(found) => has_one_name(path.file_name().unwrap_or_default(), found.nlink()),
        // Opening it says what there is to say.
        Err(_) => Ok(()),
    }
}

/// What stock SQLite's rules say of a name fence, which they take for a hot journal.
fn fenced(journal: &Path) -> Error {
    Error::new(
        Code::CANTOPEN,
        format!(
            "{} is a directory, the name fence of dash: the database is open through it or was not closed cleanly; \
             end the processes that have it open, or open it once through dash, as somebody who may write it and its \
             folder (sqlite-dash recover does that)",
            journal.display()
        ),
    )
}

/// Whether something has a journal's name that can be none: a name fence; what opening would wait
/// for.
pub fn is_no_journal(path: &Path) -> bool {
    let kind = path.symlink_metadata().map(|found| found.file_type());
    kind.is_ok_and(|kind| !kind.is_file() && !kind.is_symlink())
}

/// Whether stock SQLite can be left to refuse a file that is no database: nothing is under the
/// shadow's name, and it is longer than the one byte that SQLite takes for an empty database, and
/// would write. No, if that can't be told.
pub fn can_be_left_to_stock(path: &Path) -> bool {
    let look = || {
        let (folder, names) = dash_shadow::Names::split(path).ok()?;
        let folder = Real.open_directory(folder).ok()?;
        let alone = folder.metadata(&names.shadow).ok()?.is_none();
        Some(alone && folder.metadata(&names.db).ok()??.len > 1)
    };
    look().unwrap_or(false)
}
