//! A4: a commit that shrinks the database and changes more places than fit
//! into its block puts the list where the larger state, or a reader's, still has pages.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use std::path::Path;

use super::common::sim::{Without, start, tiny};
use super::common::{Content, PAGE, commit, read, read_locked, write};
use dash_shadow::{Connection, LockLevel};
use dash_simulated::{Machine, Simulated};
use dash_storage::{Directory, Storage};

/// A commit with a list area that shrinks the database, in a file without room to spare: returns
/// the content before and the one tried.
fn shrinking_with_a_list(a: &mut Connection<Simulated>) -> (Content, Content) {
    // 992 pages of 1 KiB, and 8 KiB: a multiple of the smallest chunk.
    let mut content: Content = (0..992).map(|i| (i % 190) as u8 + 1).collect();
    commit(a, &content).unwrap();
    content[1] = 200;
    commit(a, &content).unwrap();
    content[2] = 200;
    commit(a, &content).unwrap(); // both copies hold 992 pages
    let mut shrunk = content.clone();
    shrunk.truncate(970);
    for i in (0..970).step_by(2) {
        shrunk[i] = 222; // 485 units: a list area of two blocks
    }
    (content, shrunk)
}

/// A4: the list area of a commit that makes the database smaller lies on pages of the state that
/// a rollback goes back to.
#[test]
fn a4_rolling_back_a_shrinking_commit_with_a_list_area() {
    let machine = Machine::new(1);
    let (_p, mut a) = start(&machine, &tiny());
    let (mut content, shrunk) = shrinking_with_a_list(&mut a);
    write(&mut a, &shrunk).unwrap();
    a.truncate(shrunk.len() as u64 * PAGE as u64).unwrap();
    a.prepare(None).unwrap();
    a.unlock(LockLevel::None).unwrap(); // rolled back
    assert!(read(&mut a).unwrap() == content);
    content[3] = 201;
    commit(&mut a, &content).unwrap();
    assert!(read(&mut a).unwrap() == content, "pages hold a page list");
}

/// The same cut by a power loss.
#[test]
fn a4_cutting_a_shrinking_commit_with_a_list_area() {
    let machine = Machine::new(1);
    let (_p, mut a) = start(&machine, &tiny());
    let (mut content, shrunk) = shrinking_with_a_list(&mut a);
    write(&mut a, &shrunk).unwrap();
    a.truncate(shrunk.len() as u64 * PAGE as u64).unwrap();
    a.prepare(None).unwrap();
    let shadow = {
        let root = machine.process().open_directory(Path::new("/")).unwrap();
        root.metadata("app.db-shadow".as_ref()).unwrap().unwrap().id.inode
    };
    // All of it reached the disk but page 1.
    let after = machine.power_loss(&mut Without(shadow, 0..PAGE as u64));
    let (_q, mut b) = start(&after, &tiny());
    assert!(read(&mut b).unwrap() == content);
    content[3] = 201;
    commit(&mut b, &content).unwrap();
    assert!(read(&mut b).unwrap() == content, "pages hold a page list");
}

/// The same, seen by a reader whose snapshot is larger than both copies are now.
#[test]
fn a4_a_reader_of_a_larger_state_sees_a_list_area() {
    let machine = Machine::new(1);
    let (_p, mut a) = start(&machine, &tiny());
    let (_q, mut reader) = start(&machine, &tiny());
    let (content, mut shrunk) = shrinking_with_a_list(&mut a);
    reader.lock(LockLevel::Shared).unwrap();
    let mut smaller = content.clone();
    smaller.truncate(970);
    smaller[0] = 3;
    write(&mut a, &smaller).unwrap();
    a.truncate(970 * PAGE as u64).unwrap();
    a.prepare(None).unwrap();
    a.flush().unwrap();
    a.publish().unwrap();
    a.unlock(LockLevel::None).unwrap();
    shrunk[0] = 4;
    commit(&mut a, &shrunk).unwrap();
    assert!(read_locked(&mut reader).unwrap() == content, "its pages hold a page list");
}
