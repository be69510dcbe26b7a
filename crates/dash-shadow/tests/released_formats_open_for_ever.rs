//! A stored sample of each released format opens, for ever: a database at rest, and one whose last
//! exchange was lost with the power; with commit blocks in the tail (page 1 has no room), in page
//! 1, and announced there. The files were made by `make_the_sample` (run with `--ignored` when a
//! format is released, never again for the same one). A copied folder has other inodes than its
//! blocks name (F12, F14). Format 1 was never released, and is refused by name.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::common;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::common::sim::tiny;
use super::common::{commit, read};
use dash_shadow::Connection;
use dash_shadow::format::{BlockError, CommitBlock, IntentBlock, Place, first_page};
use dash_storage::real::Real;

/// The samples of format 2: with blocks in page 1 (the newest announced there), and in the tail.
const IN_PAGE_1: &str = "v2-page-1";
const IN_THE_TAIL: &str = "v2-tail";
/// The sample of format 1, which had them in the tail only.
const VERSION_1: &str = "v1";

/// What page 1 holds after the first commits of a sample, and after the last.
fn first_pages(of: &str) -> [u8; 2] {
    if of == IN_PAGE_1 { [4, 10] } else { [3, 7] }
}

/// The last content of a sample.
fn last(of: &str) -> [u8; 5] {
    [first_pages(of)[1], 2, 7, 4, 8]
}

fn sample(of: &str, name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(of).join(name)
}

/// Copies a file to an inode that is not by chance the one it was made in: the two files of a pair
/// count as moved together only if neither is where it was.
fn copy_elsewhere(from: &Path, to: &Path) {
    let bytes = fs::read(from).unwrap();
    let made_in = IntentBlock::decode(&bytes[bytes.len() - 8192..]).unwrap().inode;
    for i in 0.. {
        fs::write(to, &bytes).unwrap();
        if fs::metadata(to).unwrap().ino() != made_in {
            return;
        }
        fs::rename(to, to.with_extension(format!("taken{i}"))).unwrap();
    }
}

fn opened(of: &str, files: [&str; 2]) -> (Vec<u8>, PathBuf, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    for (file, name) in files.into_iter().zip(["app.db", "app.db-shadow"]) {
        copy_elsewhere(&sample(of, file), &folder.path().join(name));
    }
    let mut connection = Connection::open(&Real, &path, &tiny()).unwrap();
    let content = read(&mut connection).unwrap();
    commit(&mut connection, &[5, 5]).unwrap();
    connection.close().unwrap();
    (content, path, folder)
}

#[test]
fn version_2_at_rest() {
    for of in [IN_THE_TAIL, IN_PAGE_1] {
        let (content, path, _folder) = opened(of, ["newer", "older"]);
        assert_eq!(content, last(of));
        let mut connection = Connection::open(&Real, &path, &tiny()).unwrap();
        assert_eq!(read(&mut connection).unwrap(), [5, 5]);
    }
}

#[test]
fn version_2_with_the_exchange_lost() {
    for of in [IN_THE_TAIL, IN_PAGE_1] {
        let (content, _, _folder) = opened(of, ["before", "newer"]);
        assert_eq!(content, last(of));
    }
}

#[test]
fn version_2_block_by_block() {
    let file = |of, name| fs::read(sample(of, name)).unwrap();
    let tail = |name| {
        let file = file(IN_THE_TAIL, name);
        CommitBlock::decode(&file[file.len() - 4096..]).unwrap()
    };
    let first = |name| first_page::extract(&file(IN_PAGE_1, name)).unwrap();
    assert_eq!(first_page::extract(&file(IN_THE_TAIL, "newer")), Err(BlockError::Absent));
    assert_eq!((first("newer").place, first("before").place), (Place::Announced, Place::FirstPage));
    assert_eq!(first("before").units.len(), 3);
    for [newer, before] in [["newer", "before"].map(tail), ["newer", "before"].map(first)] {
        assert_eq!(newer.parent, before.id);
        assert_eq!(newer.sequence, before.sequence + 1);
        assert_eq!(newer.size, 5 * 1024);
    }
}

#[test]
fn version_1_is_refused_by_name_and_left_as_it_is() {
    for files in [["newer", "older"], ["before", "newer"]] {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["app.db", "app.db-shadow"].map(|name| folder.path().join(name));
        for (file, path) in files.iter().zip(&paths) {
            fs::copy(sample(VERSION_1, file), path).unwrap();
        }
        for only_db in [false, true] {
            if only_db {
                fs::remove_file(&paths[1]).unwrap();
            }
            let error = Connection::open(&Real, &paths[0], &tiny()).err().unwrap().to_string();
            assert!(error.contains("older dash (format 1"), "{error}");
            assert!(error.contains("reads format 2 only"), "{error}");
            assert_eq!(
                fs::read(&paths[0]).unwrap(),
                fs::read(sample(VERSION_1, files[0])).unwrap()
            );
        }
    }
}

#[test]
#[ignore = "writes the stored sample"]
fn make_the_sample() {
    for of in [IN_PAGE_1, IN_THE_TAIL] {
        let (folder, path) = common::real();
        let shadow = folder.path().join("app.db-shadow");
        let mut connection = Connection::open(&Real, &path, &tiny()).unwrap();
        commit(&mut connection, &[first_pages(of)[0]]).unwrap();
        commit(&mut connection, &[first_pages(of)[0], 2, 3, 4]).unwrap();
        fs::copy(&path, sample(of, "before")).unwrap();
        commit(&mut connection, &last(of)).unwrap();
        connection.close().unwrap();
        fs::copy(&path, sample(of, "newer")).unwrap();
        fs::copy(&shadow, sample(of, "older")).unwrap();
    }
}
