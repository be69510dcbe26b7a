//! Beside another engine's file this one neither opens nor recovers anything: what that one's last
//! session says in the coordination file is still there when its engine comes (WAL-22).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::sync::Arc;

use dash_storage::real::Real;
use dash_wal::{Connection, Error, OpenOptions};

#[test]
fn and_what_its_session_said_stays() {
    let folder = tempfile::tempdir().unwrap();
    let (path, coordination) = (folder.path().join("app.db"), folder.path().join("app.db-dash"));
    let sqlite = rusqlite::Connection::open(&path).unwrap();
    sqlite.execute_batch("PRAGMA journal_mode=WAL; CREATE TABLE t(x)").unwrap();
    sqlite.close().unwrap();
    // What counts of it is the head, which begins with the mark of every engine.
    let mut said = [7_u8; 512];
    said[..8].copy_from_slice(&0x0001_6873_6164_0006_u64.to_ne_bytes());
    fs::write(&coordination, said).unwrap();
    fs::write(folder.path().join("app.db-shadow"), b"another copy").unwrap();
    let options =
        OpenOptions { kept_out_by: vec!["app.db-shadow".into()], ..OpenOptions::default() };
    let open = || Connection::open(&Real, &path, &options, &Arc::default());
    assert!(matches!(open(), Err(Error::Busy)));
    assert_eq!(fs::read(&coordination).unwrap()[..said.len()], said);
    fs::remove_file(folder.path().join("app.db-shadow")).unwrap();
    open().unwrap().close().unwrap();
    assert!(!coordination.exists());
}
