//! Invariant 2: a stock SQLite connection in this process keeps its locks when we close.

use std::ffi::OsStr;
use std::fs;
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::Ordering;

use dash_testing::skip::{Need, skip};
use nix::fcntl::{FcntlArg, fcntl};
use nix::unistd::{Uid, setfsuid};

use super::{NEW, fixture, open};
use crate::{Directory as _, File as _, LockKind, OpenMode, REGION, SharedMemory as _};

const SHARED_FIRST: u64 = 0x4000_0002;
const SHARED_BYTES: Range<u64> = SHARED_FIRST..SHARED_FIRST + 510;
/// The byte of a `-shm` that every connection shares while it is there.
const PRESENT: Range<u64> = 128..129;

/// What a stock connection does for a read transaction; its lock goes when the file does.
fn stock_reader(path: &Path) -> fs::File {
    stock(path, SHARED_BYTES)
}

/// The same of any bytes.
fn stock(path: &Path, range: Range<u64>) -> fs::File {
    let file = fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    fcntl(&file, FcntlArg::F_SETLK(&request(libc::F_RDLCK, range))).unwrap();
    file
}

fn request(lock_type: i32, range: Range<u64>) -> libc::flock {
    libc::flock {
        l_type: i16::try_from(lock_type).unwrap(),
        l_whence: 0,
        l_start: i64::try_from(range.start).unwrap(),
        l_len: i64::try_from(range.end - range.start).unwrap(),
        l_pid: 0,
    }
}

/// Whether a POSIX lock of this process is on the file, seen through a descriptor that is leaked
/// (closing it would drop the lock).
fn is_locked(path: &Path) -> bool {
    is_locked_at(path, SHARED_BYTES)
}

/// The same of any bytes.
fn is_locked_at(path: &Path, range: Range<u64>) -> bool {
    let file = fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut request = request(libc::F_WRLCK, range);
    fcntl(&file, FcntlArg::F_OFD_GETLK(&mut request)).unwrap();
    std::mem::forget(file);
    request.l_pid == i32::try_from(std::process::id()).unwrap()
}

/// How many descriptors of this process are of a file.
fn descriptors(path: &Path) -> usize {
    let listed = fs::read_dir("/proc/self/fd").unwrap();
    let links = listed.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    links.filter(|link| *link == path).count()
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

/// A stock connection in WAL mode shares its bytes of the `-shm` with those of dash, and whoever
/// asked found only the lock that was there first.
#[test]
fn it_survives_behind_a_byte_that_both_share() {
    for byte in [120, 124, 127, PRESENT.start] {
        let (place, directory) = fixture();
        let path = place.path().join("db-shm");
        let [first, second, third] = [(); 3].map(|()| open(&directory, "db-shm"));
        assert!(first.try_lock(byte..byte + 1, LockKind::Shared).unwrap());
        let _stock = stock(&path, byte..byte + 1);
        assert!(second.try_lock(byte..byte + 1, LockKind::Shared).unwrap());
        let region = third.shared_region(REGION, 4096).unwrap();
        let start = region.start();
        drop(third);
        drop(second);
        drop(first);
        assert_eq!((region.start(), region.word(0).load(Ordering::SeqCst)), (start, 0));
        drop(region);
        assert!(is_locked_at(&path, byte..byte + 1), "byte {byte}");
    }
}

#[test]
fn a_direct_descriptor_is_an_usual_one_when_it_is_used_again() {
    let (place, directory) = fixture();
    let file = open(&directory, "db");
    file.initialize(0..8192).unwrap();
    if file.make_direct().unwrap().is_none() {
        return; // Memory, where all are usual.
    }
    let _stock = stock_reader(&place.path().join("db"));
    drop(file);
    let file = open(&directory, "db");
    file.write_at(b"any", 1001).unwrap();
    let mut read = [0; 5];
    assert_eq!(file.read_at(&mut read, 1000).unwrap(), 5);
    assert_eq!(&read, b"\0any\0");
}

#[test]
fn a_parked_descriptor_is_used_again_and_closed_in_the_end() {
    let (place, directory) = fixture();
    let path = place.path().join("db");
    let other = open(&directory, "other");
    let descriptors = || descriptors(&path);
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

/// While others of the file are in use nobody looks through all descriptors of the process.
#[test]
fn at_most_as_many_are_parked_as_are_in_use_and_none_behind_the_last() {
    let (place, directory) = fixture();
    let path = place.path().join("db");
    let open = || {
        let file = open(&directory, "db");
        // It hides other locks.
        assert!(file.try_lock(SHARED_BYTES, LockKind::Shared).unwrap());
        file
    };
    let mut files: Vec<_> = (0..8).map(|_| open()).collect();
    let found: Vec<_> = (0..8)
        .map(|_| {
            drop(files.pop());
            descriptors(&path)
        })
        .collect();
    assert_eq!(found, [8, 8, 8, 8, 3, 3, 2, 0]);
    let one = open();
    for _ in 0..5 {
        drop(open());
        assert_eq!(descriptors(&path), 2);
    }
    drop(one);
    assert_eq!(descriptors(&path), 0);
}

/// A thread may have another user's rights for a while (`setfsuid`), and files theirs.
#[test]
fn a_parked_descriptor_is_for_those_who_may_open_the_file() {
    let (place, directory) = fixture();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let files = [open(&directory, "db"), open(&directory, "db")];
    for file in &files {
        assert!(file.try_lock(SHARED_BYTES, LockKind::Shared).unwrap());
    }
    let [used, parked] = files;
    drop(parked);
    let root = setfsuid(Uid::from_raw(65_534));
    if !root.is_root() {
        return skip(Need::Root, "another user's rights take root");
    }
    let refused = directory.open(OsStr::new("db"), OpenMode::ReadWrite).map(drop);
    setfsuid(root);
    assert_eq!(refused.unwrap_err().kind(), std::io::ErrorKind::PermissionDenied);
    drop(directory.open(OsStr::new("db"), OpenMode::ReadWrite).unwrap());
    drop(used);
}

#[test]
fn none_is_left_where_the_last_ones_go_at_once() {
    let (place, directory) = fixture();
    let path = place.path().join("db");
    for _ in 0..500 {
        let files: Vec<_> = (0..4).map(|_| open(&directory, "db")).collect();
        for file in &files {
            assert!(file.try_lock(SHARED_BYTES, LockKind::Shared).unwrap());
        }
        std::thread::scope(|scope| {
            files.into_iter().for_each(|file| drop(scope.spawn(|| drop(file))));
        });
        assert_eq!(descriptors(&path), 0);
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

#[test]
fn a_posix_lock_is_named_though_a_description_has_one_in_front_of_it() {
    let (place, directory) = fixture();
    let path = place.path().join("db");
    let (ours, looks) = (open(&directory, "db"), open(&directory, "db"));
    assert!(ours.try_lock(SHARED_BYTES, LockKind::Shared).unwrap());
    assert_eq!(looks.lock_owners(SHARED_BYTES).unwrap(), []);
    let _stock = stock_reader(&path);
    let own = i32::try_from(std::process::id()).unwrap();
    assert_eq!(looks.lock_owners(SHARED_BYTES).unwrap(), [own]);
    assert_eq!(looks.lock_owners(0..1).unwrap(), []);
}
