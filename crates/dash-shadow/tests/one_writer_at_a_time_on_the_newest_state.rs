//! Who may write, and what: SHADOW-1, SHADOW-2, SHADOW-3 and SHADOW-9 at the engine's own surface.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::common;
use super::common::{commit, open, read, read_locked, write};
use dash_shadow::{Error, LockLevel, ReadOnly};
use dash_simulated::Machine;
use dash_storage::real::Real;

/// SHADOW-1: the second writer waits, and a snapshot that is not the newest can't be written on.
#[test]
fn a_second_writer_waits_and_a_stale_snapshot_starts_over() {
    let (_folder, path) = common::real();
    let path = path.to_str().unwrap();
    let mut a = open(&Real, path).unwrap();
    let mut b = open(&Real, path).unwrap();
    commit(&mut a, &[1, 2]).unwrap();
    a.lock(LockLevel::Reserved).unwrap();
    assert!(matches!(b.lock(LockLevel::Reserved), Err(Error::Busy)));
    assert!(b.is_reserved().unwrap());
    a.unlock(LockLevel::None).unwrap();
    assert_eq!(read_locked(&mut b).unwrap(), [1, 2]);
    commit(&mut a, &[3, 4]).unwrap();
    assert!(matches!(b.lock(LockLevel::Reserved), Err(Error::BusySnapshot)));
    assert_eq!(read_locked(&mut b).unwrap(), [1, 2]);
    b.unlock(LockLevel::None).unwrap();
    commit(&mut b, &[5, 6]).unwrap();
    assert_eq!(read(&mut a).unwrap(), [5, 6]);
}

/// SHADOW-2: a file that was put under the name is not touched.
#[test]
fn a_name_that_stands_for_another_file_ends_writing() {
    let (folder, path) = common::real();
    let mut a = open(&Real, path.to_str().unwrap()).unwrap();
    commit(&mut a, &[1]).unwrap();
    commit(&mut a, &[2]).unwrap();
    let other = folder.path().join("other");
    std::fs::write(&other, b"somebody else's").unwrap();
    std::fs::rename(&other, &path).unwrap();
    assert!(a.has_moved().unwrap());
    assert!(matches!(commit(&mut a, &[3]), Err(Error::Moved(_))));
    assert_eq!(std::fs::read(&path).unwrap(), b"somebody else's");
    drop(a.close());
    assert_eq!(std::fs::read(&path).unwrap(), b"somebody else's");
}

/// SHADOW-3: a stock reader of the copy that is to be written makes the writer wait, and with
/// PENDING no other comes (T11).
#[test]
fn a_stock_reader_of_the_shadow_makes_the_writer_wait() {
    let machine = Machine::new(3);
    let process = machine.process();
    let mut writer = open(&process, "/app.db").unwrap();
    commit(&mut writer, &[1]).unwrap();
    commit(&mut writer, &[2]).unwrap();
    let reader = machine.open_stock("/app.db-shadow").unwrap();
    assert!(reader.try_lock_shared());
    assert!(matches!(write(&mut writer, &[3]), Err(Error::Busy)));
    let late = machine.open_stock("/app.db-shadow").unwrap();
    assert!(!late.try_lock_shared());
    reader.unlock();
    writer.unlock(LockLevel::None).unwrap();
    commit(&mut writer, &[3]).unwrap();
    assert!(late.try_lock_shared());
}

/// SHADOW-9: more connections than reader entries: the others lock as stock readers do.
#[test]
fn connections_without_a_reader_entry_read_and_write_all_the_same() {
    let machine = Machine::new(4);
    let process = machine.process();
    let mut writer = open(&process, "/app.db").unwrap();
    commit(&mut writer, &[1]).unwrap();
    let mut others: Vec<_> = (0..510).map(|_| open(&process, "/app.db").unwrap()).collect();
    let last = others.last_mut().unwrap();
    last.lock(LockLevel::Shared).unwrap();
    assert_eq!(read_locked(last).unwrap(), [1]);
    commit(&mut writer, &[2]).unwrap();
    assert_eq!(read_locked(others.last_mut().unwrap()).unwrap(), [1]);
    assert!(matches!(write(&mut writer, &[3]), Err(Error::Busy)), "its lock is on this copy");
    writer.unlock(LockLevel::None).unwrap();
    let last = others.last_mut().unwrap();
    last.unlock(LockLevel::None).unwrap();
    commit(last, &[4]).unwrap();
    assert_eq!(read(&mut writer).unwrap(), [4]);
}

/// T26: SQLite reads the header before its first lock: never one of our marks, never a mix.
#[test]
fn the_header_read_without_a_lock_is_a_committed_one() {
    let (_folder, path) = common::real();
    let path = path.to_str().unwrap().to_owned();
    let mut writer = open(&Real, &path).unwrap();
    commit(&mut writer, &[1, 2, 3]).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut other = open(&Real, &path).unwrap();
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                let mut header = [0; 100];
                assert_eq!(other.read(&mut header, 0).unwrap(), 100);
                assert_eq!(header[18..20], [1, 1]);
                assert_eq!(header[24..28], header[92..96]);
            }
        });
        for value in 0..200 {
            commit(&mut writer, &[value, 2, 3]).unwrap();
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

/// A connection that may only read sees every commit, and makes only the commit after the next
/// wait.
#[test]
fn a_read_only_connection_sees_every_commit() {
    let machine = Machine::new(5);
    let process = machine.process();
    let mut writer = open(&process, "/app.db").unwrap();
    commit(&mut writer, &[1]).unwrap();
    let mut reader =
        ReadOnly::open(&machine.process(), std::path::Path::new("/app.db"), false).unwrap();
    for value in 2..20 {
        commit(&mut writer, &[value, value]).unwrap();
        reader.lock(LockLevel::Shared).unwrap();
        let mut page = [0; common::PAGE];
        assert_eq!(reader.read(&mut page, common::PAGE as u64).unwrap(), common::PAGE);
        assert_eq!(page[0], value);
        reader.unlock(LockLevel::None).unwrap();
    }
    assert!(matches!(reader.lock(LockLevel::Reserved), Err(Error::ReadOnly(_))));
}
