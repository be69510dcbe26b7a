//! WAL-2: the header of the wal-index may be torn for long, or for ever: its writer was preempted,
//! or killed, between the two copies. A commit is made durable all the same, and nobody hangs.

use std::ffi::OsStr;
use std::path::Path;

use dash_simulated::{Machine, Operation, OperationKind};
use dash_storage::{Directory, File, OpenMode, SharedMemory, Storage};

use crate::common::Tale;

/// The lock bytes of WRITER and of CKPT in the coordination file.
const WRITER: u64 = 1;
const CKPT: u64 = 5;

/// Makes the two copies of the header differ.
fn tear(machine: &Machine) {
    let folder = machine.process().open_directory(Path::new("/")).unwrap();
    let file = folder.open(OsStr::new("app.db-shm"), OpenMode::ReadWrite).unwrap();
    let region = file.shared_region(0, 4096).unwrap();
    region.word(2).fetch_add(1, std::sync::atomic::Ordering::SeqCst);
}

/// Tears it before the next such operation on a lock of the coordination file.
fn tear_at(tale: &Tale, kind: OperationKind, byte: u64) {
    let (inode, mut torn) = (tale.inode("-dash"), false);
    tale.machine.watch(move |machine, operation: &Operation| {
        let meets = operation.kind == kind && operation.inode == inode;
        if meets && !torn && operation.range.as_ref().is_some_and(|range| range.contains(&byte)) {
            torn = true;
            tear(machine);
        }
    });
}

#[test]
pub(crate) fn where_the_index_is_torn_when_it_waits() {
    let (tale, db) = Tale::begun();
    let other = tale.open();
    other.synchronous("NORMAL");
    for _ in 0..3 {
        other.put();
        tear_at(&tale, OperationKind::Unlock, WRITER);
        db.put();
        tale.machine.watch(|_, _| {});
        tale.survives_all();
        assert_eq!(other.content(), tale.tried());
    }
}

#[test]
pub(crate) fn and_so_is_a_checkpoints_barrier() {
    let (tale, db) = Tale::begun();
    for kind in ["PASSIVE", "RESTART"] {
        db.synchronous("NORMAL");
        db.put();
        tear_at(&tale, OperationKind::Lock, CKPT);
        drop(db.run(&format!("PRAGMA wal_checkpoint({kind})")));
        tale.machine.watch(|_, _| {});
        tale.survives_all();
        db.synchronous("FULL");
        db.put();
        tale.survives_all();
    }
}

/// Others may be further: what the index says then is taken along, and not more.
#[test]
pub(crate) fn and_others_may_be_further() {
    let (tale, db) = Tale::begun();
    let other = tale.open();
    other.synchronous("NORMAL");
    let mut others_turn = true;
    let (inode, tried) = (tale.inode("-dash"), tale.tried());
    let further = tale.clone();
    let theirs = std::sync::Mutex::new(Some(other));
    tale.machine.watch(move |_, operation: &Operation| {
        let released = operation.kind == OperationKind::Lock
            && operation.inode == inode
            && operation.range.as_ref().is_some_and(|range| range.contains(&7));
        // Its own commit is visible, and it is about to take the lock LOG.
        if released && others_turn && further.tried() > tried {
            others_turn = false;
            if let Some(other) = theirs.lock().unwrap().take() {
                other.put();
                other.kill();
            }
        }
    });
    db.put();
    tale.machine.watch(|_, _| {});
    assert_eq!(tale.tried(), tried + 2, "the other one has committed meanwhile");
    tale.all_counts();
    tale.survives_all();
}
