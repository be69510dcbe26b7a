//! Rules 1, 8 and 9: kills, locks, shared memory, stock descriptors.

use std::sync::atomic::Ordering;

use dash_storage::{
    Directory as _, File as _, LockKind, OpenMode, SharedMemory as _, Storage as _,
};

use super::{open, root, sector, with_file};
use crate::{Everything, Machine};

#[test]
fn killed_process_loses_locks_not_cache() {
    let machine = Machine::new(1);
    let (victim, heir) = (machine.process(), machine.process());
    let theirs = open(&root(&victim), "db");
    let ours = open(&root(&heir), "db");
    theirs.write_at(b"cached", 0).unwrap();
    assert!(theirs.try_lock(0..10, LockKind::Exclusive).unwrap());
    assert!(!ours.try_lock(0..10, LockKind::Exclusive).unwrap());
    machine.kill(&victim);
    assert!(ours.try_lock(0..10, LockKind::Exclusive).unwrap());
    assert_eq!(machine.file_view("db").unwrap(), b"cached");
    let error = theirs.write_at(b"ghost", 0).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EIO));
    assert!(victim.open_directory("/".as_ref()).is_err());
    drop(theirs);
    assert_eq!(machine.file_view("db").unwrap(), b"cached");
    assert!(ours.try_lock(0..10, LockKind::Shared).unwrap());
}

#[test]
fn locks_belong_to_descriptions_and_go_with_them() {
    let (_machine, directory, file) = with_file(0);
    let other = open(&directory, "db");
    assert!(file.try_lock(5..6, LockKind::Shared).unwrap());
    assert_eq!(other.lock_conflict(0..9, LockKind::Exclusive).unwrap(), Some(0));
    assert_eq!(file.lock_conflict(0..9, LockKind::Exclusive).unwrap(), None);
    drop(file);
    assert_eq!(other.lock_conflict(0..9, LockKind::Exclusive).unwrap(), None);
}

#[test]
fn shared_memory_survives_a_kill_and_not_a_power_loss() {
    let machine = Machine::new(1);
    let victim = machine.process();
    let theirs = open(&root(&victim), "shm").shared_memory(1000).unwrap();
    theirs.word(999).store(7, Ordering::SeqCst);
    machine.kill(&victim);
    let file = open(&root(&machine.process()), "shm");
    let ours = file.shared_memory(4000).unwrap();
    assert_eq!((ours.word(999).load(Ordering::SeqCst), ours.len()), (7, 4000));
    file.set_len(0).unwrap();
    assert_eq!(ours.word(999).load(Ordering::SeqCst), 0);
    ours.word(1).store(1, Ordering::SeqCst);
    let machine = machine.power_loss(&mut Everything);
    let again = open(&root(&machine.process()), "shm").shared_memory(4).unwrap();
    assert_eq!(again.word(1).load(Ordering::SeqCst), 0);
}

#[test]
fn what_the_dead_store_nobody_sees() {
    let machine = Machine::new(1);
    let (victim, heir) = (machine.process(), machine.process());
    let theirs = open(&root(&victim), "shm").shared_memory(1000).unwrap();
    let ours = open(&root(&heir), "shm").shared_memory(1000).unwrap();
    theirs.word(600).store(7, Ordering::SeqCst);
    machine.kill(&victim);
    theirs.word(600).store(8, Ordering::SeqCst);
    assert_eq!(theirs.word(600).load(Ordering::SeqCst), 8);
    assert_eq!(ours.word(600).load(Ordering::SeqCst), 7);
}

#[test]
fn killed_after_an_operation_it_is_done() {
    let machine = Machine::new(1);
    let victim = machine.process();
    let theirs = open(&root(&victim), "db");
    let other = open(&root(&machine.process()), "other");
    machine.kill_after(&victim);
    other.write_at(b"not the victim's", 0).unwrap();
    theirs.write_at(b"done", 0).unwrap();
    assert!(theirs.write_at(b"ghost", 0).is_err());
    assert_eq!(machine.file_view("db").unwrap(), b"done");
}

#[test]
fn a_stock_descriptor_follows_its_inode_through_exchanges() {
    let (machine, directory, file) = with_file(512);
    let other = open(&directory, "other");
    other.write_at(&sector(b'o'), 0).unwrap();
    let stock = machine.open_stock("/db").unwrap();
    directory.exchange("db".as_ref(), "other".as_ref()).unwrap();
    assert_eq!(machine.file_view("db").unwrap(), sector(b'o'));
    assert_eq!(stock.read_all(), sector(0xdd));
    file.write_at(&sector(b'n'), 0).unwrap();
    assert_eq!(stock.read_all(), sector(b'n'));
    stock.write_at(b"stock", 0).unwrap();
    let mut read = [0; 5];
    file.read_at(&mut read, 0).unwrap();
    assert_eq!(&read, b"stock");
    stock.flush().unwrap();
    assert_eq!(machine.power_loss(&mut Everything).survivor_count(), 1);
}

#[test]
fn stock_locks_are_posix_locks_on_the_same_bytes() {
    let (machine, _directory, file) = with_file(0);
    let (reader, writer) = (machine.open_stock("db").unwrap(), machine.open_stock("db").unwrap());
    assert!(reader.try_lock_shared() && writer.try_lock_shared() && writer.try_lock_reserved());
    assert!(!reader.try_lock_reserved() && reader.is_reserved_elsewhere());
    assert!(!writer.try_lock_exclusive());
    let reserved = 0x4000_0001..0x4000_0002;
    let owner = file.lock_conflict(reserved.clone(), LockKind::Shared).unwrap();
    assert_eq!(owner, Some(writer.process_id()));
    assert_eq!(file.lock_owners(reserved.clone()).unwrap(), [writer.process_id()]);
    drop(writer);
    assert!(file.try_lock(reserved, LockKind::Shared).unwrap());
    assert!(!reader.try_lock_reserved());
    reader.unlock();
    assert!(file.try_lock(0x4000_0000..0x4000_0200, LockKind::Exclusive).unwrap());
    assert!(!reader.try_lock_shared());
}

#[test]
fn a_reader_cannot_write() {
    let (_machine, directory, _file) = with_file(512);
    let file = directory.open("db".as_ref(), OpenMode::Read).unwrap();
    assert!(file.write_at(b"x", 0).is_err() && file.set_len(0).is_err());
    assert!(file.try_lock(0..1, LockKind::Exclusive).is_err());
    assert!(file.try_lock(0..1, LockKind::Shared).unwrap());
}
