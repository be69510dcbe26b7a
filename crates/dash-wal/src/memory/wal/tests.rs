//! A `-wal` in memory, and what its file has of it.

use super::{Bytes, WalFile};
use crate::testing::open;
use dash_simulated::{Effect, Fault, File, Machine, OperationKind};
use dash_storage::File as _;
use std::sync::Arc;

const LIMIT: u64 = 100;
const EIO: i32 = 5;

fn in_memory(machine: &Machine) -> (WalFile<File>, Arc<Bytes>) {
    let bytes = Arc::new(Bytes::new(LIMIT, true));
    (WalFile::new(open(machine, "db-wal"), Some(Arc::clone(&bytes))), bytes)
}

fn in_file(machine: &Machine) -> Vec<u8> {
    machine.file_view("/db-wal").unwrap()
}

fn read(wal: &WalFile<File>, len: usize) -> Vec<u8> {
    let mut buffer = vec![0xEE; len];
    let done = wal.read_some(&mut buffer, 0).unwrap();
    buffer.truncate(done);
    buffer
}

#[test]
fn what_is_behind_the_limit_is_in_the_file_alone() {
    let machine = Machine::new(1);
    let (wal, bytes) = in_memory(&machine);
    let all: Vec<u8> = (0..150).collect();
    for (part, at) in all.chunks(40).zip([0, 40, 80, 120]) {
        wal.write_at(part, at).unwrap();
    }
    assert_eq!(read(&wal, 200), all);
    assert_eq!(wal.len().unwrap(), 150);
    assert_eq!(in_file(&machine)[..100], [0; 100]);
    assert_eq!(in_file(&machine)[100..], all[100..]);
    // Another connection of the process reads the same.
    let other = WalFile::new(open(&machine, "db-wal"), Some(bytes));
    assert_eq!(read(&other, 200), all);
    other.flush().unwrap();
    assert_eq!(in_file(&machine), all);
    assert_eq!((wal.written(), other.written()), (50, 100));
}

/// The file has room for what it lacks: whoever is told of a full disk has nothing in memory yet.
#[test]
fn a_full_disk_is_told_when_a_frame_is_written() {
    let machine = Machine::new(1);
    let (wal, _) = in_memory(&machine);
    machine.set_capacity(Some(0));
    wal.write_at(&[1; 60], 0).unwrap_err();
    assert_eq!(wal.len().unwrap(), 0);
    machine.set_capacity(None);
    wal.write_at(&[1; 60], 0).unwrap();
    machine.set_capacity(Some(4096));
    wal.write_at(&[2; 40], 60).unwrap();
    wal.flush().unwrap();
    assert_eq!(in_file(&machine), [[1; 60].as_slice(), &[2; 40]].concat());
    wal.write_at(&[3; 5000], 100).unwrap_err();
}

/// What a flush could not write is written by the next one.
#[test]
fn a_flush_that_fails_forgets_nothing() {
    let machine = Machine::new(1);
    let (wal, _) = in_memory(&machine);
    wal.write_at(&[1; 60], 0).unwrap();
    machine.fail(Fault::new(Effect::Error(EIO)).on(OperationKind::Write));
    wal.flush().unwrap_err();
    machine.fail(Fault::new(Effect::Error(EIO)).on(OperationKind::Flush));
    wal.flush().unwrap_err();
    wal.flush().unwrap();
    assert_eq!(in_file(&machine), [1; 60]);
}

/// Frames of a generation that has ended need not be written, and its header is there at once.
#[test]
fn another_header_leaves_only_itself_to_be_written() {
    let machine = Machine::new(1);
    let (wal, _) = in_memory(&machine);
    wal.write_at(&[1; 90], 0).unwrap();
    wal.write_durable_at(&[2; 32], 0).unwrap();
    assert_eq!(in_file(&machine), [2; 32]);
    wal.write_at(&[3; 20], 32).unwrap();
    wal.flush().unwrap();
    assert_eq!(in_file(&machine), [[2; 32].as_slice(), &[3; 20]].concat());
    assert_eq!(read(&wal, 90)[52..], [1; 38]);
}

#[test]
fn it_is_cut_and_taken_up_as_a_file_is() {
    let machine = Machine::new(1);
    let (wal, bytes) = in_memory(&machine);
    wal.write_at(&[1; 130], 0).unwrap();
    wal.set_len(50).unwrap();
    assert_eq!((read(&wal, 200).len(), wal.len().unwrap()), (50, 50));
    wal.flush().unwrap();
    assert_eq!(in_file(&machine), [1; 50]);
    bytes.clear();
    assert_eq!(wal.len().unwrap(), 0);
    bytes.load(Some(&open(&machine, "db-wal"))).unwrap();
    assert_eq!(read(&wal, 200), [1; 50]);
    let file = open(&machine, "db-wal");
    file.write_at(&[4; 130], 0).unwrap();
    bytes.load(Some(&file)).unwrap();
    assert_eq!(read(&wal, 200), [4; 130]);
}

/// A generation that was large is no reason to keep its memory for ever.
#[test]
fn another_header_gives_memory_back() {
    let machine = Machine::new(1);
    let bytes = Arc::new(Bytes::new(u64::MAX, true));
    let wal = WalFile::new(open(&machine, "db-wal"), Some(bytes));
    for (len, left) in [(super::KEPT, super::KEPT), (super::KEPT + 1, 32)] {
        wal.write_at(&vec![1; len], 0).unwrap();
        wal.write_durable_at(&[2; 32], 0).unwrap();
        assert_eq!(wal.len().unwrap(), left as u64);
        assert_eq!(read(&wal, 32), [2; 32]);
    }
}
