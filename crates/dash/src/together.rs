//! Which databases a transaction may change together (ATTACH). One of mode shadow depends on the
//! super-journal until it is durably committed or undone. A plain one beside it, recovered by stock
//! SQLite after a crash, would have that deleted too early: so the mix is refused, before any of
//! them is committed or prepared, as SQLite then rolls all of them back. One in WAL mode depends on
//! no super-journal.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dash_engine::names::with;
use dash_ffi::{
    Code, DeviceCharacteristics, Error, File, FileName, HostFile, HostVfs, OpenFlags, Opened,
    Result, SyncFlags,
};
use dash_storage::real::PerProcess;

use crate::delegate::delegate;
use crate::leftovers::Neighbours;
use crate::mode::registry;

/// The super-journal of a transaction that commits: SQLite lists the journals of all its databases
/// there, and makes that durable, before it commits or prepares the first.
struct SuperJournal {
    file: HostFile,
    list: Vec<u8>,
}

/// Super-journals of refused commits of whose transaction something is still to be undone here.
/// SQLite's own VFS deletes one early, where it sees no journal that depends on it; what depends on
/// it then counts as committed (pager.c, `pager_playback`). For dash it stays until that is undone.
static REFUSED: PerProcess<Mutex<Vec<PathBuf>>> = PerProcess::new();

fn refused() -> MutexGuard<'static, Vec<PathBuf>> {
    REFUSED.get().lock().unwrap_or_else(PoisonError::into_inner)
}

/// A commit under it was refused.
pub fn keep(super_journal: &Path) {
    refused().push(super_journal.to_path_buf());
}

/// Whether it is one that is kept. SQLite asks for every file: nothing is made for that.
pub fn is_kept(path: &Path) -> bool {
    let is_kept = |refused: &Mutex<Vec<PathBuf>>| {
        let refused = refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.iter().any(|kept| kept == path)
    };
    REFUSED.found().is_some_and(is_kept)
}

/// It is needed no more.
pub fn leave(super_journal: &Path) {
    refused().retain(|kept| kept != super_journal);
}

/// One that is kept, once it is gone, as SQLite reads it: it names no journals any more.
///
/// # Errors
///
/// Those of the host.
pub fn open_kept(host: &HostVfs, flags: OpenFlags) -> Result<Opened> {
    let (file, flags) = host.open_path(Path::new("/dev/null"), flags)?;
    Ok(Opened { file: Box::new(SuperJournal { file, list: Vec::new() }), flags })
}

/// Makes the super-journal of a connection whose main database is open through dash.
///
/// # Errors
///
/// Those of the host.
pub fn make(host: &HostVfs, name: FileName<'_>, flags: OpenFlags) -> Result<Opened> {
    let (file, flags) = host.open(name, flags)?;
    Ok(Opened { file: Box::new(SuperJournal { file, list: Vec::new() }), flags })
}

impl File for SuperJournal {
    delegate!([file] read truncate size sector_size);

    fn write(&mut self, data: &[u8], offset: u64) -> Result<()> {
        self.list.extend_from_slice(data);
        self.file.write(data, offset)
    }

    fn sync(&mut self, flags: SyncFlags) -> Result<()> {
        check_list(&self.list, None)?;
        self.file.sync(flags)
    }

    /// Not `SEQUENTIAL`: SQLite would leave out the flush.
    fn device_characteristics(&mut self) -> DeviceCharacteristics {
        DeviceCharacteristics::empty()
    }

    fn close(self: Box<Self>) -> Result<()> {
        Box::new(self.file).close()
    }
}

/// Refuses such a transaction, by what its super-journal lists. `own`: SQLite is committing that
/// database, and has those that are listed before it.
///
/// # Errors
///
/// `SQLITE_ERROR`.
pub fn check_list(list: &[u8], own: Option<&Path>) -> Result<()> {
    let names = list.split(|byte| *byte == 0).filter(|journal| !journal.is_empty());
    check(names.map(|journal| Path::new(OsStr::from_bytes(journal))), own)
}

/// Refuses it before the database at `own` commits by itself in WAL mode, where nobody has seen
/// what the super-journal lists, which is what is `written`: another VFS makes that of `main`.
///
/// # Errors
///
/// `SQLITE_ERROR`.
pub fn check_unseen(main: Option<&Path>, own: &Path, written: &[PathBuf]) -> Result<()> {
    if main.is_none_or(|main| registry::mode_of(main).is_some()) {
        return Ok(());
    }
    let journals: Vec<_> = written.iter().map(|path| journal_of(path)).collect();
    check(journals.iter().map(PathBuf::as_path), Some(own))
}

fn journal_of(path: &Path) -> PathBuf {
    with(path.as_os_str(), "-journal").into()
}

fn check<'a>(
    mut journals: impl Iterator<Item = &'a Path> + Clone,
    own: Option<&Path>,
) -> Result<()> {
    let all = journals.clone();
    if !journals.clone().any(is_of_engine) {
        return Ok(());
    }
    // SQLite lists databases in memory, too, by a name that no file has: all others have their
    // folder.
    let foreign =
        journals.find(|journal| *journal != Path::new(":memory:-journal") && !is_harmless(journal));
    match foreign {
        None => Ok(()),
        Some(journal) => {
            let shown = journal.to_string_lossy();
            let name = shown.strip_suffix("-journal").unwrap_or(&shown);
            let kept = own.map(|own| committed_before(all, own)).unwrap_or_default();
            let remedy = match registry::mode_of_journal(journal) {
                Some(_) => "or PRAGMA journal_mode=shadow (or wal) with the name of its schema",
                None => "or attach it with ?vfs=dash",
            };
            Err(Error::new(
                Code::ERROR,
                format!(
                    "a transaction can't change databases of dash and {name}, which is not in mode shadow nor in mode wal: \
                     after a crash they could not be recovered together; {kept}change them in separate transactions, {remedy}"
                ),
            ))
        }
    }
}

/// What can't be taken back: stock SQLite commits what it has in WAL mode by itself, in its turn.
fn committed_before<'a>(journals: impl Iterator<Item = &'a Path>, own: &Path) -> String {
    let is_kept = |journal: &&Path| {
        registry::mode_of_journal(journal).is_none() && !journal.is_file() && is_harmless(journal)
    };
    let own = journal_of(own);
    let before = journals.take_while(|journal| *journal != own).filter(is_kept);
    let names: Vec<_> =
        before.filter_map(database_of).map(|path| path.display().to_string()).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!(
            "{}, in WAL mode on stock SQLite, has been committed all the same: don't repeat that part; ",
            names.join(", ")
        ),
    }
}

/// Whether this is the path of a journal of a database that an engine commits here by itself.
fn is_of_engine(journal: &Path) -> bool {
    registry::mode_of_journal(journal)
        .is_some_and(|(mode, is_written)| !mode.is_sqlites() && is_written)
}

/// Whether it is such a path; or that of a database in WAL mode, which has no journal: SQLite lists
/// it, and its commit depends on no super-journal. One that is open through another VFS says so
/// itself.
fn is_harmless(journal: &Path) -> bool {
    let in_wal_mode = || match registry::mode_of_journal(journal) {
        Some((mode, _)) => mode.is_sqlites() && !mode.is_plain(),
        None => database_of(journal).is_some_and(|path| Neighbours::of(&path).says_wal(&path)),
    };
    is_of_engine(journal) || !journal.is_file() && in_wal_mode()
}

fn database_of(journal: &Path) -> Option<PathBuf> {
    let name = journal.as_os_str().as_bytes().strip_suffix(b"-journal")?;
    Some(OsStr::from_bytes(name).into())
}
