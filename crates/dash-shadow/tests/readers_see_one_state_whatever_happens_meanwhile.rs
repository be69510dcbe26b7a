//! A6, A10: what a reader is told of its snapshot belongs to that snapshot,
//! and a read-only connection waits while a first opener recovers.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use super::common;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::common::sim::{start, tiny};
use super::common::{Content, PAGE, commit, read, write};
use dash_shadow::{LockLevel, ReadOnly};
use dash_simulated::{Machine, Question, Survivors};
use dash_testing::long::moment;

/// A6: what a reader is told of its copy belongs to the state it pinned.
#[test]
fn a6_the_size_belongs_to_the_snapshot() {
    let (_folder, path) = common::real();
    let path = path.to_str().unwrap().to_owned();
    use dash_storage::real::Real;
    let mut writer = common::open(&Real, &path).unwrap();
    commit(&mut writer, &[1, 1, 1]).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let mut readers = Vec::new();
    for _ in 0..6 {
        let (stop, path) = (stop.clone(), path.clone());
        readers.push(std::thread::spawn(move || {
            let mut reader = common::open(&Real, &path).unwrap();
            let mut n = 0u64;
            while !stop.load(Ordering::Relaxed) {
                n += 1;
                if reader.lock(LockLevel::Shared).is_err() {
                    continue;
                }
                let mut header = [0; 100];
                reader.read(&mut header, 0).unwrap();
                let pages = u32::from_be_bytes(header[28..32].try_into().unwrap());
                let size = reader.size();
                let mut version = [0; 16];
                reader.read(&mut version, 24).unwrap();
                reader.unlock(LockLevel::None).unwrap();
                if u64::from(pages) * PAGE as u64 != size || version != header[24..40] {
                    return Some((n, pages, size));
                }
            }
            None
        }));
    }
    let begun = std::time::Instant::now();
    let mut i = 0u32;
    while begun.elapsed() < moment(Duration::from_secs(3), Duration::from_secs(8))
        && !readers.iter().any(|reader| reader.is_finished())
    {
        i += 1;
        // Slot 0 and slot 1 change their sizes every other commit.
        let pages = 3 + (i / 2 % 3) as usize;
        let content = vec![(i % 250) as u8; pages];
        let _ = write(&mut writer, &content)
            .and_then(|()| writer.truncate((pages * PAGE) as u64))
            .and_then(|()| writer.prepare(None))
            .and_then(|()| writer.publish());
        let _ = writer.unlock(LockLevel::None);
    }
    stop.store(true, Ordering::Relaxed);
    let wrong: Vec<_> = readers.into_iter().filter_map(|reader| reader.join().unwrap()).collect();
    assert!(wrong.is_empty(), "after {i} commits: (look, pages, size) {wrong:?}");
}

/// A10: a read-only connection that opens while the first opener recovers.
#[test]
fn a10_a_read_only_connection_during_a_recovery() {
    let machine = Machine::new(1);
    let (_p, mut a) = start(&machine, &tiny());
    for i in 0..4 {
        commit(&mut a, &[i, i, i, i]).unwrap();
    }
    // The next one is cut: the file under app.db on disk is the one being written.
    write(&mut a, &[9, 9, 9, 9]).unwrap();
    a.prepare(None).unwrap();
    struct Half;
    impl Survivors for Half {
        fn choose(&mut self, question: Question, _: usize, newest: usize) -> usize {
            match question {
                Question::Operations { .. } => 0,
                Question::Unit { offset, .. } if offset < 2 * PAGE as u64 => 0,
                _ => newest,
            }
        }
    }
    let after = machine.power_loss(&mut Half);
    let seen: Arc<Mutex<Vec<Content>>> = Arc::default();
    let see = seen.clone();
    after.watch(move |machine, _| {
        let process = machine.process();
        let Ok(mut reader) = ReadOnly::open(&process, Path::new("/app.db"), false) else {
            return;
        };
        if reader.lock(LockLevel::Shared).is_err() {
            return;
        }
        let content = (0..reader.size() / PAGE as u64)
            .map(|i| {
                let mut page = [0; PAGE];
                reader.read(&mut page, i * PAGE as u64).unwrap();
                page[PAGE - 1]
            })
            .collect();
        see.lock().unwrap().push(content);
    });
    let (_q, mut b) = start(&after, &tiny());
    after.watch(|_, _| {});
    assert_eq!(read(&mut b).unwrap(), [3, 3, 3, 3]);
    let mut seen = seen.lock().unwrap().clone();
    seen.dedup();
    assert!(seen.iter().all(|content| *content == [3, 3, 3, 3]), "read-only readers saw {seen:?}");
}
