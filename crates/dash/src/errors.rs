//! From an engine's error to SQLite's result code: the one place where that is decided.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use dash_engine::error::{Error as EngineError, Operation, remedy};
use dash_ffi::{Code, Error};

/// What SQLite is told of an engine's error. A lock that is taken has no message: it is no news.
pub fn to_sqlite(error: EngineError) -> Error {
    match error {
        EngineError::Busy | EngineError::BusySnapshot => code_of(&error).into(),
        error => Error::new(code_of(&error), error.to_string()),
    }
}

/// A system call that should have told whether the file of this name is there could not.
pub fn looking_for(name: impl std::fmt::Display, error: &io::Error) -> Error {
    Error::new(Code::CANTOPEN, format!("looking for {name}: {error}{}", remedy(error)))
}

/// The host gets `SQLITE_NOMEM` for it (main.c `sqlite3ApiExit`). That itself would not do: a pager
/// whose rollback fails with it goes on with a cache that it can't trust (pager.c `pager_error`).
const OUT_OF_MEMORY: Code = Code::IOERR_NOMEM;

/// The result code of an engine's error.
pub fn code_of(error: &EngineError) -> Code {
    match error {
        EngineError::Busy | EngineError::Held(_) => Code::BUSY,
        EngineError::BusySnapshot => Code::BUSY_SNAPSHOT,
        EngineError::Io { operation, source, .. } => code_of_io(*operation, source),
        EngineError::OutOfMemory => OUT_OF_MEMORY,
        EngineError::Moved(_) => Code::READONLY_DBMOVED,
        EngineError::Poisoned(_) => Code::IOERR,
        EngineError::CantOpen(_) => Code::CANTOPEN,
        EngineError::Corrupt(_) => Code::CORRUPT,
        EngineError::NotADatabase(_) => Code::NOTADB,
        EngineError::ReadOnly(_) => Code::READONLY,
        EngineError::Refused(_) => Code::ERROR,
    }
}

/// The same error, if the path leads somewhere; else what the file system says of it, which says
/// more.
pub fn of_path(path: &Path, error: Error) -> Error {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let is_unsaid = error.message.is_none();
    let mut places = [folder, Some(path).filter(|_| is_unsaid)].into_iter().flatten();
    match places.find_map(|place| Some((place, fs::metadata(place).err()?))) {
        Some((place, why)) if error.code.primary() == Code::CANTOPEN => {
            let advice = match why.kind() {
                ErrorKind::NotFound if Some(place) == folder => ": make that folder first",
                _ => "",
            };
            Error::new(error.code, format!("opening {}: {why}{advice}", place.display()))
        }
        _ => error,
    }
}

/// The bits of a file or folder, its user and its group.
pub fn whose(path: &Path) -> String {
    match std::fs::metadata(path) {
        Ok(found) => {
            let (bits, user, group) = (found.mode() & 0o7777, found.uid(), found.gid());
            format!("{bits:04o} of user {user}, group {group}")
        }
        Err(error) => error.to_string(),
    }
}

/// As [`of_path`], of a name that the host's VFS may have found too long: with its folder it has
/// `most` bytes at most.
pub fn of_length(path: &Path, most: usize, error: Error) -> Error {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    match whole.as_os_str().len() {
        bytes if bytes > most && error.code.primary() == Code::CANTOPEN => Error::new(
            error.code,
            format!(
                "the database's path has {bytes} bytes, and SQLite takes {most} at most, links resolved: move it to a folder with a shorter path \
                 ({})",
                whole.display()
            ),
        ),
        _ => of_path(path, error),
    }
}

/// What a connection is told that came over `fork()` and can't go on: its transaction is the
/// parent's, or something else lies there.
///
/// `SQLITE_CANTOPEN`: it is what the pager lets through from any call (its own assertion in
/// `sqlite3PagerRollback` lists the codes), and in this process the database is not open.
/// `SQLITE_CORRUPT` and `SQLITE_NOTADB` have hosts delete the file, `SQLITE_IOERR` has people look
/// for a broken disk, `SQLITE_BUSY` and `SQLITE_PROTOCOL` are tried again for ever, and
/// `SQLITE_MISUSE` is for SQLite itself to say.
pub fn inherited(path: &Path) -> Error {
    let path = path.display();
    let message = format!("{path} was opened before fork(); open it again in this process");
    Error::new(Code::CANTOPEN, message)
}

/// The same of one that had `-wal` in memory.
pub fn inherited_memory(path: &Path) -> Error {
    let path = path.display();
    let message = format!(
        "{path} was opened with dash_wal=memory before fork(), and what is in that memory is the parent's: open it again in this \
         process, once the parent has closed it"
    );
    Error::new(Code::CANTOPEN, message)
}

