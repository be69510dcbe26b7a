//! An older backup was copied over a database at rest, and a commit was made on it and
//! acknowledged; then the power went. The backup itself had not reached the disk, where the newer
//! state still was: the commit was "of another time", and was dropped. Stock SQLite flushes the one
//! file that it has; so what was touched since the last clean close is flushed before a commit is
//! made on it, and so are names (SHADOW-23).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::common;
use std::path::Path;

use super::common::sim::{OldNames, at_rest, start, tiny};
use super::common::{commit, read};
use dash_shadow::Connection;
use dash_simulated::{Machine, Nothing};
use dash_storage::{Directory, File, OpenMode, Storage};

/// A clean close, a backup of both files, two more commits, a clean close.
fn backed_up() -> (Machine, [Vec<u8>; 2]) {
    let machine = at_rest();
    let backup = ["app.db", "app.db-shadow"].map(|name| machine.file_view(name).unwrap());
    let (_p, mut connection) = start(&machine, &tiny());
    for value in 10..12 {
        commit(&mut connection, &[1, value, 3]).unwrap();
    }
    connection.close().unwrap();
    machine.write_back();
    (machine, backup)
}

/// Writes over a file, and does not flush it.
fn put_back(machine: &Machine, name: &str, bytes: &[u8]) {
    let root = machine.process().open_directory(Path::new("/")).unwrap();
    let file = root.open(name.as_ref(), OpenMode::ReadWrite).unwrap();
    file.set_len(bytes.len() as u64).unwrap();
    file.write_at(bytes, 0).unwrap();
}

#[test]
pub(crate) fn a_backup_of_both_files_or_of_one() {
    for both in [true, false] {
        let (machine, [db, shadow]) = backed_up();
        put_back(&machine, "app.db", &db);
        if both {
            put_back(&machine, "app.db-shadow", &shadow);
        }
        let (_p, mut connection) = start(&machine, &tiny());
        assert_eq!(read(&mut connection).unwrap(), [1, 2, 3], "both: {both}");
        commit(&mut connection, &[1, 99, 3]).unwrap();
        for machine in [machine.power_loss(&mut Nothing), machine.power_loss(&mut OldNames)] {
            let (_p, mut connection) = start(&machine, &tiny());
            assert_eq!(read(&mut connection).unwrap(), [1, 99, 3], "both: {both}");
        }
    }
}

/// Only the first of two renames was on the disk when a commit was acknowledged.
#[test]
pub(crate) fn names_that_were_changed_by_hand() {
    let (machine, _) = backed_up();
    let root = machine.process().open_directory(Path::new("/")).unwrap();
    root.rename("app.db".as_ref(), "new.db".as_ref()).unwrap();
    root.flush().unwrap();
    root.rename("app.db-shadow".as_ref(), "new.db-shadow".as_ref()).unwrap();
    let open = |machine: &Machine| {
        Connection::open(&machine.process(), Path::new("/new.db"), &tiny()).unwrap()
    };
    commit(&mut open(&machine), &[1, 99, 3]).unwrap();
    for machine in [machine.power_loss(&mut Nothing), machine.power_loss(&mut OldNames)] {
        assert_eq!(read(&mut open(&machine)).unwrap(), [1, 99, 3]);
    }
}

/// The shadow alone was moved, and moved back.
#[test]
pub(crate) fn the_name_of_the_shadow() {
    let (machine, _) = backed_up();
    let root = machine.process().open_directory(Path::new("/")).unwrap();
    root.rename("app.db-shadow".as_ref(), "aside".as_ref()).unwrap();
    root.flush().unwrap();
    root.rename("aside".as_ref(), "app.db-shadow".as_ref()).unwrap();
    let (_p, mut connection) = start(&machine, &tiny());
    commit(&mut connection, &[1, 99, 3]).unwrap();
    let machine = machine.power_loss(&mut OldNames);
    let (_p, mut connection) = start(&machine, &tiny());
    assert_eq!(read(&mut connection).unwrap(), [1, 99, 3]);
}

/// Commits under synchronous=OFF, a kill, and the file is gone that would have told of them.
#[test]
fn commits_that_nobody_flushed() {
    for commits in 1..5 {
        let machine = at_rest();
        let (process, mut connection) = start(&machine, &tiny());
        for value in 0..commits {
            common::write(&mut connection, &[1, 50 + value, 3]).unwrap();
            connection.prepare(None).unwrap();
            connection.publish().unwrap();
            connection.unlock(dash_shadow::LockLevel::None).unwrap();
        }
        machine.kill(&process);
        let root = machine.process().open_directory(Path::new("/")).unwrap();
        root.unlink("app.db-dash".as_ref()).unwrap();
        let (_p, mut connection) = start(&machine, &tiny());
        commit(&mut connection, &[1, 99, 3]).unwrap();
        let machine = machine.power_loss(&mut Nothing);
        let (_p, mut connection) = start(&machine, &tiny());
        assert_eq!(read(&mut connection).unwrap(), [1, 99, 3], "{commits}");
    }
}

/// A session that only reads what was touched has nothing to flush, nor has the next commit after a
/// clean close.
#[test]
fn and_nothing_else_is() {
    let (machine, _) = backed_up();
    let flushes = |connection: &Connection<_>| {
        let seen = connection.statistics();
        (seen.flushes, seen.directory_flushes)
    };
    let (_p, mut connection) = start(&machine, &tiny());
    commit(&mut connection, &[1, 20, 3]).unwrap();
    let (as_closed, names) = flushes(&connection);
    assert_eq!(names, 0, "as it was closed");
    connection.close().unwrap();
    let root = machine.process().open_directory(Path::new("/")).unwrap();
    let db = root.open("app.db".as_ref(), OpenMode::ReadWrite).unwrap();
    let mut byte = [0];
    db.read_at(&mut byte, 700).unwrap();
    db.write_at(&byte, 700).unwrap();
    let (_p, mut connection) = start(&machine, &tiny());
    assert_eq!(read(&mut connection).unwrap(), [1, 20, 3]);
    assert_eq!(flushes(&connection), (0, 0), "who only reads");
    commit(&mut connection, &[1, 21, 3]).unwrap();
    assert_eq!(flushes(&connection), (as_closed + 1, 1), "what was touched, once");
    connection.close().unwrap();
}
