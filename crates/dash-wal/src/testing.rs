//! What the unit tests share: a simulated machine's files, and the role of a stock SQLite.

use dash_simulated::{File, Machine, Simulated};
use dash_storage::{Directory, OpenMode, Storage};
use std::ffi::OsStr;
use std::path::Path;

/// The directory of a simulated machine, as a new process opens it.
pub(crate) fn root(machine: &Machine) -> <Simulated as Storage>::Directory {
    machine.process().open_directory(Path::new("/")).unwrap()
}

/// A file there, with a description of its own.
pub(crate) fn open(machine: &Machine, name: &str) -> File {
    let mode = OpenMode::Create { permissions: 0o644 };
    root(machine).open(OsStr::new(name), mode).unwrap()
}

/// The role of a stock SQLite.
pub(crate) const STOCK: &str = "testing::stock_sqlite";

#[test]
#[ignore = "a role of other tests"]
fn stock_sqlite() {
    dash_testing::stock::play(STOCK);
}
