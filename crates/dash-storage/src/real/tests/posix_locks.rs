//! Invariant 2: a stock SQLite connection in this process keeps its locks when we close.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use nix::fcntl::{FcntlArg, fcntl};

use super::{NEW, fixture, open};
use crate::{Directory as _, File as _, LockKind, OpenMode};

const SHARED_FIRST: u64 = 0x4000_0002;
const SHARED_BYTES: std::ops::Range<u64> = SHARED_FIRST..SHARED_FIRST + 510;

/// What a stock connection does for a read transaction; its lock goes when the file does.
fn stock_reader(path: &Path) -> fs::File {
    let file = fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    fcntl(&file, FcntlArg::F_SETLK(&request(libc::F_RDLCK))).unwrap();
    file
}

fn request(lock_type: i32) -> libc::flock {
    libc::flock {
        l_type: i16::try_from(lock_type).unwrap(),
        l_whence: 0,
        l_start: i64::try_from(SHARED_FIRST).unwrap(),
        l_len: 510,
        l_pid: 0,
    }
}

/// Whether a POSIX lock of this process is on the file, seen through a descriptor that is leaked
/// (closing it would drop the lock).
fn is_locked(path: &Path) -> bool {
    let file = fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut request = request(libc::F_WRLCK);
    fcntl(&file, FcntlArg::F_OFD_GETLK(&mut request)).unwrap();
    std::mem::forget(file);
    request.l_pid == i32::try_from(std::process::id()).unwrap()
}

#[test]
fn a_posix_lock_of_this_process_survives_the_drop_of_a_file() {
    let (place, directory) = fixture();
    let path = place.path().join("db");
    let file = open(&directory, "db");
    let _stock = stock_reader(&path);
    assert!(is_locked(&path));
    assert!(!file.try_lock(SHARED_BYTES, LockKind::Exclusive).unwrap());
    assert_eq!(
        file.lock_conflict(SHARED_BYTES, LockKind::Exclusive).unwrap(),
        i32::try_from(std::process::id()).ok()
    );
    drop(file);
    assert!(is_locked(&path));
    for mode in [OpenMode::Read, OpenMode::ReadWrite, NEW] {
        drop(directory.open(OsStr::new("db"), mode).unwrap());
        assert!(is_locked(&path));
    }
}

#[test]
fn it_survives_when_another_lock_hides_it() {
    let (place, directory) = fixture();
    let path = place.path().join("db");
    let (file, other) = (open(&directory, "db"), open(&directory, "db"));
    assert!(other.try_lock(SHARED_BYTES, LockKind::Shared).unwrap());
    let _stock = stock_reader(&path);
    drop(file);
    drop(other);
    assert!(is_locked(&path));
}

#[test]
fn a_parked_descriptor_is_used_again_and_closed_in_the_end() {
    let (place, directory) = fixture();
    let path = place.path().join("db");
    let other = open(&directory, "other");
    let descriptors = || {
        let listed = fs::read_dir("/proc/self/fd").unwrap();
        let links = listed.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        links.filter(|link| *link == path).count()
    };
    drop(open(&directory, "db"));
    assert_eq!(descriptors(), 0);
    let stock = stock_reader(&path);
    for _ in 0..10 {
        let (one, two) = (open(&directory, "db"), open(&directory, "db"));
        one.write_at(b"x", 0).unwrap();
        assert_eq!(two.metadata().unwrap().len, 1);
    }
    // One is the stock one; a test in another thread may hold a parked one for a moment.
    assert!(descriptors() < 10);
    drop(stock);
    drop(other);
    while descriptors() > 0 {
        drop(open(&directory, "other"));
    }
}

#[test]
fn a_lock_taken_in_this_process_is_released_by_the_drop_despite_a_mapping() {
    let (_place, directory) = fixture();
    let file = open(&directory, "db");
    let memory = file.shared_memory(8).unwrap();
    assert!(file.try_lock(0..1, LockKind::Exclusive).unwrap());
    let other = open(&directory, "db");
    assert_eq!(other.lock_conflict(0..1, LockKind::Exclusive).unwrap(), Some(0));
    drop(file);
    assert_eq!(other.lock_conflict(0..1, LockKind::Exclusive).unwrap(), None);
    drop(memory);
}
