//! FT3: the first commit of a new database was acknowledged, the power went, and `app.db` had no
//! byte: stock SQLite made another database of it, and dash dropped its own commit for that one.
//! And what stock SQLite makes of an older copy that has the name is never kept at the price of a
//! newer commit (SHADOW-19, SHADOW-20).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::common;
use super::common::sim::{OldNames, start, tiny};
use super::common::stock::{self, Left};
use super::common::{Content, commit, page, read};
use dash_shadow::{Connection, Error, LockLevel};
use dash_simulated::{Effect, Fault, Machine, Nothing, OperationKind, Random};
use std::path::Path;

fn content() -> Content {
    vec![1, 2, 3]
}

#[test]
pub(crate) fn the_first_commit_has_the_name_when_it_is_acknowledged() {
    let machine = Machine::new(1);
    let (_p, mut connection) = start(&machine, &tiny());
    commit(&mut connection, &content()).unwrap();
    for machine in [machine.power_loss(&mut OldNames), machine.power_loss(&mut Nothing)] {
        assert!(!machine.file_view("app.db").unwrap().is_empty());
        let (_p, mut connection) = start(&machine, &tiny());
        assert_eq!(read(&mut connection).unwrap(), content());
    }
}

/// The flush of its name fails, once or for ever, and the new name is on the device all the same:
/// of a commit that was undone, beside an empty file, nobody could tell what it was.
#[test]
pub(crate) fn a_first_commit_whose_name_is_not_flushed_leaves_a_database() {
    for fault in [Fault::new(Effect::Error(5)), Fault::new(Effect::Error(5)).forever()] {
        let machine = Machine::new(1);
        let (_p, mut connection) = start(&machine, &tiny());
        common::write(&mut connection, &content()).unwrap();
        connection.prepare(None).unwrap();
        connection.flush().unwrap();
        machine.fail(fault.on(OperationKind::FlushDirectory));
        let stands = connection.publish().is_ok();
        drop(connection.unlock(LockLevel::None));
        machine.stop_failing();
        let expected = if stands { content() } else { Content::new() };
        for fate in 0..20 {
            let machine = machine.power_loss(&mut Random::new(fate));
            let (_p, mut connection) = start(&machine, &tiny());
            assert_eq!(read(&mut connection).unwrap(), expected, "fate {fate}");
        }
    }
}

/// Cut off between the flush and the exchange: the commit is there, though nobody was told.
#[test]
fn a_recovery_gives_the_name_durably() {
    let machine = Machine::new(1);
    let (_p, mut connection) = start(&machine, &tiny());
    common::write(&mut connection, &content()).unwrap();
    connection.prepare(None).unwrap();
    connection.flush().unwrap();
    let machine = machine.power_loss(&mut OldNames);
    assert!(machine.file_view("app.db").unwrap().is_empty());
    let (_p, mut connection) = start(&machine, &tiny());
    assert_eq!(read(&mut connection).unwrap(), content());
    let machine = machine.power_loss(&mut OldNames);
    assert!(!machine.file_view("app.db").unwrap().is_empty());
}

/// Not acknowledged, but whole: what stock SQLite wrote beside it is not preferred in silence.
#[test]
fn a_first_commit_is_not_dropped_for_what_stock_sqlite_made_of_the_empty_file() {
    let machine = Machine::new(1);
    let (_p, mut connection) = start(&machine, &tiny());
    common::write(&mut connection, &content()).unwrap();
    connection.prepare(None).unwrap();
    connection.flush().unwrap();
    let machine = machine.power_loss(&mut OldNames);
    let db = machine.open_stock("app.db").unwrap();
    db.write_at(&page(1, 5, 1, 1), 0).unwrap();
    expect_diverged(&machine);
}

/// One commit in a session that no name fence guards, a power loss, and a VACUUM of the older copy
/// that has the name.
#[test]
pub(crate) fn nor_is_a_later_one_for_an_older_copy_that_shows_nothing_of_dash_any_more() {
    for changes in 1..20 {
        let machine = Machine::new(1);
        let (_p, mut connection) = start(&machine, &tiny());
        for _ in 0..3 {
            commit(&mut connection, &content()).unwrap();
        }
        connection.close().unwrap();
        let (_p, mut connection) = start(&machine, &tiny());
        commit(&mut connection, &[1, 9, 3]).unwrap();
        let machine = machine.power_loss(&mut Nothing);
        let mut vacuumed = content();
        for _ in 0..changes {
            vacuumed = stock::commit(&machine, &vacuumed, Left::Nothing);
        }
        expect_diverged(&machine);
    }
}

/// Page 1 of the older copy carries a block along, as whoever writes it does: one of an earlier
/// pair.
#[test]
pub(crate) fn nor_where_a_block_of_an_earlier_pair_is_left_in_page_1() {
    let machine = Machine::new(1);
    let (_p, mut connection) = start(&machine, &tiny());
    for value in 0..3 {
        commit(&mut connection, &[0, value, 3]).unwrap();
    }
    connection.close().unwrap();
    // It grows over the tail, and dash takes the file for one that it has not seen.
    let grown = stock::commit(&machine, &[0, 2, 3, 4], Left::Block);
    let (_p, mut connection) = start(&machine, &tiny());
    assert_eq!(read(&mut connection).unwrap(), grown);
    commit(&mut connection, &[0, 9, 3, 4]).unwrap();
    let machine = machine.power_loss(&mut Nothing);
    stock::commit(&machine, &[0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15], Left::Block);
    expect_diverged(&machine);
}

/// But a VACUUM of the newest state is on top of it, whatever the power loss left of the older
/// copy's marks.
#[test]
fn what_was_written_on_the_newest_commit_is_no_other_branch() {
    for commits in 1..5 {
        let machine = Machine::new(1);
        let (_p, mut connection) = start(&machine, &tiny());
        for _ in 0..commits {
            commit(&mut connection, &content()).unwrap();
        }
        connection.close().unwrap();
        let vacuumed = stock::commit(&machine, &content(), Left::Nothing);
        let machine = machine.power_loss(&mut Nothing);
        let (_p, mut connection) = start(&machine, &tiny());
        assert_eq!(read(&mut connection).unwrap(), vacuumed, "{commits}");
    }
}

fn expect_diverged(machine: &Machine) {
    match Connection::open(&machine.process(), Path::new("/app.db"), &tiny()) {
        Err(Error::CantOpen(message)) => {
            assert!(message.contains("sqlite-dash recover"), "{message}");
        }
        Err(other) => panic!("refused, but by {other}"),
        Ok(_) => panic!("one of two commits was dropped"),
    }
}
