//! Paths are bytes; URI parameters come in order, repeated ones too, for database, journal and log.

use crate::common::{probe, register};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

#[test]
fn uri_parameters_come_with_non_utf8_paths() {
    register();
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path().canonicalize().unwrap();
    let path = directory.join(OsStr::from_bytes(b"a\xff b.db"));
    let uri = format!(
        "file:{}/a%FF%20b.db?vfs=pass&key=one&key=two&empty=&mode=rwc&odd=%26%3D",
        directory.display()
    );
    let db = rusqlite::Connection::open(uri).unwrap();
    db.execute_batch("CREATE TABLE t(x); PRAGMA journal_mode=WAL; INSERT INTO t VALUES (1)")
        .unwrap();
    assert!(path.exists());

    for kind in ["MainDb", "MainJournal", "Wal"] {
        let prefix = format!("parameter Some({kind}) ");
        let seen: Vec<String> = probe(&path)
            .events()
            .iter()
            .filter_map(|event| event.strip_prefix(&prefix).map(str::to_owned))
            .collect();
        // SQLite keeps `vfs` and `mode` in the list.
        let expected = ["vfs=pass", "key=one", "key=two", "empty=", "mode=rwc", "odd=&="];
        assert_eq!(seen[..expected.len()], expected, "{kind}");
    }
}

#[test]
fn names_without_parameters_have_none() {
    register();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap().join("plain.db");
    let flags = rusqlite::OpenFlags::default();
    let db = rusqlite::Connection::open_with_flags_and_vfs(&path, flags, c"pass").unwrap();
    db.execute_batch("CREATE TABLE t(x)").unwrap();
    let events = probe(&path).events();
    assert!(events.contains(&"xOpen Some(MainDb)".to_owned()));
    assert!(!events.iter().any(|event| event.starts_with("parameter")), "{events:?}");
}
