//! The name fence: a folder where SQLite looks for a hot journal.

use crate::error::{Context, Operation, Result};
use crate::names::Names;
use dash_storage::Directory;
use std::io::ErrorKind;

/// Puts a name fence up that need not survive a power loss. One that stands already does, too, and
/// so does a journal that is not hot.
pub(crate) fn raise_passing_fence(directory: &impl Directory, names: &Names) -> Result<()> {
    match directory.create_directory(&names.fence) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        other => other.during(Operation::Open, names.fence.to_string_lossy()),
    }
}
