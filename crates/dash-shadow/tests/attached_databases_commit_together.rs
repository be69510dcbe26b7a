//! A transaction over two databases (ATTACH, F10): cut before every step, recovered in either
//! order, cut again inside the recovery: both commit or neither.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use super::common::{changes, commit, read, write};
use dash_shadow::{Connection, Error, LockLevel, OpenOptions, Tuning};
use dash_simulated::{Machine, Random, Simulated};
use dash_storage::{Directory, File, OpenMode, Storage};

const SUPER: &str = "a.db-mj12345697F";
const OLD: [u8; 3] = [1, 2, 3];
const NEW: [u8; 4] = [9, 2, 8, 7];

fn open(process: &Simulated, path: &str) -> Result<Connection<Simulated>, Error> {
    let options = OpenOptions { tuning: Tuning::tiny(), ..OpenOptions::default() };
    Connection::open(process, Path::new(path), &options)
}

/// What SQLite does at such a commit (vdbeaux.c `vdbeCommit`).
fn commit_both(process: &Simulated, a: &mut Connection<Simulated>, b: &mut Connection<Simulated>) {
    write(a, &NEW).unwrap();
    write(b, &NEW).unwrap();
    let root = process.open_directory(Path::new("/")).unwrap();
    let file = root.open(SUPER.as_ref(), OpenMode::CreateNew { permissions: 0o644 }).unwrap();
    file.write_at(b"/a.db-journal\0/b.db-journal\0", 0).unwrap();
    file.flush().unwrap();
    root.flush().unwrap();
    for connection in [&mut *a, &mut *b] {
        connection.prepare(Some(OsStr::new(SUPER))).unwrap();
        connection.flush().unwrap();
    }
    root.unlink(SUPER.as_ref()).unwrap();
    root.flush().unwrap();
    for connection in [a, b] {
        connection.publish().unwrap();
        connection.unlock(LockLevel::None).unwrap();
    }
}

fn check(machine: &Machine, done: bool, order: [&str; 2], depth: u32, story: &str) {
    if depth < 2 {
        let story = story.to_owned();
        let mut fate = 0;
        machine.watch(move |machine, operation| {
            if !changes(operation.kind) {
                return;
            }
            fate += 1;
            let after = machine.power_loss(&mut Random::new(fate));
            let order = if fate % 2 == 0 { ["/a.db", "/b.db"] } else { ["/b.db", "/a.db"] };
            check(
                &after,
                done,
                order,
                depth + 1,
                &format!("{story} / recovery step {}", machine.steps()),
            );
        });
    }
    let process = machine.process();
    let contents = order.map(|path| {
        let mut connection = open(&process, path)
            .unwrap_or_else(|error| panic!("{story}: {path}: {error}\n{}", machine.journal()));
        read(&mut connection).unwrap()
    });
    machine.watch(|_, _| {});
    let both = |content: &[u8]| contents.iter().all(|seen| seen == content);
    assert!(
        both(&NEW) || (both(&OLD) && !done),
        "{story}: {order:?} {contents:?}\n{}",
        machine.journal()
    );
    // Both go on, and nothing of the old transaction comes back.
    for path in order {
        let mut connection = open(&process, path).unwrap();
        commit(&mut connection, &[5, 5]).unwrap();
    }
    let after = machine.power_loss(&mut Random::new(7));
    let process = after.process();
    for path in order {
        assert_eq!(read(&mut open(&process, path).unwrap()).unwrap(), [5, 5], "{story}");
    }
}

fn prepared(seed: u64) -> (Machine, Simulated, Connection<Simulated>, Connection<Simulated>) {
    let machine = Machine::new(seed);
    let process = machine.process();
    let mut a = open(&process, "/a.db").unwrap();
    let mut b = open(&process, "/b.db").unwrap();
    for connection in [&mut a, &mut b] {
        commit(connection, &[1]).unwrap();
        commit(connection, &[1, 2]).unwrap();
        commit(connection, &OLD).unwrap();
    }
    (machine, process, a, b)
}

#[test]
fn both_or_neither_after_a_power_loss_at_every_step() {
    for seed in 0..4 {
        let (machine, process, mut a, mut b) = prepared(seed);
        let done = Arc::new(Mutex::new(false));
        let told = done.clone();
        machine.watch(move |machine, operation| {
            if !changes(operation.kind) {
                return;
            }
            for fate in 0..4 {
                let after = machine.power_loss(&mut Random::new(machine.steps() * 8 + fate));
                let order = if fate % 2 == 0 { ["/a.db", "/b.db"] } else { ["/b.db", "/a.db"] };
                check(
                    &after,
                    *told.lock().unwrap(),
                    order,
                    1,
                    &format!("seed {seed} step {}", machine.steps()),
                );
            }
        });
        commit_both(&process, &mut a, &mut b);
        *done.lock().unwrap() = true;
        assert_eq!(read(&mut a).unwrap(), NEW);
        assert_eq!(read(&mut b).unwrap(), NEW);
    }
}

#[test]
fn an_undone_transaction_takes_its_super_journal_with_it() {
    let (machine, process, mut a, mut b) = prepared(1);
    write(&mut a, &NEW).unwrap();
    write(&mut b, &NEW).unwrap();
    let root = process.open_directory(Path::new("/")).unwrap();
    let file = root.open(SUPER.as_ref(), OpenMode::CreateNew { permissions: 0o644 }).unwrap();
    file.write_at(b"/a.db-journal\0/b.db-journal\0", 0).unwrap();
    for connection in [&mut a, &mut b] {
        connection.prepare(Some(OsStr::new(SUPER))).unwrap();
        connection.flush().unwrap();
    }
    machine.kill(&process);
    drop((a, b));
    let process = machine.process();
    let there = || machine.file_view(format!("/{SUPER}")).is_some();
    assert_eq!(read(&mut open(&process, "/b.db").unwrap()).unwrap(), OLD);
    assert!(there(), "a.db still depends on it");
    assert_eq!(read(&mut open(&process, "/a.db").unwrap()).unwrap(), OLD);
    assert!(!there());
}
