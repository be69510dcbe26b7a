//! Shared memory, chance, and time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use dash_storage::{File, SharedMemory, Storage};

use crate::Place;

pub fn words_are_shared_between_openings<S: Storage>(place: Place<S>, _: &Path) {
    let (one, two) = (place.open("shm"), place.open("shm"));
    let (a, b) = (one.shared_memory(1024).unwrap(), two.shared_memory(4096).unwrap());
    assert_eq!((a.len(), b.len(), a.is_empty()), (1024, 4096, false));
    assert_eq!(b.word(1023).load(SeqCst), 0);
    a.word(1023).store(42, SeqCst);
    assert_eq!(b.word(1023).fetch_add(1, SeqCst), 42);
    b.word(4095).store(1, SeqCst);
    assert_eq!(a.word(1023).load(SeqCst), 43);
    assert_eq!(one.shared_memory(4096).unwrap().word(4095).load(SeqCst), 1);
}

pub fn a_word_out_of_range_panics<S: Storage>(place: Place<S>, _: &Path) {
    let memory = place.open("shm").shared_memory(10).unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| memory.word(10).load(SeqCst))).is_err());
}

pub fn memory_outlives_its_file<S: Storage>(place: Place<S>, _: &Path) {
    let memory = place.open("shm").shared_memory(10).unwrap();
    memory.word(9).store(5, SeqCst);
    let again = place.open("shm").shared_memory(10).unwrap();
    assert_eq!(again.word(9).load(SeqCst), 5);
}

pub fn memory_extends_the_file<S: Storage>(place: Place<S>, _: &Path) {
    let file = place.open("shm");
    let _large = file.shared_memory(100).unwrap();
    let _small = file.shared_memory(1).unwrap();
    assert_eq!(file.metadata().unwrap().len, 800);
}

pub fn a_wait_ends_when_the_word_changes_or_the_time_is_over<S: Storage>(
    place: Place<S>,
    _: &Path,
) {
    let a = place.open("shm").shared_memory(10).unwrap();
    let b = place.open("shm").shared_memory(10).unwrap();
    assert!(!a.wait(9, 0, Duration::from_millis(2)), "nothing has changed");
    assert!(a.wait(9, 1, Duration::from_secs(60)), "it is another value");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| while !a.wait(9, 0, Duration::from_secs(60)) {});
        std::thread::sleep(Duration::from_millis(5));
        b.word(9).store(7 << 32 | 1, SeqCst);
        b.wake(9);
        waiting.join().unwrap();
    });
}

pub fn random_numbers_are_not_zero_and_differ<S: Storage>(place: Place<S>, _: &Path) {
    let mut numbers: Vec<u64> = (0..1000).map(|_| place.storage.random()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert!(numbers.len() == 1000 && numbers[0] != 0);
}

pub fn the_clock_never_goes_back<S: Storage>(place: Place<S>, _: &Path) {
    let clock = || place.storage.monotonic_nanos();
    let times: Vec<u64> = (0..1000).map(|_| clock()).collect();
    assert!(times.is_sorted());
    let before = clock();
    place.storage.sleep(Duration::from_micros(500));
    assert!(clock() >= before + 500_000);
}
