//! Invariant 2, by other means than `/proc/thread-self/fd`, and nothing that is left open without
//! need: who has a file open is found among many descriptors, and without `/proc`.

#![expect(unsafe_code, reason = "looks at descriptors by their number")]

use std::fs;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use dash_testing::machine::root_for;
use dash_testing::mounts::Mount;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};

use super::forks::in_child;
use super::{NEW, fixture, open};
use crate::real::{Real, closing, files, process_ends};
use crate::{Directory as _, File as _, Storage as _};

/// The numbers that this process has the file open by.
fn numbers(path: &Path) -> Vec<RawFd> {
    let wanted = path.metadata().unwrap();
    let is_it = |number: &RawFd| {
        // SAFETY: a number that is open, or fails.
        let found = unsafe {
            let mut found: libc::stat = std::mem::zeroed();
            (libc::fstat(*number, &raw mut found) == 0).then_some(found)
        };
        found.is_some_and(|it| it.st_ino == wanted.ino() && it.st_dev == wanted.dev())
    };
    (0..5000).filter(is_it).collect()
}

/// Opens and closes a file while somebody else has it open, who keeps it, and then alone.
fn is_left_and_then_closed() {
    let (place, directory) = fixture();
    let path = place.path().join("db");
    drop(open(&directory, "db"));
    assert_eq!(numbers(&path), []);
    let stock = fs::File::open(&path).unwrap();
    drop(open(&directory, "db"));
    assert_eq!(numbers(&path).len(), 2, "it is parked");
    assert!(numbers(&path).contains(&stock.as_raw_fd()));
    drop(stock);
    while !numbers(&path).is_empty() {
        drop(open(&directory, "other"));
    }
}

#[test]
fn among_many_descriptors() {
    let many: Vec<_> = (0..300).map(|_| fs::File::open("/dev/null").unwrap()).collect();
    is_left_and_then_closed();
    drop(many);
    is_left_and_then_closed();
}

/// Those that were parked beside others are closed with the last one, by one look.
#[test]
fn many_of_one_file_among_many_descriptors() {
    let _many: Vec<_> = (0..300).map(|_| fs::File::open("/dev/null").unwrap()).collect();
    let (place, directory) = fixture();
    let path = place.path().join("db");
    let files: Vec<_> = (0..100).map(|_| open(&directory, "db")).collect();
    drop(files);
    assert_eq!(numbers(&path), []);
    let stock = fs::File::open(&path).unwrap();
    let files: Vec<_> = (0..100).map(|_| open(&directory, "db")).collect();
    drop(files);
    assert_eq!(numbers(&path).len(), 101, "all are parked");
    drop(stock);
    while !numbers(&path).is_empty() {
        drop(open(&directory, "other"));
    }
}

/// A log that nobody else has any locks of; what has another name may be somebody's database.
#[test]
fn one_that_nobody_locks_is_closed_at_once() {
    let (place, directory) = fixture();
    let path = place.path().join("db");
    let file = open(&directory, "db");
    let _other = fs::File::open(&path).unwrap();
    file.mark_unlocked();
    drop(file);
    assert_eq!(numbers(&path).len(), 1);
    fs::hard_link(&path, place.path().join("name")).unwrap();
    let file = open(&directory, "db");
    file.mark_unlocked();
    drop(file);
    assert_eq!(numbers(&path).len(), 2, "it is parked");
}

/// In a chroot, for example.
#[test]
fn without_proc() {
    if !root_for("a name space of mounts") {
        return;
    }
    let none: Option<&str> = None;
    assert!(in_child(|| {
        unshare(CloneFlags::CLONE_NEWNS).unwrap();
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).unwrap();
        umount2("/proc", MntFlags::MNT_DETACH).unwrap();
        assert!(!Path::new("/proc/self").exists());
        is_left_and_then_closed();
        true
    }));
}

/// A descriptor of something else that happens to have the number of an inode of ours.
#[test]
fn beside_a_file_of_another_device_with_the_same_number() {
    let (Some(one), Some(two)) = (Mount::tmpfs("1m"), Mount::tmpfs("1m")) else { return };
    let [path, other] = [&one, &two].map(|mount| mount.path().join("db"));
    fs::write(&other, b"").unwrap();
    let other = fs::File::open(&other).unwrap();
    let directory = Real.open_directory(one.path()).unwrap();
    drop(directory.open("db".as_ref(), NEW).unwrap());
    assert_eq!(other.metadata().unwrap().ino(), path.metadata().unwrap().ino());
    assert_eq!(numbers(&path), []);
}

/// `exit` in the handler of a signal that came while the thread was closing files.
#[test]
fn at_the_end_of_the_process_nothing_is_waited_for() {
    let (place, _directory) = fixture();
    assert!(in_child(|| {
        let directory = Real.open_directory(place.path()).unwrap();
        let files: Vec<_> = (0..10).map(|_| open(&directory, "db")).collect();
        let _stock = fs::File::open(place.path().join("db")).unwrap();
        let (mut left, ours) = (Some(files), files::ours());
        closing::while_nobody_opens(|_| {
            process_ends();
            drop(left.take());
            drop(open(&directory, "other"));
        });
        drop(ours);
        // It has not waited for each of them, and is used as before by others.
        numbers(&place.path().join("db")).len() == 11 && directory.flush().is_ok()
    }));
}
