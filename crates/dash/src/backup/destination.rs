//! Where a backup goes: what may not be overwritten, and the unfinished file beside DEST.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use dash_engine::names::with;
use dash_ffi::{Code, Error, Result};
use dash_storage::real::{self, Real};
use dash_storage::{Directory, File, FileId, FileKind, LockKind, OpenMode, Storage};

/// What is appended to DEST's name until the copy is whole.
const UNFINISHED: &str = ".dash-backup-unfinished";

/// What lies beside a database, and is taken for its own.
const BESIDE: [&str; 8] =
    ["-journal", "-wal", "-shm", "-shadow", "-shadow-tmp", "-dash", "-dash-sign", "-dashlog"];

/// What else dash gives a name there.
const OTHERS: [&str; 3] = ["-shadow-old", "-dash-fence", "-dash-new"];

/// What an SQLite database begins with, and where it says the bytes of a page: nothing but such a
/// file, or an empty one, is replaced.
const DATABASE: &[u8; 16] = b"SQLite format 3\0";
const PAGE_SIZE: std::ops::Range<usize> = 16..18;

/// A lock on the unfinished file says that its backup lives. SQLite never locks there.
const LIVES: std::ops::Range<u64> = 0..1;

/// A name that may be written.
pub struct Destination {
    folder: real::Directory,
    path: PathBuf,
    name: OsString,
    unfinished: OsString,
    replace: bool,
}

fn refused(code: Code, message: String) -> Error {
    Error::new(code, format!("dash_backup: {message}"))
}

impl Destination {
    /// Looks whether `path` may be written, by a backup of the database at `source`. `allow` says
    /// of the folder, which is open from then on, whether a file may be made there.
    ///
    /// # Errors
    ///
    /// `SQLITE_CANTOPEN`, `SQLITE_READONLY` or `SQLITE_ERROR`, with the file and what to do.
    pub fn look(
        path: &Path,
        source: Option<&Path>,
        replace: bool,
        allow: impl FnOnce(&real::Directory, &Path) -> Result<()>,
    ) -> Result<Self> {
        let shown = path.display();
        let Some(name) = path.file_name() else {
            return Err(refused(Code::CANTOPEN, format!("{shown} is no name of a file; name one")));
        };
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let cant = |error: io::Error| {
            let folder = folder.display();
            refused(
                Code::CANTOPEN,
                format!("the folder {folder} can't be used: {error}; make it, or name another"),
            )
        };
        let opened = Real.open_directory(folder).map_err(cant)?;
        let shown = folder.canonicalize().map_err(cant)?;
        allow(&opened, &shown)?;
        let (folder, path) = (opened, shown.join(name));
        let to = Self {
            folder,
            path,
            name: name.to_owned(),
            unfinished: with(name, UNFINISHED),
            replace,
        };
        if let Some(source) = source {
            to.is_none_of(source)?;
        }
        to.has_nothing_beside()?;
        to.is_beside_nothing()?;
        to.finish_killed()?;
        to.may_be_made()?;
        Ok(to)
    }

    /// Takes the other name away from a copy whose maker was killed in [`Unfinished::rename`].
    fn finish_killed(&self) -> Result<()> {
        let [copy, other] = [&self.name, &self.unfinished].map(|name| self.look_for(name));
        let (copy, other) = (copy?, other?);
        if copy.is_none() || copy.map(|found| found.id) != other.map(|found| found.id) {
            return Ok(());
        }
        let removed = self.folder.unlink(&self.unfinished);
        removed.map_err(|error| self.failed("removing what a killed backup left of", &error))
    }

    /// Refuses the database itself and its own files, under any name.
    fn is_none_of(&self, source: &Path) -> Result<()> {
        let source = source.canonicalize().unwrap_or_else(|_| source.to_owned());
        let Some(name) = source.file_name() else { return Ok(()) };
        let found = self.id_of(&self.name)?;
        let folder = source.parent().and_then(|folder| Real.open_directory(folder).ok());
        for ending in BESIDE.iter().chain(&OTHERS).chain(&[""]) {
            let own = with(name, ending);
            let same_name = source.with_file_name(&own) == self.path;
            let id = folder.as_ref().and_then(|folder| folder.metadata(&own).ok().flatten());
            let same_file = found.is_some() && id.map(|found| found.id) == found;
            if same_name || same_file {
                let (to, source) = (self.path.display(), source.display());
                let what =
                    if ending.is_empty() { "the database" } else { "a file of the database" };
                let message = format!("{to} is {what} {source} itself; name another file");
                return Err(refused(Code::ERROR, message));
            }
        }
        Ok(())
    }

