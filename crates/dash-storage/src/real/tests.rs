//! What only the real home can show: a second process, a forked child, SQLite's POSIX locks.

mod closing;
mod forks;
mod posix_locks;
mod system;

use std::ffi::OsStr;

use tempfile::TempDir;

use super::{Directory, File, Real};
use crate::{Directory as _, OpenMode, Storage as _};

const NEW: OpenMode = OpenMode::Create { permissions: 0o644 };

fn fixture() -> (TempDir, Directory) {
    let place = tempfile::tempdir().unwrap();
    let directory = Real.open_directory(place.path()).unwrap();
    (place, directory)
}

fn open(directory: &Directory, name: &str) -> File {
    directory.open(OsStr::new(name), NEW).unwrap()
}