/// No space and no right to write have codes of their own, whatever was being done.
fn code_of_io(operation: Operation, source: &io::Error) -> Code {
    match (source.kind(), operation) {
        (ErrorKind::StorageFull | ErrorKind::QuotaExceeded, _) => Code::FULL,
        (ErrorKind::OutOfMemory, _) => OUT_OF_MEMORY,
        (_, Operation::Open) => Code::CANTOPEN,
        (ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied, _) => Code::READONLY,
        (_, Operation::Read) => Code::IOERR_READ,
        (_, Operation::Write) => Code::IOERR_WRITE,
        (_, Operation::Flush) => Code::IOERR_FSYNC,
        (_, Operation::Resize) => Code::IOERR_TRUNCATE,
        (_, Operation::Lock) => Code::IOERR_LOCK,
        (_, Operation::Stat) => Code::IOERR_FSTAT,
        (_, Operation::Exchange) => Code::IOERR,
        (_, Operation::Delete) => Code::IOERR_DELETE,
        (_, Operation::FlushDirectory) => Code::IOERR_DIR_FSYNC,
        (_, Operation::Map) => Code::IOERR_MMAP,
    }
}

/// Whether opening for writing failed in a way that opening for reading may get around.
pub fn forbids_writing(error: &EngineError) -> bool {
    match error {
        EngineError::ReadOnly(_) => true,
        EngineError::Io { source, .. } => {
            matches!(source.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
        }
        _ => false,
    }
}

/// Whether opening for writing failed for want of space, of inodes, or of a quota or limit that
/// allows more: reading needs none.
pub fn lacks_space(error: &EngineError) -> bool {
    let EngineError::Io { source, .. } = error else { return false };
    use ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(source.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// The `errno` of an engine's error, for `sqlite3_system_errno`; 0 if it has none.
pub fn errno_of(error: &EngineError) -> i32 {
    match error {
        EngineError::Io { source, .. } => source.raw_os_error().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io(operation: Operation, kind: ErrorKind) -> EngineError {
        EngineError::Io { operation, name: "app.db".into(), source: kind.into() }
    }

    #[test]
    fn every_kind_of_error_has_the_code_that_sqlite_acts_upon() {
        use Operation as Op;
        let text = || "why".to_owned();
        let other = ErrorKind::Other;
        let table = [
            (EngineError::Busy, Code::BUSY),
            (EngineError::Held(text()), Code::BUSY),
            (EngineError::BusySnapshot, Code::BUSY_SNAPSHOT),
            (EngineError::OutOfMemory, Code::IOERR_NOMEM),
            (EngineError::Moved(text()), Code::READONLY_DBMOVED),
            (EngineError::Poisoned(text()), Code::IOERR),
            (EngineError::CantOpen(text()), Code::CANTOPEN),
            (EngineError::Corrupt(text()), Code::CORRUPT),
            (EngineError::NotADatabase(text()), Code::NOTADB),
            (EngineError::ReadOnly(text()), Code::READONLY),
            (EngineError::Refused(text()), Code::ERROR),
            (io(Op::Read, other), Code::IOERR_READ),
            (io(Op::Write, other), Code::IOERR_WRITE),
            (io(Op::Flush, other), Code::IOERR_FSYNC),
            (io(Op::Resize, other), Code::IOERR_TRUNCATE),
            (io(Op::Lock, other), Code::IOERR_LOCK),
            (io(Op::Stat, other), Code::IOERR_FSTAT),
            (io(Op::Open, other), Code::CANTOPEN),
            (io(Op::Exchange, other), Code::IOERR),
            (io(Op::Delete, other), Code::IOERR_DELETE),
            (io(Op::FlushDirectory, other), Code::IOERR_DIR_FSYNC),
            (io(Op::Map, other), Code::IOERR_MMAP),
            (io(Op::Write, ErrorKind::StorageFull), Code::FULL),
            (io(Op::Map, ErrorKind::OutOfMemory), Code::IOERR_NOMEM),
            (io(Op::Flush, ErrorKind::QuotaExceeded), Code::FULL),
            (io(Op::Open, ErrorKind::StorageFull), Code::FULL),
            (io(Op::Open, ErrorKind::PermissionDenied), Code::CANTOPEN),
            (io(Op::Write, ErrorKind::ReadOnlyFilesystem), Code::READONLY),
        ];
        for (error, code) in table {
            assert_eq!(code_of(&error), code, "{error:?}");
        }
    }

    #[test]
    fn a_taken_lock_is_no_message() {
        assert_eq!(to_sqlite(EngineError::Busy).message, None);
        assert_eq!(to_sqlite(EngineError::BusySnapshot).message, None);
        assert_eq!(to_sqlite(EngineError::Refused("why".into())).message.as_deref(), Some("why"));
    }
}
