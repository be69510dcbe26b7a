//! A dash that lays `app.db-dash` out in another way can't share a database with this one while it
//! is open: whoever comes second is told so, by name, and touches nothing. One that was left behind
//! by a crash is made anew, whatever its layout.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::common;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::common::{commit, open, read};
use dash_shadow::{Connection, Error};
use dash_storage::real::Real;

/// The first word of a coordination file, and what it is in layout 1.
const LAYOUT_1: u64 = 0x0001_6873_6164_0001;

fn word(path: &Path) -> u64 {
    let bytes = fs::read(path.with_file_name("app.db-dash")).unwrap();
    u64::from_le_bytes(bytes[..8].try_into().unwrap())
}

fn set_word(path: &Path, word: u64) {
    let file = fs::OpenOptions::new().write(true).open(path.with_file_name("app.db-dash")).unwrap();
    file.write_all_at(&word.to_le_bytes(), 0).unwrap();
}

#[test]
fn a_running_dash_of_another_layout_is_told_of() {
    let (_folder, path) = common::real();
    let mut first = Connection::open(&Real, &path, &common::sim::tiny()).unwrap();
    commit(&mut first, &[4, 2]).unwrap();
    let ours = word(&path);
    assert_ne!(ours, LAYOUT_1, "the layout has changed since");
    for (other, whose) in [(LAYOUT_1, "an older dash"), (ours + 1, "a newer dash")] {
        set_word(&path, other);
        let before = fs::read(path.with_file_name("app.db-dash")).unwrap();
        let refused = Connection::open(&Real, &path, &common::sim::tiny()).err().unwrap();
        assert!(matches!(refused, Error::CantOpen(_)), "{refused:?}");
        let message = refused.to_string();
        assert!(message.contains(whose), "{message}");
        assert!(message.contains("app.db") && message.contains("close"), "{message}");
        assert_eq!(fs::read(path.with_file_name("app.db-dash")).unwrap(), before);
    }
    set_word(&path, ours);
    let mut second = open(&Real, path.to_str().unwrap()).unwrap();
    commit(&mut second, &[4, 3]).unwrap();
    assert_eq!(read(&mut first).unwrap(), [4, 3]);
}

#[test]
fn what_a_crash_left_of_another_layout_is_made_anew() {
    let (_folder, path) = common::real();
    let mut connection = Connection::open(&Real, &path, &common::sim::tiny()).unwrap();
    commit(&mut connection, &[4, 2]).unwrap();
    let ours = word(&path);
    drop(connection); // as a process that dies
    set_word(&path, LAYOUT_1);
    let mut connection = Connection::open(&Real, &path, &common::sim::tiny()).unwrap();
    assert_eq!(word(&path), ours);
    assert_eq!(read(&mut connection).unwrap(), [4, 2]);
    commit(&mut connection, &[4, 3]).unwrap();
    connection.close().unwrap();
}
