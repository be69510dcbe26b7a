//! Where a backup goes, and what may not be overwritten there.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use dash_engine::names::with;
use dash_ffi::{Code, Error, Result};
use dash_storage::real::{self, Real};
use dash_storage::{Directory, File, FileId, FileKind, OpenMode, Storage};

mod unfinished;

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
}