    /// The file behind a name, symbolic links followed.
    fn id_of(&self, name: &OsStr) -> Result<Option<FileId>> {
        use std::os::unix::fs::MetadataExt;
        match std::fs::metadata(self.path.with_file_name(name)) {
            Ok(found) => Ok(Some(FileId { device: found.dev(), inode: found.ino() })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed("looking at", &error)),
        }
    }

    /// SQLite would take what lies there for the copy's, and the copy for something else.
    fn has_nothing_beside(&self) -> Result<()> {
        for ending in BESIDE {
            let name = with(&self.name, ending);
            if self.look_for(&name)?.is_some() {
                return Err(refused(
                    Code::ERROR,
                    format!(
                        "{} lies beside the place of the copy, and SQLite would take it for the copy's: if no program has that \
                         database open, remove it, or name another file",
                        self.path.with_file_name(&name).display()
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Refuses a name that SQLite, or dash, would take for a file of another database, which may be
    /// made any time.
    fn is_beside_nothing(&self) -> Result<()> {
        let bytes = self.name.as_bytes();
        let base = |ending: &str| bytes.strip_suffix(ending.as_bytes());
        let found = BESIDE.iter().find_map(|ending| Some((ending, base(ending)?)));
        let Some((ending, base)) = found.filter(|(_, base)| !base.is_empty()) else {
            return Ok(());
        };
        let base = OsStr::from_bytes(base);
        let (shown, base) = (self.path.display(), self.path.with_file_name(base));
        let base = base.display();
        let message = format!(
            "{shown} would be taken for a file of the database {base}; give it another ending than {ending}"
        );
        Err(refused(Code::ERROR, message))
    }

    fn may_be_made(&self) -> Result<()> {
        let shown = self.path.display();
        let why = match self.look_for(&self.name)?.map(|found| found.kind) {
            None => return Ok(()),
            Some(FileKind::Regular) if !self.replace => {
                "exists; name another file, or let it be replaced: sqlite-dash backup --force, or with dash_backup=on in the URI \
                 dash_backup(path, schema, 'replace')"
            }
            Some(FileKind::Regular) if !self.is_replaceable()? => {
                "is neither an SQLite database nor empty, and may hold what is nowhere else; remove it, or name another file"
            }
            Some(FileKind::Regular) => {
                if !self.folder.is_mount_point(&self.name).unwrap_or(false) {
                    return Ok(());
                }
                "is mounted by itself and can't be replaced; name another file"
            }
            Some(FileKind::Directory) => "is a folder; name a file in it",
            Some(FileKind::Other) => "exists and is no regular file; name another file",
        };
        Err(refused(Code::CANTOPEN, format!("{shown} {why}")))
    }

    /// Whether it is a database, as long as one with its pages, or empty.
    fn is_replaceable(&self) -> Result<bool> {
        let failed = |error| self.failed("looking at", &error);
        let file = self.folder.open(&self.name, OpenMode::Read).map_err(failed)?;
        let mut start = [0; PAGE_SIZE.end];
        let read = file.read_at(&mut start, 0).map_err(failed)?;
        let len = file.metadata().map_err(failed)?.len;
        let page = match u64::from(u16::from_be_bytes([start[16], start[17]])) {
            1 => 65536,
            bytes => bytes,
        };
        let is_whole = page >= 512 && page.is_power_of_two() && len.is_multiple_of(page);
        Ok(len == 0 || (read == start.len() && start.starts_with(DATABASE) && is_whole))
    }

    fn look_for(&self, name: &OsStr) -> Result<Option<dash_storage::Metadata>> {
        self.folder.metadata(name).map_err(|error| self.failed("looking at", &error))
    }

    fn failed(&self, what: &str, error: &io::Error) -> Error {
        let (code, advice) = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                (Code::FULL, "; make room, or back up to another disk")
            }
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                (Code::READONLY, "; get the right to write its folder, or name another")
            }
            _ => (Code::IOERR, ""),
        };
        refused(code, format!("{what} {}: {error}{advice}", self.path.display()))
    }

    /// Makes the unfinished file, with room for `len` bytes. One that a killed backup left is
    /// removed.
    ///
    /// # Errors
    ///
    /// `SQLITE_BUSY` while another backup to the same name lives; `SQLITE_FULL` if there is no
    /// room; `SQLITE_READONLY`.
    pub fn make(self, len: u64) -> Result<Unfinished> {
        self.remove_leftover()?;
        let mode = OpenMode::CreateNew { permissions: 0o600 };
        let file =
            self.folder.open(&self.unfinished, mode).map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => self.is_under_way(),
                _ => self.failed("making", &error),
            })?;
        let locked = file.try_lock(LIVES, LockKind::Exclusive);
        if !locked.map_err(|error| self.failed("locking", &error))? || !self.is_ours(&file)? {
            return Err(self.is_under_way());
        }
        let unfinished = Unfinished { to: self, file, published: false };
        let room = unfinished.file.allocate(len);
        room.map_err(|error| unfinished.failed(&format!("reserving {len} bytes for"), &error))?;
        Ok(unfinished)
    }

    fn remove_leftover(&self) -> Result<()> {
        let Some(found) = self.look_for(&self.unfinished)? else { return Ok(()) };
        let shown = self.path.with_file_name(&self.unfinished);
        if found.kind != FileKind::Regular {
            let message = format!("{} is in the way; remove it", shown.display());
            return Err(refused(Code::CANTOPEN, message));
        }
        let file = match self.folder.open(&self.unfinished, OpenMode::ReadWrite) {
            // It was another's, which is done.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(self.failed("opening what a killed backup left of", &error)),
            Ok(file) => file,
        };
        let dead = file.try_lock(LIVES, LockKind::Exclusive);
        if !dead.map_err(|error| self.failed("locking", &error))? || !self.is_ours(&file)? {
            return Err(self.is_under_way());
        }
        let removed = self.folder.unlink(&self.unfinished);
        removed.map_err(|error| self.failed("removing what a killed backup left of", &error))
    }

    /// Whether the unfinished file is still this one.
    fn is_ours(&self, file: &real::File) -> Result<bool> {
        Ok(self.look_for(&self.unfinished)?.is_some_and(|found| found.id == file.id()))
    }

    fn is_under_way(&self) -> Error {
        let message =
            format!("another backup to {} is under way; wait for it", self.path.display());
        refused(Code::BUSY, message)
    }
}

/// The file until it is whole; removed when it is dropped before.
pub struct Unfinished {
    to: Destination,
    file: real::File,
    published: bool,
}

impl Unfinished {
    /// Its name.
    pub fn path(&self) -> PathBuf {
        self.to.path.with_file_name(&self.to.unfinished)
    }

