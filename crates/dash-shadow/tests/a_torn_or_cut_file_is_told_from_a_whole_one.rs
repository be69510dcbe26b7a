//! FT9: `cp app.db` of a live database is torn now and then, and opening such a copy did not say a
//! word. SEC12: `app.db` was cut, and the next write removed the whole copy beside it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::common::sim::{start, tiny};
use super::common::stock;
use super::common::{PAGE, commit, page, read};
use dash_shadow::{Connection, Error, ReadOnly};
use dash_simulated::Machine;
use dash_storage::{Directory, File, OpenMode, Storage};
use std::path::Path;

const COPY: &str = "/copy.db";

/// A copy of `app.db` in which page 3 is another commit's.
fn copied(machine: &Machine, torn: bool) {
    let mut bytes = machine.file_view("app.db").unwrap();
    if torn {
        bytes[2 * PAGE..3 * PAGE].copy_from_slice(&page(3, 55, 3, 0));
    }
    let root = machine.process().open_directory(Path::new("/")).unwrap();
    let copy = root.open("copy.db".as_ref(), OpenMode::CreateNew { permissions: 0o600 }).unwrap();
    copy.write_at(&bytes, 0).unwrap();
}

fn refusal(machine: &Machine, path: &str) -> String {
    let process = machine.process();
    let written = Connection::open(&process, Path::new(path), &tiny()).err();
    let read_only = ReadOnly::open(&process, Path::new(path), false).err();
    let [Some(Error::Corrupt(written)), Some(Error::Corrupt(read_only))] = [written, read_only]
    else {
        panic!("{path} was opened");
    };
    assert_eq!(written, read_only);
    written
}

#[test]
fn a_copy_with_pages_of_two_states_is_refused() {
    for commits in 1..5 {
        let machine = Machine::new(1);
        let (_p, mut connection) = start(&machine, &tiny());
        for value in 0..commits {
            commit(&mut connection, &[1, 2, value]).unwrap();
        }
        copied(&machine, true);
        let message = refusal(&machine, COPY);
        assert!(message.contains("two states") && message.contains(".backup"), "{message}");
    }
}

#[test]
fn a_whole_copy_is_taken() {
    for commits in 1..5 {
        let machine = Machine::new(1);
        let (_p, mut connection) = start(&machine, &tiny());
        for value in 0..commits {
            commit(&mut connection, &[1, 2, value]).unwrap();
        }
        copied(&machine, false);
        let process = machine.process();
        let mut copy = Connection::open(&process, Path::new(COPY), &tiny()).unwrap();
        assert_eq!(read(&mut copy).unwrap(), [1, 2, commits - 1]);
        commit(&mut copy, &[7, 7, 7]).unwrap();
    }
}

#[test]
fn a_cut_database_does_not_cost_the_whole_copy() {
    for is_killed in [false, true] {
        for commits in 1..5_u8 {
            for pages in 1..3 {
                let machine = Machine::new(1);
                let (process, mut connection) = start(&machine, &tiny());
                for value in 0..=commits {
                    commit(&mut connection, &[1, 2, value]).unwrap();
                }
                match is_killed {
                    true => machine.kill(&process),
                    false => connection.close().unwrap(),
                }
                let whole = machine.file_view("app.db-shadow").unwrap();
                stock::set_len(&machine, pages * PAGE as u64);
                let message = refusal(&machine, "/app.db");
                let advice = message.contains("sqlite-dash recover");
                assert!(message.contains("shorter") && advice, "{message}");
                assert_eq!(machine.file_view("app.db-shadow").unwrap(), whole);
            }
        }
    }
}
