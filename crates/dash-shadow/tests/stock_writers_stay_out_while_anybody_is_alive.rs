//! SHADOW-14: somebody makes a new shadow, commits into it and is killed. Whoever else was open or
//! opened meanwhile keeps stock writers out: by its lock on `app.db`, or by the name fence until it
//! looks again.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::common::sim::{start, tiny};
use super::common::{commit, read};
use dash_shadow::Connection;
use dash_simulated::{Machine, Simulated};
use dash_storage::{Directory, File, FileKind, LockKind, OpenMode, Storage};

const RESERVED: std::ops::Range<u64> = 0x4000_0001..0x4000_0002;

/// Whether stock SQLite could begin to write: it gets RESERVED and sees no hot journal.
fn stock_may_write(machine: &Machine) -> bool {
    let root = machine.process().open_directory(Path::new("/")).unwrap();
    let db = root.open("app.db".as_ref(), OpenMode::ReadWrite).unwrap();
    let fence = root.metadata("app.db-journal".as_ref()).unwrap();
    db.try_lock(RESERVED, LockKind::Exclusive).unwrap()
        && fence.is_none_or(|fence| fence.kind != FileKind::Directory)
}

type Joined = Arc<Mutex<Option<(Simulated, Connection<Simulated>)>>>;

/// A commit that makes a new shadow first; before its operation `at` somebody opens the database.
/// `None` if there are fewer operations.
fn joined_at(at: usize) -> Option<(Machine, Joined)> {
    let machine = Machine::new(1);
    let (_m, mut maker) = start(&machine, &tiny());
    commit(&mut maker, &[1, 1]).unwrap();
    maker.close().unwrap();
    let (killed, mut victim) = start(&machine, &tiny());
    let root = killed.open_directory(Path::new("/")).unwrap();
    root.unlink("app.db-shadow".as_ref()).unwrap();
    let joined = Joined::default();
    let (slot, inside) = (joined.clone(), AtomicBool::new(false));
    let seen = Mutex::new(0);
    machine.watch(move |machine, _| {
        if inside.load(Ordering::SeqCst) {
            return;
        }
        let mut seen = seen.lock().unwrap();
        if *seen == at {
            inside.store(true, Ordering::SeqCst);
            *slot.lock().unwrap() = Some(start(machine, &tiny()));
        }
        *seen += 1;
    });
    commit(&mut victim, &[2, 1]).unwrap();
    machine.watch(|_, _| {});
    machine.kill(&killed);
    drop(victim);
    let reached = joined.lock().unwrap().is_some();
    reached.then_some((machine, joined))
}

#[test]
fn whenever_somebody_opened_it() {
    let mut moments = 0;
    while let Some((machine, joined)) = joined_at(moments) {
        assert!(!stock_may_write(&machine), "opened before operation {moments}");
        let mut joined = joined.lock().unwrap();
        let (_, connection) = joined.as_mut().unwrap();
        assert_eq!(read(connection).unwrap(), [2, 1], "opened before operation {moments}");
        assert!(!stock_may_write(&machine), "opened before operation {moments}, has read");
        moments += 1;
    }
    assert!(moments > 20, "{moments}");
}
