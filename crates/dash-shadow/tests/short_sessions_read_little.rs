//! A program that opens a database, commits once and closes it paid for the database's size: the
//! first commit compared both copies wherever the intent said, which in databases up to 64 MiB was
//! everywhere (18 ms at 60 MB); and after a large transaction each opening read all that it had
//! written. Now an intent is narrowed when the database is closed, and a long page list is believed
//! if no name fence stands.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use super::common;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use super::common::{PAGE, commit};
use dash_shadow::{Connection, LockLevel, OpenOptions, ReadOnly};
use dash_simulated::{Machine, OperationKind, Simulated};

/// 4 MiB.
const PAGES: usize = 4096;
/// The ends of the intent and what the last commit changed, of both copies.
const LITTLE: u64 = 600 << 10;

fn open(process: &Simulated) -> Connection<Simulated> {
    Connection::open(process, Path::new("/app.db"), &OpenOptions::default()).unwrap()
}

/// Changes page 1 and one other, and reads nothing else.
fn change(connection: &mut Connection<Simulated>, at: usize, value: u8, counter: u32) {
    connection.lock(LockLevel::Shared).unwrap();
    connection.lock(LockLevel::Reserved).unwrap();
    connection.lock(LockLevel::Exclusive).unwrap();
    for (i, value) in [(0, 3), (at, value)] {
        let page = common::page(i + 1, value, PAGES, counter);
        connection.write(&page, (i * PAGE) as u64).unwrap();
    }
    connection.prepare(None).unwrap();
    connection.flush().unwrap();
    connection.publish().unwrap();
    connection.unlock(LockLevel::None).unwrap();
}

#[test]
fn opening_and_the_first_commit_of_a_session_read_little() {
    let machine = Machine::new(1);
    let read = Arc::new(AtomicU64::new(0));
    let sum = read.clone();
    machine.watch(move |_, operation| {
        if let (OperationKind::Read, Some(range)) = (operation.kind, &operation.range) {
            sum.fetch_add(range.end - range.start, SeqCst);
        }
    });
    let process = machine.process();
    let mut content = vec![1; PAGES];
    let mut connection = open(&process);
    commit(&mut connection, &content).unwrap();
    connection.close().unwrap();
    let size = (PAGES * PAGE) as u64;

    // All of it is in the list of the only commit; then in that of the third one.
    for _ in 0..2 {
        read.store(0, SeqCst);
        let connection = open(&process);
        connection.close().unwrap();
        let opened = read.swap(0, SeqCst);
        let mut reader = ReadOnly::open(&process, Path::new("/app.db"), false).unwrap();
        reader.lock(LockLevel::Shared).unwrap();
        reader.close().unwrap();
        let reading = read.load(SeqCst);
        assert!(opened < LITTLE && reading < LITTLE, "read {opened} and {reading} of {size}");
        let mut connection = open(&process);
        content = content.iter().map(|value| value + 1).collect();
        commit(&mut connection, &content[..1]).unwrap();
        commit(&mut connection, &content).unwrap();
        connection.close().unwrap();
    }

    let mut most = 0;
    for session in 0..12u8 {
        read.store(0, SeqCst);
        let mut connection = open(&process);
        let at = 1 + usize::from(session) * 331 % (PAGES - 1);
        content[at] = session + 2;
        change(&mut connection, at, content[at], u32::from(session) + 6);
        connection.close().unwrap();
        println!("session {session}: read {}", read.load(SeqCst));
        if session > 2 {
            most = most.max(read.load(SeqCst));
        }
    }
    assert!(most < LITTLE, "a session read {most} bytes of a database of {size}");
    let mut connection = open(&process);
    assert!(common::read(&mut connection).unwrap() == content);
    connection.close().unwrap();
}

/// The hundredth connection tried the locks of all others for a free entry.
#[test]
fn opening_costs_no_call_for_each_connection_that_there_is() {
    let machine = Machine::new(1);
    let locks = Arc::new(AtomicU64::new(0));
    let sum = locks.clone();
    machine.watch(move |_, operation| {
        sum.fetch_add(u64::from(operation.kind == OperationKind::Lock), SeqCst);
    });
    let process = machine.process();
    let mut connections = Vec::new();
    let mut costs = |count: usize| {
        connections.extend((0..count).map(|_| open(&process)));
        let before = locks.load(SeqCst);
        connections.push(open(&process));
        locks.load(SeqCst) - before
    };
    let few = costs(10);
    let many = costs(100);
    assert!(few > 0 && many <= few, "{few} with ten, {many} with a hundred");
}
