//! What can be turned off, used up, or made strange; and the clock, and chance.

use std::io::ErrorKind;
use std::time::Duration;

use dash_storage::{Directory as _, File as _, OpenMode, SharedMemory as _, Storage as _};

use super::{open, root, with_file};
use crate::Machine;

#[test]
fn an_exchange_can_be_unsupported() {
    let (machine, directory, _file) = with_file(0);
    open(&directory, "other");
    machine.set_exchange_supported(false);
    let error = directory.exchange("db".as_ref(), "other".as_ref()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[test]
fn links_can_be_unsupported() {
    let (machine, directory, _file) = with_file(0);
    machine.set_links_supported(false);
    let error = directory.link("db".as_ref(), "other".as_ref()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
}

#[test]
fn a_clone_is_unsupported_unless_told_so() {
    let (machine, directory, file) = with_file(8192);
    let other = open(&directory, "other");
    let error = other.clone_range(&file, 0..4096).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    machine.set_clone_supported(true);
    other.clone_range(&file, 4096..8192).unwrap();
    let content = machine.file_view("other").unwrap();
    assert!(content[..4096].iter().all(|&byte| byte == 0) && content[4096..] == [0xdd; 4096]);
    assert!(other.clone_range(&file, 1..4096).is_err());
}

#[test]
fn a_full_device_refuses_what_was_not_allocated() {
    let (machine, _directory, file) = with_file(4096);
    machine.set_capacity(Some(3 * 4096));
    file.allocate(3 * 4096).unwrap();
    let full = |result: std::io::Result<()>| result.unwrap_err().kind() == ErrorKind::StorageFull;
    assert!(full(file.allocate(4 * 4096)));
    assert!(full(file.write_at(b"x", 3 * 4096)));
    file.write_at(&[1; 2 * 4096], 4096).unwrap();
    file.write_at(&[2; 100], 0).unwrap();
    file.set_len(4096).unwrap();
    file.write_at(b"x", 2 * 4096).unwrap();
    machine.set_capacity(None);
    file.allocate(1 << 20).unwrap();
}

#[test]
fn a_read_only_machine_refuses_changes() {
    let (machine, directory, file) = with_file(10);
    machine.set_read_only(true);
    let refuses = |result: std::io::Result<()>| {
        result.is_err_and(|error| error.raw_os_error() == Some(libc::EROFS))
    };
    assert!(refuses(file.write_at(b"x", 0)) && refuses(file.set_len(0)));
    assert!(refuses(directory.unlink("db".as_ref())));
    assert!(refuses(directory.open("db".as_ref(), OpenMode::ReadWrite).map(drop)));
    assert!(directory.open("db".as_ref(), OpenMode::Read).is_ok());
    assert_eq!(file.read_at(&mut [0; 10], 0).unwrap(), 10);
    file.flush().unwrap();
}

#[test]
fn there_is_no_mapping_and_shared_memory_begins_with_the_file() {
    let (_machine, _directory, file) = with_file(16);
    assert_eq!(file.map(16).err().unwrap().kind(), ErrorKind::Unsupported);
    let memory = file.shared_memory(3).unwrap();
    let words: Vec<u64> =
        (0..3).map(|index| memory.word(index).load(std::sync::atomic::Ordering::SeqCst)).collect();
    assert_eq!(words, [0xdddd_dddd_dddd_dddd, 0xdddd_dddd_dddd_dddd, 0]);
    assert_eq!(file.metadata().unwrap().len, 24);
}

#[test]
fn time_passes_with_operations_and_sleep() {
    let machine = Machine::new(1);
    let process = machine.process();
    let start = process.monotonic_nanos();
    root(&process);
    let later = process.monotonic_nanos();
    process.sleep(Duration::from_millis(5));
    assert!(later > start && process.monotonic_nanos() >= later + 5_000_000);
}

#[test]
fn random_numbers_follow_from_the_seed() {
    let draw = |seed| {
        let process = Machine::new(seed).process();
        [process.random(), process.random(), process.random()]
    };
    assert_eq!(draw(5), draw(5));
    assert_ne!(draw(5), draw(6));
}
