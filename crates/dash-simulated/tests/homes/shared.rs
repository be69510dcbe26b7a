//! Shared memory, chance, and time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use dash_storage::{File, REGION, SharedMemory, Storage};

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

pub fn a_region_is_shared_wherever_it_begins<S: Storage>(place: Place<S>, _: &Path) {
    let (one, two) = (place.open("shm"), place.open("shm"));
    let third = one.shared_region(2 * REGION, 4096).unwrap();
    assert_eq!((third.len(), one.metadata().unwrap().len), (4096, 3 * REGION));
    let (second, again) = (two.shared_region(REGION, 4096), two.shared_region(2 * REGION, 4096));
    let (second, again) = (second.unwrap(), again.unwrap());
    third.word(4095).store(3, SeqCst);
    second.word(0).store(2, SeqCst);
    assert_eq!((again.word(4095).load(SeqCst), again.word(0).load(SeqCst)), (3, 0));
    let all = one.shared_memory(3 * 4096).unwrap();
    assert_eq!((all.word(4096).load(SeqCst), all.word(3 * 4096 - 1).load(SeqCst)), (2, 3));
    assert_eq!(two.metadata().unwrap().len, 3 * REGION);
    for wrong in [1, 4096, REGION - 8, REGION + 8] {
        assert!(one.shared_region(wrong, 1).is_err(), "{wrong}");
    }
}

pub fn words_can_be_covered_for_a_while<S: Storage>(place: Place<S>, _: &Path) {
    let (one, two) = (place.open("shm"), place.open("shm"));
    for offset in [0, REGION] {
        let (mine, theirs) = (one.shared_region(offset, 4096), two.shared_region(offset, 4096));
        let (mine, theirs) = (mine.unwrap(), theirs.unwrap());
        let start = mine.start();
        theirs.word(7).store(1, SeqCst);
        let words = mine.cover().unwrap();
        assert_eq!((mine.start(), mine.word(7).load(SeqCst)), (start, 1));
        mine.word(7).store(2, SeqCst);
        theirs.word(8).store(3, SeqCst);
        assert_eq!((theirs.word(7).load(SeqCst), mine.word(8).load(SeqCst)), (1, 0));
        words.word(9).store(4, SeqCst);
        assert_eq!((theirs.word(9).load(SeqCst), words.word(8).load(SeqCst)), (4, 3));
        mine.uncover(&words).unwrap();
        drop(words);
        let seen = [7, 8, 9].map(|word| mine.word(word).load(SeqCst));
        assert_eq!((mine.start(), seen), (start, [1, 3, 4]));
        mine.word(7).store(5, SeqCst);
        assert_eq!(theirs.word(7).load(SeqCst), 5);
    }
}

pub fn a_region_has_the_bytes_of_the_file<S: Storage>(place: Place<S>, _: &Path) {
    let file = place.open("shm");
    file.write_at(&7_u64.to_le_bytes(), REGION + 8).unwrap();
    let region = file.shared_region(REGION, 4096).unwrap();
    assert_eq!((region.word(0).load(SeqCst), region.word(1).load(SeqCst)), (0, 7));
    let mut bytes = [9; 8];
    region.word(4095).store(5, SeqCst);
    assert_eq!(file.read_at(&mut bytes, 2 * REGION - 8).unwrap(), 8);
    assert_eq!(u64::from_le_bytes(bytes), 5);
    file.write_at(b"\x01\x02", 2 * REGION - 9).unwrap();
    assert_eq!(region.word(4094).load(SeqCst), 1 << 56);
    assert_eq!(region.word(4095).load(SeqCst), 2);
    file.initialize(REGION + 4096..2 * REGION).unwrap();
    assert_eq!((region.word(1).load(SeqCst), region.word(4095).load(SeqCst)), (7, 0));
}

pub fn the_words_of_a_region_lie_together_and_stay<S: Storage>(place: Place<S>, _: &Path) {
    let file = place.open("shm");
    let first = file.shared_region(0, 4096).unwrap();
    let second = file.shared_region(REGION, 4096).unwrap();
    let starts = [&first, &second].map(SharedMemory::start);
    for (region, start) in [&first, &second].into_iter().zip(starts) {
        for index in [0, 1, 17, 4095] {
            let word: *const _ = region.word(index);
            assert_eq!(word.addr(), start.addr() + index * 8);
        }
        assert!(start.addr().is_multiple_of(8));
    }
    // Wherever the handles go, and however the file grows.
    let moved = Box::new((second, first));
    let _more = file.shared_region(20 * REGION, 4096).unwrap();
    let _all = file.shared_memory(1).unwrap();
    drop(file);
    assert_eq!([moved.1.start(), moved.0.start()], starts);
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
