//! The name fence, as an operator finds it.

use std::fs;
use std::path::{Path, PathBuf};

use dash_testing::names::beside;

/// The note in it, where an empty folder has no length.
pub fn note(path: &Path) -> PathBuf {
    beside(path, "-journal").join("open-this-database-through-dash-first.txt")
}

/// Removes it as LIMITS.md says, where dash is not at hand.
pub fn remove(path: &Path) {
    drop(fs::remove_file(note(path)));
    fs::remove_dir(beside(path, "-journal")).expect("nothing else in it");
}
