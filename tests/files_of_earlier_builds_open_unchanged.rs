//! Databases of the first build that wrote format 2 open as they were left: closed; killed while a
//! commit was written; after its flush, before the exchange; right after the exchange; with a page
//! list that does not fit into its block. `tests/fixtures/format-2` holds the two files of each, as
//! `strace` left them by killing a process at that call. What such a build still has open is
//! refused by name
//! (`crates/dash-shadow/tests/another_layout_of_shared_memory_is_refused_by_name.rs`).

mod suite;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use dash_shadow::format::{BLOCK, CommitBlock, IntentBlock, first_page};
use dash_testing::names::beside;

/// A sample: its folder, whether the name fence stood, how many rows it holds, and their sum.
const SAMPLES: [(&str, bool, i64, i64); 5] = [
    ("at-rest", false, 5, 10),
    ("written-in-part", true, 6, 1010),
    ("flushed", true, 7, 2011),
    ("exchanged", true, 7, 2011),
    ("long-list", false, 480, 240),
];

/// The file as it was, in an inode of its own: its blocks name that one.
fn put(from: &Path, to: &Path) {
    let mut bytes = fs::read(from).expect("a sample");
    fs::write(to, []).expect("writes");
    let inode = to.metadata().expect("is there").ino();
    let at = bytes.len() - 2 * BLOCK;
    let tail = &mut bytes[at..];
    if let Ok(block) = IntentBlock::decode(&tail[..BLOCK]) {
        tail[..BLOCK].copy_from_slice(&*IntentBlock { inode, ..block }.encode());
    }
    if let Ok(block) = CommitBlock::decode(&tail[BLOCK..]) {
        tail[BLOCK..].copy_from_slice(&*CommitBlock { inode, ..block }.encode());
    }
    if let Ok(block) = first_page::extract(&bytes) {
        first_page::blank(&mut bytes);
        first_page::insert(&CommitBlock { inode, ..block }, &mut bytes);
    }
    fs::write(to, &bytes).expect("writes");
}

fn sample(name: &str, fence: bool) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.db");
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/format-2").join(name);
    put(&sample.join("database"), &path);
    put(&sample.join("shadow"), &suite::damage::shadow(&path));
    if fence {
        fs::create_dir(beside(&path, "-journal")).expect("makes");
    }
    (folder, path)
}

fn holds(db: &rusqlite::Connection) -> (i64, i64) {
    suite::check(db);
    (suite::one(db, "SELECT count(*) FROM t"), suite::one(db, "SELECT sum(a) FROM t"))
}

#[test]
fn every_sample_opens_as_it_was_left_and_goes_on() {
    for (name, fence, rows, sum) in SAMPLES {
        let (_folder, path) = sample(name, fence);
        let db = suite::open(&path);
        assert_eq!(holds(&db), (rows, sum), "{name}");
        db.execute_batch("INSERT INTO t(a) VALUES (5)").expect("writes");
        db.close().expect("closes");
        assert_eq!(holds(&suite::stock(&path)), (rows + 1, sum + 5), "{name}");
        assert_eq!(holds(&suite::open(&path)), (rows + 1, sum + 5), "{name}");
    }
}

#[test]
fn every_sample_is_read_as_it_was_left() {
    for (name, fence, rows, sum) in SAMPLES {
        let (_folder, path) = sample(name, fence);
        suite::load();
        let before = fs::read(&path).expect("reads");
        let db = rusqlite::Connection::open(suite::uri(&path, "&mode=ro")).expect("opens");
        assert_eq!(holds(&db), (rows, sum), "{name}");
        drop(db);
        assert_eq!(fs::read(&path).expect("reads"), before, "{name}");
    }
}
