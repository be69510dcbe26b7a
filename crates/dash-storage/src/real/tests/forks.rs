//! Invariants 1 and 3: a forked child keeps nothing of ours.

#![expect(unsafe_code, reason = "fork(2)")]

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};

use super::{fixture, open};
use crate::{
    Directory as _, File as _, LockKind, OpenMode, PersistentMemory as _, REGION,
    SharedMemory as _, Storage as _,
};

/// Runs `check` in a child and returns what it said.
pub(super) fn in_child(check: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child makes system calls through handles that exist, allocates nothing that the
    // parent's other threads could have locked, and leaves by `_exit`.
    match unsafe { fork() }.unwrap() {
        // SAFETY: ends the child, with no handlers run.
        ForkResult::Child => unsafe { libc::_exit(i32::from(!check())) },
        ForkResult::Parent { child } => {
            waitpid(child, None).unwrap() == WaitStatus::Exited(child, 0)
        }
    }
}

#[test]
fn every_handle_fails_with_ebadf_in_a_child() {
    let (_place, directory) = fixture();
    let file = open(&directory, "db");
    let bad = Some(libc::EBADF);
    assert!(in_child(|| {
        file.read_at(&mut [0], 0).is_err_and(|error| error.raw_os_error() == bad)
            && file.write_at(&[0], 0).is_err_and(|error| error.raw_os_error() == bad)
            && file.flush().is_err_and(|error| error.raw_os_error() == bad)
            && file.unlock(0..1).is_err_and(|error| error.raw_os_error() == bad)
            && directory.flush().is_err_and(|error| error.raw_os_error() == bad)
    }));
    assert_eq!(file.metadata().unwrap().len, 0);
    file.write_at(&[0], 0).unwrap();
}

#[test]
fn persistent_memory_of_the_parent_fails_with_ebadf_in_a_child() {
    let Some(place) = dash_testing::mounts::folder_in_memory() else { return };
    let directory = crate::real::Real.open_directory(place.path()).unwrap();
    let file = open(&directory, "log");
    file.initialize(0..4096).unwrap();
    let memory = file.map_persistent(4096).unwrap();
    let bad = |done: std::io::Result<()>| {
        done.is_err_and(|error| error.raw_os_error() == Some(libc::EBADF))
    };
    assert!(in_child(|| {
        bad(memory.store(&[1; 8], 0))
            && bad(memory.load(&mut [1; 8], 0))
            && bad(memory.write_back(0..8))
            && bad(memory.fence())
            && bad(file.map_persistent(4096).map(drop))
    }));
    memory.store(&[2; 8], 0).unwrap();
    let mut read = [0; 9];
    file.read_at(&mut read, 0).unwrap();
    assert_eq!(read, [2, 2, 2, 2, 2, 2, 2, 2, 0]);
}

#[test]
fn a_number_used_again_in_the_child_is_neither_used_nor_closed() {
    let (place, directory) = fixture();
    let mut file = Some(open(&directory, "db"));
    let path = std::ffi::CString::new(place.path().join("db").to_str().unwrap()).unwrap();
    assert!(in_child(|| {
        let open = || {
            nix::fcntl::open(
                path.as_c_str(),
                nix::fcntl::OFlag::O_RDONLY,
                nix::sys::stat::Mode::empty(),
            )
        };
        // More than the process has of ours, so that our number is among them.
        let others = [(); 16].map(|()| open());
        let refused = file.as_ref().is_some_and(|file| file.metadata().is_err());
        drop(file.take());
        refused && others.iter().flatten().all(|other| nix::sys::stat::fstat(other).is_ok())
    }));
}

#[test]
fn a_child_does_not_keep_its_parents_locks() {
    let (place, directory) = fixture();
    // SAFETY: as in `in_child`; the middle process forks a child that only waits to be killed.
    let middle = match unsafe { fork() }.unwrap() {
        ForkResult::Parent { child } => child,
        // SAFETY: this process has one thread, so it may do what it likes.
        ForkResult::Child => unsafe { libc::_exit(hold_and_fork(place.path())) },
    };
    let WaitStatus::Exited(_, 0) = waitpid(middle, None).unwrap() else { panic!("no lock") };
    let mut text = [0; 4];
    open(&directory, "pid").read_at(&mut text, 0).unwrap();
    let child = Pid::from_raw(i32::from_le_bytes(text));
    assert!(kill(child, None).is_ok(), "the child lives");
    let file = open(&directory, "db");
    let free = file.try_lock(0..8, LockKind::Exclusive).unwrap();
    kill(child, Signal::SIGKILL).unwrap();
    assert!(free);
}

/// Takes a lock, maps memory, forks, and returns (that is, dies) with the child still living.
fn hold_and_fork(path: &std::path::Path) -> i32 {
    let Ok(directory) = crate::real::Real.open_directory(path) else {
        return 1;
    };
    let file = open(&directory, "db");
    let memory = file.shared_memory(8);
    if !file.try_lock(0..8, LockKind::Exclusive).unwrap_or(false) || memory.is_err() {
        return 2;
    }
    // SAFETY: as in `in_child`.
    match unsafe { fork() } {
        Ok(ForkResult::Child) => loop {
            std::thread::sleep(std::time::Duration::from_secs(1));
        },
        Ok(ForkResult::Parent { child }) => {
            open(&directory, "pid").write_at(&child.as_raw().to_le_bytes(), 0).unwrap();
            0
        }
        Err(_) => 3,
    }
}

