//! A1, A2, A8, A9, A11: what a killed writer leaves in memory and among the
//! names must not mislead whoever writes next, or closes last.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use std::path::Path;

use super::common::sim::{
    STEPS_OF_AN_EXCHANGE, is_step_of_an_exchange, start, tiny, without_exchange,
};
use super::common::{Content, PAGE, commit, read, read_locked, write};
use dash_shadow::{Connection, Error, LockLevel, OpenOptions};
use dash_simulated::{Machine, OperationKind, Simulated};
use dash_storage::{Directory, Storage};

/// A1: whoever read before the newest commit must not write on top of it, also if it is the one
/// that finds a dead writer's mark.
#[test]
fn a1_a_reader_of_an_old_state_may_not_write_after_a_writer_died() {
    let machine = Machine::new(1);
    let (_p, mut a) = start(&machine, &tiny());
    let (killed, mut victim) = start(&machine, &tiny());
    let (_q, mut b) = start(&machine, &tiny());
    commit(&mut a, &[1, 10, 20]).unwrap();
    b.lock(LockLevel::Shared).unwrap();
    assert_eq!(read_locked(&mut b).unwrap(), [1, 10, 20]);
    commit(&mut a, &[2, 11, 20]).unwrap(); // acknowledged
    write(&mut victim, &[3, 12, 21]).unwrap();
    victim.prepare(None).unwrap();
    machine.kill(&killed);
    let begun = b.lock(LockLevel::Reserved);
    assert!(matches!(begun, Err(Error::BusySnapshot)), "{begun:?}");
    assert_eq!(read_locked(&mut b).unwrap(), [1, 10, 20], "its snapshot moved under it");
}

/// A2: settled, then a writer dies half-way: the next small commit must not take its pages along.
#[test]
fn a2_a_dead_writer_undoes_what_settling_said() {
    let machine = Machine::new(1);
    let options = OpenOptions::default();
    let (_p, mut a) = start(&machine, &options);
    let mut content: Content = (0..64).collect();
    commit(&mut a, &content).unwrap();
    for page in content.iter_mut().take(32) {
        *page += 100;
    }
    commit(&mut a, &content).unwrap();
    assert!(a.settle(1).unwrap());
    // Dies when some of its pages are in the shadow, and not its block.
    let (killed, mut victim) = start(&machine, &options);
    let mut never = content.clone();
    never[5] = 77;
    write(&mut victim, &never).unwrap();
    let victims = killed.clone();
    let mut writes = 0;
    machine.watch(move |machine, operation| {
        if operation.kind == OperationKind::Write
            && operation.range.as_ref().is_some_and(|r| r.start == 5 * PAGE as u64)
        {
            writes += 1;
        }
        // The operation after the one that wrote page 6.
        if writes == 1 && operation.range.as_ref().is_none_or(|r| r.start != 5 * PAGE as u64) {
            writes += 1;
            machine.kill(&victims);
        }
    });
    victim.prepare(None).unwrap_err();
    drop(victim);
    machine.watch(|_, _| {});
    assert_eq!(read(&mut a).unwrap(), content);
    content[40] = 1;
    content[0] += 1;
    commit(&mut a, &content).unwrap();
    assert_eq!(read(&mut a).unwrap(), content);
}

/// What lies beside a database at rest.
fn names(machine: &Machine) -> Vec<&'static str> {
    let root = machine.process().open_directory(Path::new("/")).unwrap();
    ["app.db-journal", "app.db-dash"]
        .into_iter()
        .filter(|name| root.metadata(name.as_ref()).unwrap().is_some())
        .collect()
}

/// A8: two connections are closed at the same time.
#[test]
fn a8_the_last_two_close_at_once() {
    let machine = Machine::new(1);
    let (_p, mut a) = start(&machine, &tiny());
    for i in 0..3 {
        commit(&mut a, &[i, 2, 3]).unwrap();
    }
    let (_q, b) = start(&machine, &tiny());
    let mut other = Some(b);
    machine.watch(move |_, operation| {
        // The first one holds OPEN and is about to see whether it is alone.
        if operation.kind == OperationKind::NameMetadata
            && let Some(b) = other.as_mut()
        {
            // As `close` does, up to the point where its descriptors go.
            let _ = b;
            let b = other.take().unwrap();
            KEEP.with(|keep| *keep.borrow_mut() = Some(b));
        }
    });
    // A real interleaving needs threads: the other one calls `close` while this one holds OPEN.
    thread_local! { static KEEP: std::cell::RefCell<Option<Connection<Simulated>>> = const { std::cell::RefCell::new(None) }; }
    a.close().unwrap();
    machine.watch(|_, _| {});
    if let Some(b) = KEEP.with(|keep| keep.borrow_mut().take()) {
        b.close().unwrap();
    }
    assert_eq!(names(&machine), [] as [&str; 0]);
}

/// A9: a writer dies between making the name fence and saying so.
#[test]
fn a9_a_fence_whose_maker_died_is_removed_by_the_last_one() {
    let machine = Machine::new(1);
    let (killed, mut victim) = start(&machine, &tiny());
    // The names of a new database are durable before its second commit: the third is the first to
    // need a fence.
    commit(&mut victim, &[1, 2, 3]).unwrap();
    commit(&mut victim, &[1, 3, 3]).unwrap();
    let (_q, b) = start(&machine, &tiny());
    let victims = killed.clone();
    let mut made = false;
    machine.watch(move |machine, operation| {
        if made {
            machine.kill(&victims);
        }
        made |= operation.kind == OperationKind::CreateDirectory;
    });
    commit(&mut victim, &[2, 2, 3]).unwrap_err();
    machine.watch(|_, _| {});
    drop(victim);
    b.close().unwrap();
    assert_eq!(names(&machine), [] as [&str; 0], "stock SQLite is kept out of a database at rest");
}

/// A11: without RENAME_EXCHANGE, a writer dies between two of the three renames while another
/// connection is open.
#[test]
pub(crate) fn a11_a_writer_dies_inside_the_three_renames() {
    for (links, renames) in STEPS_OF_AN_EXCHANGE {
        let machine = without_exchange(links);
        let (killed, mut victim) = start(&machine, &tiny());
        commit(&mut victim, &[1, 2, 3]).unwrap();
        let (_q, mut b) = start(&machine, &tiny());
        let victims = killed.clone();
        let mut seen = 0;
        machine.watch(move |machine, operation| {
            if is_step_of_an_exchange(operation) {
                seen += 1;
                if seen == renames {
                    machine.kill(&victims);
                }
            }
        });
        let _ = commit(&mut victim, &[2, 2, 3]);
        machine.watch(|_, _| {});
        drop(victim);
        let mut last = Ok(());
        for _ in 0..3 {
            last = commit(&mut b, &[7, 7, 7]);
            if last.is_ok() {
                break;
            }
        }
        assert!(last.is_ok(), "killed before rename {renames}: {last:?}");
    }
}
