//! FT5 of the field trial: after a crash both files were copied by hand, and one of the two got the inode number that its
//! block names. They were taken for strangers, and the newest commit went with the shadow.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::sim::{OldNames, start, tiny};
use common::{commit, read};
use dash_storage::simulated::Machine;
use dash_storage::{Directory, File, OpenMode, Storage};
use std::path::Path;

/// Gives a name to a new file with the content of the one that had it.
fn copy(machine: &Machine, name: &str) {
    let bytes = machine.file_view(name).unwrap();
    let root = machine.process().open_directory(Path::new("/")).unwrap();
    let new = root.open("copy".as_ref(), OpenMode::CreateNew { permissions: 0o600 }).unwrap();
    new.write_at(&bytes, 0).unwrap();
    root.rename("copy".as_ref(), name.as_ref()).unwrap();
}

#[test]
pub(crate) fn whichever_of_the_two_has_the_inode_number_of_its_block() {
    for commits in 1..6 {
        for copied in [&["app.db"][..], &["app.db-shadow"], &["app.db", "app.db-shadow"], &[]] {
            let machine = Machine::new(1);
            let (_p, mut connection) = start(&machine, &tiny());
            for value in 0..commits {
                commit(&mut connection, &[1, value, 3]).unwrap();
            }
            connection.close().unwrap();
            let (_p, mut connection) = start(&machine, &tiny());
            commit(&mut connection, &[1, 99, 3]).unwrap();
            // The exchange is lost: the newest commit is in the shadow.
            let machine = machine.power_loss(&mut OldNames);
            for name in copied {
                copy(&machine, name);
            }
            let (_p, mut connection) = start(&machine, &tiny());
            assert_eq!(read(&mut connection).unwrap(), [1, 99, 3], "{commits}, {copied:?}");
            commit(&mut connection, &[1, 98, 4]).unwrap();
            let machine = machine.power_loss(&mut OldNames);
            let (_p, mut connection) = start(&machine, &tiny());
            assert_eq!(read(&mut connection).unwrap(), [1, 98, 4], "{commits}, {copied:?}");
        }
    }
}
