//! Every storage call of a commit made to fail in turn, once and for ever, with an error, a full
//! disk or a flush that leaves its pages clean but not durable: the commit either happened or was
//! reported as failed, and what was acknowledged before and after survives a power loss.
//!
//! F3 (a failed flush, then roll-forward), F4 (an intent whose flush failed), F6
//! (undoing), F15 (an error in the exchange).

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use std::path::Path;

use super::common::{Content, commit, read};
use dash_shadow::{Connection, Error, OpenOptions, Protocol, Tuning};
use dash_simulated::{Effect, Fault, Machine, Nothing, Random, Simulated};

const DB: &str = "/app.db";
const EIO: i32 = 5;
const ENOSPC: i32 = 28;

fn open(process: &Simulated, protocol: Protocol) -> Result<Connection<Simulated>, Error> {
    let options = OpenOptions { protocol, tuning: Tuning::tiny(), ..OpenOptions::default() };
    Connection::open(process, Path::new(DB), &options)
}

/// One story; whether the fault was met at all.
fn story(
    protocol: Protocol,
    effect: Effect,
    forever: bool,
    number: u64,
    commits_before: u8,
) -> bool {
    let name = format!(
        "{protocol:?} {effect:?} forever {forever} call {number} after {commits_before} commits"
    );
    let machine = Machine::new(number);
    let process = machine.process();
    let mut connection = open(&process, protocol).unwrap();
    let mut content: Content = vec![];
    for i in 0..commits_before {
        content.push(i);
        content.push(100 + i);
        commit(&mut connection, &content).unwrap();
    }
    let before = content.clone();
    let start = machine.steps();
    let fault = Fault::new(effect).after(number);
    machine.fail(if forever { fault.forever() } else { fault });
    content.extend([7, 8, 9, 10, 11, 12, 13, 14]);
    content[0] = 76 + (number % 4) as u8; // page 1 with room for the block, and without
    let result = commit(&mut connection, &content);
    let met = machine.steps() - start > number;
    let mut allowed =
        if result.is_ok() { vec![content.clone()] } else { vec![before.clone(), content.clone()] };
    if let Err(error) = &result {
        assert!(!error.to_string().is_empty());
    }
    // Power may go right now, with the fault still on.
    for seed in 0..4 {
        let after = machine.power_loss(&mut Random::new(seed));
        let process = after.process();
        let mut connection = open(&process, protocol)
            .unwrap_or_else(|error| panic!("{name}: {error}\n{}", machine.journal()));
        let recovered = read(&mut connection).unwrap();
        assert!(allowed.contains(&recovered), "{name}: {recovered:?}\n{}", machine.journal());
    }
    machine.stop_failing();
    // The same connection goes on, or says that it can't; what it acknowledges is durable.
    let mut next = content.clone();
    next[1] = 55;
    let again = commit(&mut connection, &next);
    if again.is_ok() {
        allowed = vec![next.clone()];
        let after = machine.power_loss(&mut Nothing);
        let process = after.process();
        let mut other = open(&process, protocol)
            .unwrap_or_else(|error| panic!("{name}: again: {error}\n{}", machine.journal()));
        assert_eq!(read(&mut other).unwrap(), next, "{name}: again\n{}", machine.journal());
    } else {
        allowed.push(next.clone());
    }
    drop(connection.close());
    reopened(&machine, protocol, &allowed, next, &name, number);
    met
}

/// Another connection finds what is allowed, and commits; a power loss keeps that.
fn reopened(
    machine: &Machine,
    protocol: Protocol,
    allowed: &[Content],
    mut next: Content,
    name: &str,
    seed: u64,
) {
    let process = machine.process();
    let mut other = open(&process, protocol)
        .unwrap_or_else(|error| panic!("{name}: reopen: {error}\n{}", machine.journal()));
    let seen = read(&mut other).unwrap();
    assert!(allowed.contains(&seen), "{name}: reopened {seen:?}\n{}", machine.journal());
    next[1] = 66;
    commit(&mut other, &next).unwrap_or_else(|error| {
        panic!("{name}: commit after reopening: {error}\n{}", machine.journal())
    });
    let after = machine.power_loss(&mut Random::new(seed));
    let process = after.process();
    let mut last = open(&process, protocol).unwrap();
    assert_eq!(read(&mut last).unwrap(), next, "{name}: last\n{}", machine.journal());
}

fn all(effect: Effect) {
    for protocol in [Protocol::Single, Protocol::Paper, Protocol::Exclusive] {
        for commits_before in [0, 1, 2, 3] {
            for forever in [false, true] {
                let mut number = 0;
                while story(protocol, effect, forever, number, commits_before) {
                    number += 1;
                }
                assert!(number > 20);
            }
        }
    }
}

#[test]
fn with_an_input_output_error() {
    all(Effect::Error(EIO));
}

#[test]
fn with_a_full_disk() {
    all(Effect::Error(ENOSPC));
}

#[test]
fn with_a_flush_that_loses_its_pages() {
    all(Effect::LostFlush(EIO));
}

#[test]
fn with_a_short_write() {
    // Media assumption 1: never within a sector.
    all(Effect::ShortWrite(512, ENOSPC));
}
