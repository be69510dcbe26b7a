//! The check of a file system without a journal may make an empty folder of a file that was lost:
//! its inode number was that of a former name fence. Nobody could open the database beside it. A
//! folder with something in it is somebody else's, and stays.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use super::common::sim::{start, tiny};
use super::common::{commit, read};
use dash_shadow::Connection;
use dash_simulated::Machine;
use dash_storage::{Directory, OpenMode, Storage};

/// A database at rest with a folder under one of dash's own names.
fn in_the_way(name: &str) -> Machine {
    let machine = Machine::new(1);
    let (_p, mut connection) = start(&machine, &tiny());
    commit(&mut connection, &[1, 2, 3]).unwrap();
    connection.close().unwrap();
    let root = machine.process().open_directory(Path::new("/")).unwrap();
    if machine.exists(name) {
        root.unlink(name.as_ref()).unwrap();
    }
    root.create_directory(name.as_ref()).unwrap();
    machine
}

#[test]
fn under_the_names_of_dash() {
    for name in ["app.db-dash", "app.db-shadow"] {
        let machine = in_the_way(name);
        let (_p, mut connection) = start(&machine, &tiny());
        assert_eq!(read(&mut connection).unwrap(), [1, 2, 3]);
        commit(&mut connection, &[4, 5, 6]).unwrap();
        connection.close().unwrap();
    }
}

#[test]
fn unless_something_is_in_it() {
    for name in ["app.db-dash", "app.db-shadow"] {
        let machine = in_the_way(name);
        let inside = machine.process().open_directory(&Path::new("/").join(name)).unwrap();
        inside.open("theirs".as_ref(), OpenMode::CreateNew { permissions: 0o600 }).unwrap();
        let refused = Connection::open(&machine.process(), Path::new("/app.db"), &tiny());
        let message = refused.err().unwrap().to_string();
        assert!(message.contains(name) && message.contains("move it away"), "{message}");
    }
}