    /// An error of it that says what was being done. Another backup that began at that moment may
    /// have removed it.
    pub fn failed(&self, what: &str, error: &io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::NotFound => self.to.is_under_way(),
            _ => self.to.failed(what, error),
        }
    }

    /// It by its name. Who may rename in that folder can have put another file there.
    fn open(&self, mode: OpenMode) -> Result<real::File> {
        let opened = self.to.folder.open(&self.to.unfinished, mode);
        let file = opened.map_err(|error| self.failed("opening", &error))?;
        self.is_it(file.id())?;
        Ok(file)
    }

    /// That this is what was made.
    fn is_it(&self, id: FileId) -> Result<()> {
        match id == self.file.id() {
            true => Ok(()),
            false => {
                Err(self.failed("opening", &io::Error::other("somebody put another file there")))
            }
        }
    }

    /// The file, to be written.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn open_again(&self) -> Result<real::File> {
        self.open(OpenMode::ReadWrite)
    }

    /// The file as the disk has it, where it can be read past the page cache; else as it is there.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn to_read_back(&self) -> Result<real::File> {
        let file = self.open(OpenMode::Read)?;
        // Where that can't be, the cache answers: no reason to have no backup.
        drop(file.make_direct());
        Ok(file)
    }

    /// Gives it the access rights of the database `source`, or less, and its name; durably. Without
    /// `source` it stays its maker's alone.
    ///
    /// # Errors
    ///
    /// `SQLITE_CANTOPEN` if DEST has come meanwhile; the system's.
    pub fn publish(mut self, source: Option<&real::File>) -> Result<()> {
        if let Some(source) = source {
            let given = self.file.copy_access(source);
            given.map_err(|error| self.failed("setting the access rights of", &error))?;
        }
        self.to.has_nothing_beside()?;
        self.to.may_be_made()?;
        let named = self.to.look_for(&self.to.unfinished)?;
        named.map_or(Ok(()), |named| self.is_it(named.id))?;
        self.rename().map_err(|error| self.failed("naming", &error))?;
        self.published = true;
        self.to.folder.flush().map_err(|error| {
            let message = format!(
                "{} is whole, but flushing its folder failed ({error}): a power loss may take its name",
                self.to.path.display()
            );
            refused(Code::IOERR_DIR_FSYNC, message)
        })
    }

    /// Without `replace` whoever came first keeps the name, where the file system has hard links.
    fn rename(&self) -> io::Result<()> {
        let to = &self.to;
        if !to.replace {
            match to.folder.link(&to.unfinished, &to.name) {
                Ok(()) => return to.folder.unlink(&to.unfinished),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
                Err(_) => {}
            }
        }
        to.folder.rename(&to.unfinished, &to.name)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.published {
            drop(self.to.folder.unlink(&self.to.unfinished));
        }
    }
}
