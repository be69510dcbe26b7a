//! One flush for all who commit meanwhile: every commit returns, each is in a flush that ended
//! before it returned, and nobody sleeps until its wait is over while there is nothing to wait for
//! (LOG-6).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use dash_engine::error::Error;
use dash_log::session::{FlushTurn, Group};
use dash_storage::real::Real;
use dash_storage::{Directory, File, OpenMode, SharedMemory, Storage};
use std::ffi::OsStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

const GROUP: Group = Group { rounds: 3, awaited: 5 };

fn memory(folder: &tempfile::TempDir) -> impl SharedMemory + use<> {
    let directory = Real.open_directory(folder.path()).unwrap();
    let mode = OpenMode::Create { permissions: 0o600 };
    directory.open(OsStr::new("words"), mode).unwrap().shared_memory(512).unwrap()
}

/// A log that takes a while to flush.
#[derive(Default)]
struct Log {
    lock: AtomicBool,
    written: AtomicU64,
    durable: AtomicU64,
    flushes: AtomicU64,
}

impl Log {
    fn turn(&self, own: u64) -> FlushTurn {
        if self.durable.load(SeqCst) >= own {
            return FlushTurn::Durable;
        }
        if self.lock.swap(true, SeqCst) {
            return FlushTurn::Busy;
        }
        let written = self.written.load(SeqCst);
        std::thread::sleep(Duration::from_micros(200));
        self.flushes.fetch_add(1, SeqCst);
        self.durable.fetch_max(written, SeqCst);
        self.lock.store(false, SeqCst);
        FlushTurn::Led { durable: written >= own }
    }
}

#[test]
fn many_commit_with_few_flushes() {
    const THREADS: u64 = 16;
    const COMMITS: u64 = 200;
    let folder = tempfile::tempdir().unwrap();
    let memory = memory(&folder);
    let log = Log::default();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..COMMITS {
                    let own = log.written.fetch_add(1, SeqCst) + 1;
                    GROUP.commit(&memory, || Ok(log.turn(own))).unwrap();
                    assert!(log.durable.load(SeqCst) >= own);
                }
            });
        }
    });
    let flushes = log.flushes.load(SeqCst);
    assert!(flushes < THREADS * COMMITS / 2, "{flushes} flushes of {} commits", THREADS * COMMITS);
}

#[test]
fn one_that_announced_itself_is_woken_by_the_next_end_of_a_round() {
    let folder = tempfile::tempdir().unwrap();
    let memory = memory(&folder);
    let long = Duration::from_secs(20);
    // The round ended between the announcement and the wait: nothing to wait for.
    let seen = GROUP.announce(&memory);
    GROUP.finish(&memory);
    let begun = Instant::now();
    assert!(GROUP.wait(&memory, seen, long));
    // It ends while many sleep, who announced themselves late and in any order.
    for _ in 0..50 {
        let asleep = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let seen = GROUP.announce(&memory);
                    asleep.fetch_add(1, SeqCst);
                    assert!(GROUP.wait(&memory, seen, long));
                });
            }
            while asleep.load(SeqCst) < 4 {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_millis(1));
            GROUP.finish(&memory);
        });
    }
    assert!(begun.elapsed() < long, "somebody slept until its time was over");
    // A wait has an end.
    let seen = GROUP.announce(&memory);
    assert!(!GROUP.wait(&memory, seen, Duration::from_millis(2)));
}

#[test]
fn a_leader_that_was_killed_delays_the_others_by_one_wait() {
    let folder = tempfile::tempdir().unwrap();
    let memory = memory(&folder);
    let log = Log::default();
    log.lock.store(true, SeqCst);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            // It is gone, and its lock with it; it told nobody.
            log.lock.store(false, SeqCst);
        });
        log.written.store(1, SeqCst);
        GROUP.commit(&memory, || Ok(log.turn(1))).unwrap();
    });
    assert!(begun.elapsed() >= Duration::from_millis(20));
}

#[test]
fn a_commit_that_no_flush_has_is_an_error_in_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let memory = memory(&folder);
    let in_vain = GROUP.commit(&memory, || Ok(FlushTurn::Led { durable: false }));
    assert!(matches!(in_vain, Err(Error::Io { .. })));
    // An error of the one that leads is its own, and the round ends with it.
    let rounds = memory.word(GROUP.rounds).load(SeqCst);
    assert!(matches!(GROUP.commit(&memory, || Err(Error::OutOfMemory)), Err(Error::OutOfMemory)));
    assert_eq!(memory.word(GROUP.rounds).load(SeqCst), rounds + 1);
}
