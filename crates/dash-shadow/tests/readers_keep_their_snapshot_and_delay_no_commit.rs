//! T16 and SHADOW-11: two copies alone would make a commit wait for every reader of the state
//! before the last. With the version store a reader keeps its snapshot however many commits pass.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use super::common;
use std::path::Path;

use super::common::{Content, commit, open, read, read_locked};
use dash_shadow::{Connection, Error, LockLevel, OpenOptions, Tuning};
use dash_simulated::Machine;
use dash_storage::real::Real;

#[test]
fn however_many_commits_pass() {
    let (_folder, path) = common::real();
    let path = path.to_str().unwrap();
    let mut writer = open(&Real, path).unwrap();
    let mut content: Content = (0..40).collect();
    commit(&mut writer, &content).unwrap();
    let mut readers: Vec<(Connection<Real>, Content)> = Vec::new();
    for i in 0..60u8 {
        let mut reader = open(&Real, path).unwrap();
        reader.lock(LockLevel::Shared).unwrap();
        readers.push((reader, content.clone()));
        content[usize::from(i) % 37] = i;
        content[usize::from(i) * 7 % 31] = 255 - i;
        if i % 10 == 9 {
            content.truncate(content.len() - 1);
        }
        commit(&mut writer, &content).unwrap();
        for (reader, snapshot) in &mut readers {
            assert_eq!(read_locked(reader).unwrap(), *snapshot, "after commit {i}");
        }
        if i % 5 == 4 {
            let (mut reader, _) = readers.remove(usize::from(i) % readers.len());
            reader.unlock(LockLevel::None).unwrap();
            assert_eq!(read(&mut reader).unwrap(), content);
        }
    }
}

/// The same with rollbacks that had reached the shadow, a writer that is killed, and another that
/// takes over.
#[test]
fn also_through_rollbacks_and_the_death_of_writers() {
    for seed in 0..200u64 {
        let machine = Machine::new(seed);
        let options = OpenOptions { tuning: Tuning::tiny(), ..OpenOptions::default() };
        let start = || {
            let process = machine.process();
            let connection = Connection::open(&process, Path::new("/app.db"), &options).unwrap();
            (process, connection)
        };
        let (mut process, mut writer) = start();
        let mut content: Content = (0..12).collect();
        commit(&mut writer, &content).unwrap();
        let mut readers = Vec::new();
        for round in 0..12u8 {
            let (_, mut reader) = start();
            reader.lock(LockLevel::Shared).unwrap();
            readers.push((reader, content.clone()));
            let mut next = content.clone();
            next[usize::try_from(seed).unwrap() % 11] = 100 + round;
            next[usize::from(round)] = 200;
            match (seed + u64::from(round) * 5) % 4 {
                0 => {
                    // Rolled back after its flush.
                    common::write(&mut writer, &next).unwrap();
                    writer.prepare(None).unwrap();
                    writer.flush().unwrap();
                    writer.unlock(LockLevel::None).unwrap();
                }
                1 => {
                    // Killed: before the flush it never happened, after it another completes it.
                    common::write(&mut writer, &next).unwrap();
                    writer.prepare(None).unwrap();
                    if round % 2 == 0 {
                        writer.flush().unwrap();
                    }
                    machine.kill(&process);
                    (process, writer) = start();
                    content = settle(&mut writer, &content, &next);
                }
                _ => {
                    commit(&mut writer, &next).unwrap();
                    content = next;
                }
            }
            for (reader, snapshot) in &mut readers {
                assert_eq!(read_locked(reader).unwrap(), *snapshot, "seed {seed} round {round}");
            }
        }
    }
}

/// What the next writer finds after a kill.
fn settle<S: dash_storage::Storage>(
    writer: &mut Connection<S>,
    before: &Content,
    after: &Content,
) -> Content {
    for _ in 0..3 {
        let begun = writer.lock(LockLevel::Shared).and_then(|()| writer.lock(LockLevel::Reserved));
        let seen = begun.is_ok().then(|| read_locked(writer).unwrap());
        writer.unlock(LockLevel::None).unwrap();
        match (begun, seen) {
            (Ok(()), Some(seen)) => {
                assert!(seen == *before || seen == *after);
                return seen;
            }
            (Err(Error::Busy | Error::BusySnapshot), _) => {}
            (Err(error), _) => panic!("{error}"),
            (Ok(()), None) => {}
        }
    }
    panic!("busy for ever");
}
