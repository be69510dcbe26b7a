//! Which page a frame holds, as SQLite's tables say.

use super::super::Index;
use crate::frames::{FRAME_HEADER, FrameHeader, frame_offset};
use dash_storage::real::Real;
use dash_storage::{Directory, File, OpenMode, Storage};
use std::ffi::OsStr;

#[test]
fn every_frame_has_the_page_that_its_header_says() {
    const PAGE: u32 = 512;
    let folder = tempfile::tempdir().unwrap();
    let sqlite = rusqlite::Connection::open(folder.path().join("db")).unwrap();
    let settings = "PRAGMA page_size=512; PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0;
        PRAGMA synchronous=OFF; CREATE TABLE t(x);";
    sqlite.execute_batch(settings).unwrap();
    // More than two regions of the index are full.
    sqlite.execute_batch("INSERT INTO t VALUES (zeroblob(4700000))").unwrap();
    let directory = Real.open_directory(folder.path()).unwrap();
    let open = |name: &str| directory.open(OsStr::new(name), OpenMode::ReadWrite).unwrap();
    let mut index =
        Index::open(&Real, &directory, OsStr::new("db-shm"), &open("db"), true).unwrap();
    assert_eq!(index.page_of(1), None, "nothing is mapped");
    for region in 0..3 {
        index.map_region(region, false).unwrap().unwrap();
    }
    let (wal, last) = (open("db-wal"), index.header().unwrap().mx_frame);
    assert!(last > 4062 + 4096);
    for number in 1..=last {
        let mut header = [0; FRAME_HEADER];
        wal.read_at(&mut header, frame_offset(number, PAGE)).unwrap();
        assert_eq!(index.page_of(number), Some(FrameHeader::decode(&header).page), "{number}");
    }
    assert_eq!(index.page_of(last + 1), None, "it is empty there");
    assert_eq!(index.page_of(0), None);
}
