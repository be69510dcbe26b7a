//! How worker processes are started, and how they explain an error.

use std::path::Path;

use crate::again::Again;
use crate::sqlite;

/// How worker processes are started.
pub struct Workers<'a> {
    /// This program.
    pub again: &'a Again,
    /// The extension.
    pub library: &'a Path,
}

/// An error, and what dash says of it.
pub fn explained(error: &rusqlite::Error) -> String {
    format!("{error}; {}", sqlite::last_error())
}
