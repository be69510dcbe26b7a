//! What stock SQLite may have left beside a database: a rollback journal, or a WAL. The engine knows
//! neither, so stock SQLite itself, on the host's VFS, rolls back or checkpoints first and leaves a
//! plain file in rollback mode.
//!
//! A *directory* under the journal's name is the engine's name fence, no journal.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use dash_ffi::{Code, Error, HostVfs, OpenFlags, Result};
use dash_storage::real::{self, Real};
use dash_storage::{Directory, File, FileKind, OpenMode, Storage};

/// Bytes 18 and 19 of the header: 2 in a file in WAL mode.
const VERSIONS: u64 = 18;
const WAL_VERSION: u8 = 2;

/// Taken together: rolls a hot journal back, checkpoints and leaves WAL mode, and removes a journal
/// that a stock `journal_mode=PERSIST` or `TRUNCATE` kept.
const CLEAR: &str = "PRAGMA busy_timeout=2000; PRAGMA locking_mode=NORMAL; \
     SELECT count(*) FROM sqlite_master; PRAGMA journal_mode=DELETE; \
     PRAGMA journal_mode=PERSIST; PRAGMA journal_mode=DELETE";

/// What lies beside a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leftover {
    /// A rollback journal, hot or not.
    Journal,
    /// A WAL, or a header that says WAL mode.
    Wal,
}

/// Looks for leftovers.
///
/// # Errors
///
/// `SQLITE_CANTOPEN` if they can't be looked for.
pub fn find(path: &Path) -> Result<Option<Leftover>> {
    look(path).map_err(|error| {
        Error::new(
            Code::CANTOPEN,
            format!("looking at {}: {error}", path.display()),
        )
    })
}

fn look(path: &Path) -> io::Result<Option<Leftover>> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(None);
    };
    let folder = match Real.open_directory(folder) {
        // Opening the database will say so.
        Err(_) => return Ok(None),
        Ok(folder) => folder,
    };
    let regular = |suffix: &str| -> io::Result<bool> {
        let found = folder.metadata(&with_suffix(name, suffix))?;
        Ok(found.is_some_and(|found| found.kind == FileKind::Regular))
    };
    if regular("-wal")? || in_wal_mode(&folder, name) {
        return Ok(Some(Leftover::Wal));
    }
    Ok(regular("-journal")?.then_some(Leftover::Journal))
}

fn with_suffix(name: &OsStr, suffix: &str) -> OsString {
    let mut name = name.to_owned();
    name.push(suffix);
    name
}

/// Whether the header says WAL mode; no, if it can't be read: opening will say why.
fn in_wal_mode(folder: &real::Directory, name: &OsStr) -> bool {
    let Ok(file) = folder.open(name, OpenMode::Read) else {
        return false;
    };
    let mut versions = [0; 2];
    matches!(file.read_at(&mut versions, VERSIONS), Ok(2)) && versions.contains(&WAL_VERSION)
}

/// Lets stock SQLite deal with what [`find`] finds. `flags` are those the database is opened with.
///
/// # Errors
///
/// `SQLITE_BUSY` if another process uses the WAL, or stock SQLite's own error, each with a message.
pub fn clear(host: &HostVfs, path: &Path, flags: OpenFlags) -> Result<()> {
    let Some(leftover) = find(path)? else {
        return Ok(());
    };
    let flags = if flags.contains(OpenFlags::CREATE) {
        OpenFlags::READWRITE | OpenFlags::CREATE
    } else {
        OpenFlags::READWRITE
    };
    let shown = path.display();
    host.run(path, flags, CLEAR)
        .map_err(|error| match (leftover, error.code.primary()) {
            (Leftover::Wal, Code::BUSY | Code::LOCKED) => Error::new(
                Code::BUSY,
                format!("{shown} is in WAL mode and in use by another process; close it there first"),
            ),
            (Leftover::Journal, Code::BUSY | Code::LOCKED) => Error::new(
                Code::BUSY,
                format!("{shown} has a rollback journal of stock SQLite and is in use by another process; close it there first"),
            ),
            _ => Error::new(
                error.code,
                format!("stock SQLite could not recover {shown} from what it had left beside it: {error}"),
            ),
        })?;
    match find(path)? {
        None => Ok(()),
        Some(Leftover::Wal) => Err(Error::new(
            Code::BUSY,
            format!("{shown} is in WAL mode and in use by another process; close it there first"),
        )),
        Some(Leftover::Journal) => Err(Error::new(
            Code::BUSY,
            format!("{shown}-journal, a rollback journal of stock SQLite, could not be removed: close the database in every program, then remove the file"),
        )),
    }
}
