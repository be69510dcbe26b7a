//! A stored sample of each released format opens, for ever: a database at rest, and one whose last
//! exchange was lost with the power. The files were made by `make_the_sample` (run with
//! `--ignored` when a format is released, never again for the same one). A copied folder has other
//! inodes than its blocks name (F12, F14).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use common::sim::tiny;
use common::{commit, read};
use dash_shadow::Connection;
use dash_shadow::format::CommitBlock;
use dash_storage::real::Real;

const LAST: [u8; 5] = [9, 2, 7, 4, 8];
const BEFORE: [u8; 4] = [1, 2, 3, 4];

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1").join(name)
}

/// Copies a file to an inode that is not by chance the one it was made in: the two files of a pair
/// count as moved together only if neither is where it was.
fn copy_elsewhere(from: &Path, to: &Path) {
    let bytes = fs::read(from).unwrap();
    let made_in = CommitBlock::decode(&bytes[bytes.len() - 4096..]).unwrap().inode;
    for i in 0.. {
        fs::write(to, &bytes).unwrap();
        if fs::metadata(to).unwrap().ino() != made_in {
            return;
        }
        fs::rename(to, to.with_extension(format!("taken{i}"))).unwrap();
    }
}

fn opened(files: [&str; 2]) -> (Vec<u8>, PathBuf, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    for (file, name) in files.into_iter().zip(["app.db", "app.db-shadow"]) {
        copy_elsewhere(&sample(file), &folder.path().join(name));
    }
    let mut connection = Connection::open(&Real, &path, &tiny()).unwrap();
    let content = read(&mut connection).unwrap();
    commit(&mut connection, &[5, 5]).unwrap();
    connection.close().unwrap();
    (content, path, folder)
}

#[test]
fn version_1_at_rest() {
    let (content, path, _folder) = opened(["newer", "older"]);
    assert_eq!(content, LAST);
    let mut connection = Connection::open(&Real, &path, &tiny()).unwrap();
    assert_eq!(read(&mut connection).unwrap(), [5, 5]);
}

#[test]
fn version_1_with_the_exchange_lost() {
    let (content, _, _folder) = opened(["before", "newer"]);
    assert_eq!(content, LAST);
}

#[test]
fn version_1_block_by_block() {
    let newer = fs::read(sample("newer")).unwrap();
    let before = fs::read(sample("before")).unwrap();
    let block = |file: &[u8]| CommitBlock::decode(&file[file.len() - 4096..]).unwrap();
    assert_eq!(block(&newer).parent, block(&before).id);
    assert_eq!(block(&newer).sequence, block(&before).sequence + 1);
    assert_eq!(block(&newer).size, 5 * 512);
}

#[test]
#[ignore = "writes the stored sample"]
fn make_the_sample() {
    let (folder, path) = common::real();
    let shadow = folder.path().join("app.db-shadow");
    let mut connection = Connection::open(&Real, &path, &tiny()).unwrap();
    commit(&mut connection, &[1]).unwrap();
    commit(&mut connection, &BEFORE).unwrap();
    fs::copy(&path, sample("before")).unwrap();
    commit(&mut connection, &LAST).unwrap();
    connection.close().unwrap();
    fs::copy(&path, sample("newer")).unwrap();
    fs::copy(&shadow, sample("older")).unwrap();
}