#[test]
fn a_child_sees_zeros_in_place_of_shared_memory() {
    let (_place, directory) = fixture();
    let file = open(&directory, "shm");
    // Two of these begin within a large page.
    for (offset, words) in [(0, 1024), (REGION, 4096), (2 * REGION, 4096), (3 * REGION, 1)] {
        let memory = file.shared_region(offset, words).unwrap();
        let (start, last) = (memory.start(), words - 1);
        memory.word(last).store(7, Ordering::SeqCst);
        assert!(in_child(|| {
            let zero = memory.word(last).load(Ordering::SeqCst) == 0;
            memory.word(last).store(9, Ordering::SeqCst);
            // What was pointed at is still there to be written, and is nobody else's.
            zero && memory.start() == start && memory.word(last).load(Ordering::SeqCst) == 9
        }));
        assert_eq!(memory.word(last).load(Ordering::SeqCst), 7);
    }
}

/// What has pointers into it goes on; what came over the fork is neither unmapped nor mapped twice.
#[test]
fn a_child_can_map_a_file_where_it_had_shared_memory() {
    let (place, directory) = fixture();
    let file = open(&directory, "shm");
    let (offset, words) = (REGION, 4096);
    let memory = file.shared_region(offset, words).unwrap();
    memory.word(7).store(7, Ordering::SeqCst);
    let start = memory.start();
    let kept = std::mem::ManuallyDrop::new(memory);
    assert!(in_child(|| {
        let Ok(directory) = crate::real::Real.open_directory(place.path()) else { return false };
        let file = open(&directory, "shm");
        // SAFETY: read once; the one that stays is used no more here.
        let old = unsafe { std::ptr::read(&raw const *kept) };
        let Ok(mine) = file.shared_region_in_place_of(old, offset, words) else { return false };
        let same = mine.start() == start && mine.word(7).load(Ordering::SeqCst) == 7;
        mine.word(8).store(8, Ordering::SeqCst);
        // Listed like any other: in a child of this one it is zeros again.
        same && in_child(|| mine.word(7).load(Ordering::SeqCst) == 0)
    }));
    let memory = std::mem::ManuallyDrop::into_inner(kept);
    assert_eq!(memory.word(8).load(Ordering::SeqCst), 8);
    let other = file.shared_region(offset, words).unwrap();
    assert!(file.shared_region_in_place_of(other, offset, words).is_err(), "it is alive");
}

#[test]
fn every_process_has_its_own_of_what_is_one_for_each() {
    static VALUE: crate::real::PerProcess<std::sync::Mutex<u32>> = crate::real::PerProcess::new();
    // Ends up registering the handlers, as any open file does.
    let (_place, directory) = fixture();
    let _file = open(&directory, "db");
    let held = VALUE.get().lock().unwrap();
    assert!(in_child(|| {
        let mine = VALUE.get().try_lock().map(|mut value| *value += 1).is_ok();
        mine && in_child(|| VALUE.get().try_lock().is_ok_and(|value| *value == 0))
    }));
    assert_eq!(*held, 0);
}

#[test]
fn a_child_can_open_files_of_its_own() {
    let (place, directory) = fixture();
    let path = place.path();
    drop(directory);
    assert!(in_child(|| {
        let directory = crate::real::Real.open_directory(path);
        directory.is_ok_and(|directory| {
            let file = directory.open("own".as_ref(), OpenMode::CreateNew { permissions: 0o600 });
            file.is_ok_and(|file| file.write_at(b"child", 0).is_ok())
        })
    }));
    assert_eq!(std::fs::read(path.join("own")).unwrap(), b"child");
}

/// SEC12: another library's handler that opens a database before a fork waited for that fork.
#[test]
fn a_handler_before_a_fork_may_open_files() {
    static OPENS: AtomicBool = AtomicBool::new(false);
    extern "C" fn before() {
        if OPENS.load(Ordering::SeqCst) {
            drop(crate::real::Real.open_directory(std::path::Path::new("/")));
        }
    }
    // Registered before ours, it runs after it.
    // SAFETY: the handler is a function of this program, and does not unwind.
    assert_eq!(unsafe { libc::pthread_atfork(Some(before), None, None) }, 0);
    let (_place, directory) = fixture();
    let file = open(&directory, "db");
    OPENS.store(true, Ordering::SeqCst);
    let (done, forked) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(in_child(|| file.flush().is_err())));
    let forked = forked.recv_timeout(std::time::Duration::from_secs(20));
    OPENS.store(false, Ordering::SeqCst);
    assert_eq!(forked, Ok(true), "the fork does not wait for itself");
}

#[test]
fn no_fork_catches_a_descriptor_half_opened_or_half_closed() {
    let (place, directory) = fixture();
    let id = open(&directory, "db").id();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    drop(open(&directory, "db"));
                }
            });
        }
        let clean = (0..50).all(|_| {
            in_child(|| {
                let inodes = (0..512).filter_map(|fd| {
                    // SAFETY: asks about a number for the moment of the call only.
                    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
                    nix::sys::stat::fstat(fd).ok()
                });
                !inodes
                    .into_iter()
                    .any(|found| (found.st_dev, found.st_ino) == (id.device, id.inode))
            })
        });
        stop.store(true, Ordering::Relaxed);
        assert!(clean);
    });
    drop(place);
}
