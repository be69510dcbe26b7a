//! Why the mode of a database is not changed.

use std::path::Path;

use dash_ffi::{Code, Error};

/// What an unexpected end of a change of the mode leaves.
pub(crate) fn gone() -> Error {
    Error::new(
        Code::IOERR,
        "the database could not be opened again after a failed change of journal_mode; close the connection",
    )
}

/// Why the mode stays as it is within a transaction.
pub(crate) const IN_TRANSACTION: &str = "journal_mode can't be changed within a transaction (nor while locking_mode=EXCLUSIVE holds the lock: \
     set it to NORMAL and read once)";

/// Why it stays where others have the database open.
pub(crate) fn in_use(path: &Path) -> Error {
    Error::new(
        Code::BUSY,
        format!("journal_mode can't be changed: another connection has {} open", path.display()),
    )
}
