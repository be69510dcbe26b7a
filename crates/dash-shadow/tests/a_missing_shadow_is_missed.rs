//! FT7: after a crash the shadow was deleted by hand, and with it commits that had been
//! acknowledged. Where `app.db` or what lies beside it tells that it was not closed cleanly, it is
//! refused until somebody says that it is to be taken as it is (SHADOW-21).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::common;
use super::common::sim::{OldNames, start, tiny};
use super::common::{commit, read};
use dash_shadow::{Connection, Error, forget};
use dash_simulated::{Machine, Nothing};
use dash_storage::{Directory, Storage};
use std::path::Path;

fn remove_shadow(machine: &Machine) {
    let root = machine.process().open_directory(Path::new("/")).unwrap();
    root.unlink("app.db-shadow".as_ref()).unwrap();
}

/// Refused with the remedy; the remedy works, and is never needed again.
fn expect_refused(machine: &Machine, story: &str) {
    let path = Path::new("/app.db");
    let error = Connection::open(&machine.process(), path, &tiny()).err();
    let Some(Error::CantOpen(message)) = error else {
        panic!("{story}: {error:?}");
    };
    assert!(message.contains("is missing") && message.contains("--keep database"), "{message}");
    forget(&machine.process(), path).unwrap();
    let (_p, mut connection) = start(machine, &tiny());
    read(&mut connection).unwrap();
    commit(&mut connection, &[5, 5, 5]).unwrap();
    let machine = machine.power_loss(&mut Nothing);
    let (_p, mut connection) = start(&machine, &tiny());
    assert_eq!(read(&mut connection).unwrap(), [5, 5, 5], "{story}");
}

#[test]
fn beside_a_name_fence() {
    let machine = Machine::new(1);
    let (process, mut connection) = start(&machine, &tiny());
    for value in 0..4 {
        commit(&mut connection, &[1, value, 3]).unwrap();
    }
    machine.kill(&process);
    let lost = machine.power_loss(&mut OldNames);
    for (machine, story) in [(machine, "killed"), (lost, "power lost")] {
        remove_shadow(&machine);
        expect_refused(&machine, story);
    }
}

/// Without a fence a commit that was on its way is one that nobody was told of.
#[test]
fn not_where_nothing_but_an_unacknowledged_commit_can_be_lost() {
    let machine = Machine::new(1);
    let (_p, mut connection) = start(&machine, &tiny());
    for value in 0..4 {
        commit(&mut connection, &[1, value, 3]).unwrap();
    }
    connection.close().unwrap();
    let (process, mut connection) = start(&machine, &tiny());
    common::write(&mut connection, &[1, 9, 3]).unwrap();
    connection.prepare(None).unwrap();
    connection.flush().unwrap();
    machine.kill(&process);
    remove_shadow(&machine);
    let (_p, mut connection) = start(&machine, &tiny());
    assert_eq!(read(&mut connection).unwrap(), [1, 3, 3]);
}

/// One commit in its session, its exchange lost: the older copy says that it is older if its mark
/// had time to reach the disk.
#[test]
fn beside_a_copy_that_says_that_it_is_older() {
    let machine = Machine::new(1);
    let (_p, mut connection) = start(&machine, &tiny());
    for value in 0..4 {
        commit(&mut connection, &[1, value, 3]).unwrap();
    }
    connection.close().unwrap();
    let root = machine.process().open_directory(Path::new("/")).unwrap();
    root.rename("app.db-shadow".as_ref(), "app.db".as_ref()).unwrap();
    expect_refused(&machine, "superseded");
}

/// After a clean close it may be removed.
#[test]
fn not_after_a_clean_close() {
    for commits in 1..5 {
        let machine = Machine::new(1);
        let (_p, mut connection) = start(&machine, &tiny());
        for value in 0..commits {
            commit(&mut connection, &[1, value, 3]).unwrap();
        }
        connection.close().unwrap();
        remove_shadow(&machine);
        let (_p, mut connection) = start(&machine, &tiny());
        assert_eq!(read(&mut connection).unwrap(), [1, commits - 1, 3]);
        commit(&mut connection, &[5, 5, 5]).unwrap();
    }
}
