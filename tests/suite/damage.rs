//! Damage done to files by hand, in the places that FORMAT.md names.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use dash_testing::names::beside;

/// Bytes of the commit block, and of the intent block before it.
pub const BLOCK: u64 = 4096;

/// `app.db-shadow`.
pub fn shadow(path: &Path) -> PathBuf {
    beside(path, "-shadow")
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

/// Where the block in page 1 begins, and where it ends: with the file's first sector.
pub const FIRST_PAGE: std::ops::Range<u64> = 432..512;

/// The block in page 1 with the list before it, if there is one.
pub fn first_page_block(path: &Path) -> Option<std::ops::Range<u64>> {
    let mut block = [0; 80];
    file(path).read_exact_at(&mut block, FIRST_PAGE.start).ok()?;
    let units = u64::from(u32::from_le_bytes(block[36..40].try_into().ok()?));
    let list = if block[35] == 0 { 16 * units } else { 0 };
    let there = block.starts_with(b"\xff\xff\xff\xffDSHP");
    there.then(|| FIRST_PAGE.start.saturating_sub(list)..FIRST_PAGE.end)
}

/// Changes the fields of a block, and gives it a checksum that is right. `start`: how far in
/// `block` its fields begin.
pub fn reseal(path: &Path, block: std::ops::Range<u64>, start: usize, change: &dyn Fn(&mut [u8])) {
    let mut bytes = vec![0; usize::try_from(block.end - block.start).expect("small")];
    file(path).read_exact_at(&mut bytes, block.start).expect("inside");
    change(&mut bytes[start..]);
    bytes[start + 12..start + 16].fill(0);
    let checksum = super::casualty::crc(&bytes);
    bytes[start + 12..start + 16].copy_from_slice(&checksum.to_le_bytes());
    put(path, block.start, &bytes);
}

/// All blocks of a file: where each is, and how far in it its fields begin.
pub fn blocks(path: &Path) -> Vec<(std::ops::Range<u64>, usize)> {
    let first = first_page_block(path).map(|block| {
        let start = usize::try_from(FIRST_PAGE.start - block.start).expect("small");
        (block, start)
    });
    let tail = [commit_block(path), intent_block(path)].map(|at| (at..at + BLOCK, 0));
    tail.into_iter().chain(first).collect()
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
