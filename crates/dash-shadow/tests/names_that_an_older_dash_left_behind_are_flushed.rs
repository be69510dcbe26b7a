//! SHADOW-20: a clean close says in the shadow that the names are durable, and the first commit of
//! the next session need not flush them. A dash of before that said nothing, and left names that
//! may be behind.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::common::sim::{start, tiny};
use super::common::{commit, read};
use dash_shadow::Connection;
use dash_shadow::format::{BLOCK, BLOCK_LEN, CommitBlock};
use dash_simulated::{Machine, Simulated};

/// Closes the database. `as_before`: the shadow says nothing of the names then.
fn close(machine: &Machine, connection: Connection<Simulated>, as_before: bool) {
    connection.close().unwrap();
    if !as_before {
        return;
    }
    let shadow = machine.open_stock("app.db-shadow").unwrap();
    let bytes = shadow.read_all();
    let mut block = CommitBlock::decode(&bytes[bytes.len() - BLOCK..]).unwrap();
    let vouched = block.vouched.as_mut().unwrap();
    assert!(vouched.names_durable);
    vouched.names_durable = false;
    shadow.write_at(&*block.encode(), bytes.len() as u64 - BLOCK_LEN).unwrap();
    shadow.flush().unwrap();
}

#[test]
pub(crate) fn by_the_first_commit_of_the_next_session() {
    for as_before in [false, true] {
        let machine = Machine::new(1);
        let (_p, mut connection) = start(&machine, &tiny());
        for value in 0..4 {
            commit(&mut connection, &[1, value, 3]).unwrap();
        }
        close(&machine, connection, as_before);
        let before = flushes_of_names(&machine);
        let (_p, mut connection) = start(&machine, &tiny());
        commit(&mut connection, &[1, 9, 3]).unwrap();
        assert_eq!(flushes_of_names(&machine) - before, usize::from(as_before));
        assert_eq!(read(&mut connection).unwrap(), [1, 9, 3]);
    }
}

fn flushes_of_names(machine: &Machine) -> usize {
    let journal = machine.journal().to_string();
    journal.lines().filter(|line| line.contains("flush directory")).count()
}
