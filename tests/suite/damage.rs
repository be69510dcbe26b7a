//! Damage done to files by hand, in the places that FORMAT.md names.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes of the commit block, and of the intent block before it.
pub const BLOCK: u64 = 4096;

/// A file beside a database.
pub fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// `app.db-shadow`.
pub fn shadow(path: &Path) -> PathBuf {
    beside(path, "-shadow")
}

/// Whether anything has that name.
pub fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn file(path: &Path) -> File {
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Length of a file.
pub fn len(path: &Path) -> u64 {
    path.metadata().unwrap_or_else(|error| panic!("{}: {error}", path.display())).len()
}

/// Overwrites bytes.
pub fn put(path: &Path, offset: u64, bytes: &[u8]) {
    file(path).write_all_at(bytes, offset).expect("writes");
}

/// Overwrites with zeros.
pub fn zero(path: &Path, range: std::ops::Range<u64>) {
    let bytes = usize::try_from(range.end - range.start).expect("small");
    put(path, range.start, &vec![0; bytes]);
}

/// Changes one bit.
pub fn flip(path: &Path, offset: u64, bit: u8) {
    let mut byte = [0];
    file(path).read_exact_at(&mut byte, offset).expect("inside");
    put(path, offset, &[byte[0] ^ (1 << bit)]);
}

/// Cuts a file, or makes it longer with zeros.
pub fn resize(path: &Path, len: u64) {
    file(path).set_len(len).expect("resizes");
}

/// Where the commit block begins.
pub fn commit_block(path: &Path) -> u64 {
    len(path) - BLOCK
}

/// Where the intent block begins.
pub fn intent_block(path: &Path) -> u64 {
    len(path) - 2 * BLOCK
}

/// Exchanges the names of two files.
pub fn swap(a: &Path, b: &Path) {
    let between = beside(a, "-between");
    std::fs::rename(a, &between).expect("renames");
    std::fs::rename(b, a).expect("renames");
    std::fs::rename(&between, b).expect("renames");
}

/// Copies the content of a file over another one in place, as `cp` does.
pub fn copy_over(from: &Path, to: &Path) {
    let content = std::fs::read(from).expect("reads");
    std::fs::write(to, content).expect("writes");
}

/// Every name beside the database, sorted.
pub fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
