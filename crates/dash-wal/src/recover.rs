//! What `sqlite-dash recover` does where opening alone won't: a person has decided.

use crate::connection::state::Connection;
use crate::options::OpenOptions;
use crate::process::Process;
pub use crate::recovery::Choice;
use dash_engine::error::Result;
use dash_storage::Storage;
use std::path::Path;
use std::sync::Arc;

/// Recovers the database at `path` as its first opener does, and by `choice` where that refuses
/// because `-wal` was removed; then closes it. What is left is SQLite's own: the database, and a
/// `-wal` that is durable and holds all that counts. No SQLite is needed for that.
///
/// # Errors
///
/// [`Error::Busy`](crate::Error::Busy) while somebody has it open; those of opening.
pub fn recover<S: Storage>(storage: &S, path: &Path, choice: Choice) -> Result<()> {
    let options = OpenOptions { create: false, ..OpenOptions::default() };
    let process = Arc::new(Process::default());
    Connection::open_choosing(storage, path, &options, &process, choice)?.close()
}
