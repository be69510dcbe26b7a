//! What can go wrong in an engine, in words a user can act on. The `dash` crate maps each kind to
//! an SQLite result code in one place.

use std::io;

/// An engine error.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Somebody else holds a lock; the busy handler may try again.
    #[error("database is locked")]
    Busy,
    /// Somebody has it who is no connection of this engine; says who, as far as that is known.
    #[error("{0}")]
    Held(String),
    /// The read transaction began before the newest commit, so it can't become a write
    /// transaction (`SQLITE_BUSY_SNAPSHOT`); start over.
    #[error("the snapshot is older than the newest commit; begin the transaction again")]
    BusySnapshot,
    /// A storage call failed.
    #[error("{operation} {name}: {source}{}", remedy(source))]
    Io {
        /// What was being done, such as `flush`.
        operation: Operation,
        /// File name or role.
        name: String,
        /// The errno.
        source: io::Error,
    },
    /// Memory ran out.
    #[error("out of memory")]
    OutOfMemory,
    /// A name no longer stands for the file that was opened under it.
    #[error("{0}")]
    Moved(String),
    /// An earlier write or flush failed and could not be undone: nothing is written any more.
    #[error(
        "an I/O error left this connection unusable for writing: {0}; close it and open the database again"
    )]
    Poisoned(String),
    /// The database can't be opened as it stands; says what to do.
    #[error("{0}")]
    CantOpen(String),
    /// Neither copy is whole, or something that must not be guessed.
    #[error("{0}")]
    Corrupt(String),
    /// Not an SQLite database.
    #[error("{0}")]
    NotADatabase(String),
    /// The connection may not write.
    #[error("{0}")]
    ReadOnly(String),
    /// A request that this mode can't serve.
    #[error("{0}")]
    Refused(String),
}

/// The storage call that failed: decides the extended result code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Reading pages or a tail.
    Read,
    /// Writing pages or a tail.
    Write,
    /// Making data durable.
    Flush,
    /// Extending or cutting a file.
    Resize,
    /// Taking or releasing a lock.
    Lock,
    /// Looking at a name or file.
    Stat,
    /// Opening or making a file.
    Open,
    /// Exchanging or renaming.
    Exchange,
    /// Removing a name.
    Delete,
    /// Making directory operations durable.
    FlushDirectory,
    /// Mapping a file.
    Map,
}

impl std::fmt::Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Read => "reading",
            Self::Write => "writing",
            Self::Flush => "flushing",
            Self::Resize => "resizing",
            Self::Lock => "locking",
            Self::Stat => "looking up",
            Self::Open => "opening",
            Self::Exchange => "exchanging the names of",
            Self::Delete => "removing",
            Self::FlushDirectory => "flushing the directory of",
            Self::Map => "mapping",
        })
    }
}

/// `errno` where this process, or the machine, has as many files open as it may (Linux).
const TOO_MANY: [i32; 2] = [24, 23];

/// What to do about the error of a system call, to be said behind it, where that is one of limits.
/// Nothing behind an error that has words of its own.
#[must_use]
pub fn remedy(source: &io::Error) -> &'static str {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    let Some(errno) = source.raw_os_error() else { return "" };
    match source.kind() {
        StorageFull => {
            "; what was committed stays: free space or inodes on that file system (df, df -i), then go on"
        }
        QuotaExceeded => {
            "; what was committed stays: free space on that file system, or have the quota raised, then go on"
        }
        FileTooLarge => {
            "; what was committed stays: start the program with a larger limit on the size of a file (ulimit -f, LimitFSIZE=)"
        }
        _ if errno == TOO_MANY[0] => {
            "; close connections, or start the program with a larger limit on open files (ulimit -n, LimitNOFILE=)"
        }
        _ if errno == TOO_MANY[1] => {
            "; the whole machine has as many files open as it may (sysctl fs.file-max)"
        }
        _ => "",
    }
}

/// What is read in shared memory, or found by what is read there, and can't be.
pub fn scribbled(coordination: &str, what: &str) -> Error {
    Error::Io {
        operation: Operation::Read,
        name: coordination.to_owned(),
        source: io::Error::new(
            io::ErrorKind::InvalidData,
            format!(
                "{what}: another program has written into it; close all connections and open the database again"
            ),
        ),
    }
}

impl Error {
    /// This error, by the name of the file that it happened to.
    #[must_use]
    pub fn about(self, file: &str) -> Self {
        match self {
            Self::Io { operation, source, .. } => {
                Self::Io { operation, name: file.to_owned(), source }
            }
            other => other,
        }
    }
}

/// Shorthand.
pub type Result<T> = std::result::Result<T, Error>;

/// Adds to an `io::Result` what was being done to which file.
pub trait Context<T> {
    /// The error, with what was being done and the name of the file.
    fn during(self, operation: Operation, name: impl std::fmt::Display) -> Result<T>;
}

impl<T> Context<T> for io::Result<T> {
    fn during(self, operation: Operation, name: impl std::fmt::Display) -> Result<T> {
        self.map_err(|source| Error::Io { operation, name: name.to_string(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_named_with_what_to_do() {
        let said = |errno| {
            let source = io::Error::from_raw_os_error(errno);
            Error::Io { operation: Operation::Write, name: "app.db".into(), source }.to_string()
        };
        let words = ["df -i", "quota", "ulimit -f", "ulimit -n", "fs.file-max"];
        for (errno, words) in [28, 122, 27, 24, 23].into_iter().zip(words) {
            assert!(said(errno).contains(words), "{}", said(errno));
        }
        assert_eq!(said(5), "writing app.db: Input/output error (os error 5)");
    }
}
