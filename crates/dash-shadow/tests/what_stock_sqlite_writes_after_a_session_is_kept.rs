//! FT1: a session of dash, then a commit of stock SQLite without a journal file, so that nothing
//! makes the exchange of names durable, then a power loss. dash took the file that stock SQLite had
//! written for one that was cut off, and showed the state before both commits, or refused the
//! database (SHADOW-18).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::common::sim::{OldNames, Without, start, tiny};
use super::common::stock::{self, Left};
use super::common::{Content, PAGE, commit, read};
use dash_simulated::{Machine, Random, Survivors};

/// A database of three commits that was closed, its names durable, and one more session of
/// `commits`.
fn session(content: &mut Content, commits: u8, close: bool) -> Machine {
    let machine = Machine::new(1);
    let (_p, mut connection) = start(&machine, &tiny());
    for value in 0..3 {
        content[1] = value;
        commit(&mut connection, content).unwrap();
    }
    connection.close().unwrap();
    let (process, mut connection) = start(&machine, &tiny());
    for value in 0..commits {
        content[2] = 10 + value;
        commit(&mut connection, content).unwrap();
    }
    if close {
        connection.close().unwrap();
    } else {
        machine.kill(&process);
    }
    machine
}

/// After the power loss dash finds `content`, also after one more, and can write.
fn expect(machine: &Machine, survivors: &mut dyn Survivors, content: &[u8], story: &str) {
    let mut machine = machine.power_loss(survivors);
    for _ in 0..2 {
        let (_p, mut connection) = start(&machine, &tiny());
        assert_eq!(read(&mut connection).unwrap(), content, "{story}");
        machine = machine.power_loss(&mut OldNames);
    }
    let (_p, mut connection) = start(&machine, &tiny());
    let mut content = content.to_vec();
    content[1] = 99;
    commit(&mut connection, &content).unwrap();
    connection.close().unwrap();
    let (_p, mut connection) = start(&machine, &tiny());
    assert_eq!(read(&mut connection).unwrap(), content, "{story}: written on");
}

#[test]
pub(crate) fn after_a_clean_close_whatever_is_left_of_the_blocks() {
    for commits in 1..4 {
        for left in stock::ALL {
            let mut content = vec![1, 2, 3, 4];
            let machine = session(&mut content, commits, true);
            let content = stock::commit(&machine, &content, left);
            let story = format!("{commits} commits, {left:?}");
            expect(&machine, &mut OldNames, &content, &story);
            for seed in 0..8 {
                expect(&machine, &mut Random::new(seed), &content, &story);
            }
        }
    }
}

/// Nothing but what is in the file tells then. After a VACUUM nothing is.
#[test]
pub(crate) fn after_a_kill_as_far_as_the_block_in_page_1_is_left() {
    for left in [Left::All, Left::Block] {
        let mut content = vec![1, 2, 3, 4];
        let machine = session(&mut content, 1, false);
        let content = stock::commit(&machine, &content, left);
        expect(&machine, &mut OldNames, &content, &format!("{left:?}"));
    }
}

/// The mark of the older copy, too, was on its way to the disk.
#[test]
fn beside_an_older_copy_that_says_that_it_is_one() {
    let mut content = vec![1, 2, 3, 4];
    let machine = session(&mut content, 1, false);
    let (_p, connection) = start(&machine, &tiny());
    drop(connection);
    let content = stock::commit(&machine, &content, Left::All);
    let older = machine.open_stock("app.db-shadow").unwrap();
    older.flush().unwrap();
    expect(&machine, &mut OldNames, &content, "marked");
}

/// A commit of stock SQLite's that was cut off is its own affair; dash's is not lost for it.
#[test]
fn a_page_that_stock_sqlite_did_not_flush_is_no_reason_to_go_back() {
    let mut content = vec![1, 2, 3, 4];
    let machine = session(&mut content, 1, true);
    let written = stock::commit(&machine, &content, Left::All);
    let inode = machine.open_stock("app.db").unwrap().inode();
    let end = 4 * PAGE as u64;
    let machine = machine.power_loss(&mut Without(inode, end..end + 1));
    let (_p, mut connection) = start(&machine, &tiny());
    assert_eq!(read(&mut connection).unwrap(), written);
}
