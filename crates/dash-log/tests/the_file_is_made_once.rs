//! The log's file: made of blocks that are there, written around the page cache or through it, read
//! as it was written, longer only when it is told to be.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use super::common::{ID, head, noise};
use dash_engine::error::Error;
use dash_log::file::LogFile;
use dash_log::format::{Form, Invalid};
use dash_log::head::Head;
use dash_log::record::{Builder, WINDOW_START};
use dash_log::scan::{Condition, scan};
use dash_simulated::{Effect, Fault, Machine, Nothing, OperationKind};
use dash_storage::{Directory, File, Storage, real::Real};
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const RING: u64 = 64 << 10;

fn name() -> &'static OsStr {
    OsStr::new("app.db-dashlog")
}

/// The ring of a log at rest is not read: only where the next record goes is looked at.
#[test]
fn a_log_at_rest_is_told_by_its_head() {
    let folder = tempfile::tempdir().unwrap();
    let home = Real.open_directory(folder.path()).unwrap();
    let log = LogFile::create(&home, name(), 0o600, RING, Form::Sectors).unwrap();
    let next = 3 * u64::from(log.block()) + 512;
    let said = Head { next: Some(next), block: log.block(), ..head(ID, 4) };
    log.write_head(&said).unwrap();
    let put = |sequence: u64, position: u64| {
        let mut builder = Builder::new();
        builder.begin(ID, sequence, WINDOW_START, 512, 0, b"").unwrap();
        log.write(builder.finish(log.block()).unwrap(), position).unwrap();
    };
    let at_rest = || {
        let scan = scan(&log).unwrap();
        assert_eq!((scan.condition, &scan.head), (Condition::Whole, &said));
        scan.chain.is_empty() && (scan.greatest, scan.end_position) == (4, next)
    };
    assert!(at_rest());
    let block = u64::from(log.block());
    put(4, next.next_multiple_of(block));
    assert!(at_rest(), "it is void");
    // No dash writes one there first; that it isn't found shows that nobody looks there.
    put(5, 10 * block);
    assert!(at_rest());
    for position in [next.next_multiple_of(block), 0] {
        put(6, position);
        assert!(!at_rest());
        assert_eq!(scan(&log).unwrap().chain[0].sequence, 6);
        put(1, position);
        assert!(at_rest());
    }
}

#[test]
fn a_file_longer_than_any_log_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let home = Real.open_directory(folder.path()).unwrap();
    let log = LogFile::create(&home, name(), 0o600, RING, Form::Sectors).unwrap();
    assert!(matches!(log.grow(1 << 40), Err(Error::Refused(_))));
    let path = folder.path().join(name());
    std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(1 << 40).unwrap();
    let refused = scan(&log).err().unwrap();
    assert!(matches!(refused, Error::CantOpen(_)) && refused.to_string().contains("no log has"));
}

/// Records of growing images, one behind the other; returns how many.
fn fill<F: File>(log: &LogFile<F>) -> u64 {
    log.write_head(&Head { block: log.block(), ..head(ID, 0) }).unwrap();
    let ring = log.ring().unwrap();
    let mut builder = Builder::new();
    let (mut position, mut sequence) = (0, 0);
    loop {
        let flags = if sequence == 0 { WINDOW_START } else { 0 };
        builder.begin(ID, sequence + 1, flags, 4096, 2, b"context").unwrap();
        for unit in 0..sequence % 3 {
            let part = 100 * sequence as usize;
            let mut image = noise(sequence + unit, 4096);
            image[part.min(4096)..].fill(0);
            builder.push(unit as u32, b"me", None, &image).unwrap();
        }
        let blocks = builder.finish(log.block()).unwrap();
        if !ring.free((sequence > 0).then_some(0), position, blocks.len() as u64) {
            log.flush().unwrap();
            return sequence;
        }
        let start = ring.next(position, blocks.len() as u64).unwrap();
        if sequence % 2 == 0 {
            log.write(blocks, start).unwrap();
        } else {
            log.write_durable(blocks, start).unwrap();
        }
        position = start + blocks.len() as u64;
        sequence += 1;
    }
}

fn is_written_and_read<S: Storage>(storage: &S, path: &Path, direct: Option<bool>) {
    let directory = storage.open_directory(path).unwrap();
    assert!(LogFile::open(&directory, name()).unwrap().is_none());
    let log = LogFile::create(&directory, name(), 0o640, RING, Form::Sectors).unwrap();
    assert!(direct.is_none_or(|direct| direct == log.is_direct()));
    assert_eq!(log.read_head().unwrap(), Err(Invalid::Absent));
    assert_eq!(log.ring().unwrap().len, RING);
    assert!(log.read_all().unwrap().iter().all(|&byte| byte == 0));
    let empty = scan(&log).unwrap();
    assert_eq!((empty.condition, empty.chain.len()), (Condition::Absent, 0));
    let last = fill(&log);
    assert!(last > 10, "{last}");
    // LOG-9: commits neither lengthened it nor took blocks.
    assert_eq!(log.file().metadata().unwrap().len, RING + 4096);
    let found = scan(&log).unwrap();
    assert_eq!((found.condition, found.greatest), (Condition::Whole, last));
    let records: Vec<_> = found.records().map(|record| record.unwrap().sequence).collect();
    assert_eq!(records, (1..=last).collect::<Vec<_>>());
    // It grows, and what was in it stays.
    log.grow(RING * 2 - 1).unwrap();
    assert_eq!(log.ring().unwrap().len, RING * 2);
    log.grow(RING).unwrap();
    assert_eq!(log.ring().unwrap().len, RING * 2);
    assert_eq!(scan(&log).unwrap().chain.len() as u64, last);
    // Others find the same; they make it no second time.
    let other = LogFile::open(&directory, name()).unwrap().unwrap();
    assert_eq!((other.is_direct(), other.block()), (log.is_direct(), log.block()));
    assert_eq!(scan(&other).unwrap().chain, found.chain);
    assert!(matches!(
        LogFile::create(&directory, name(), 0o640, RING, Form::Sectors),
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::AlreadyExists
    ));
    assert_eq!(scan(&other).unwrap().chain, found.chain);
    let reader = LogFile::open_to_read(&directory, name()).unwrap().unwrap();
    assert_eq!(scan(&reader).unwrap().chain, found.chain);
    assert!(reader.write_head(&head(ID, 9)).is_err());
}

#[test]
fn on_a_disk() {
    let folder = tempfile::tempdir().unwrap();
    is_written_and_read(&Real, folder.path(), None);
}

#[test]
fn on_simulated_storage() {
    for (direct, block) in [(Some(512), 512), (Some(4096), 4096), (None, 4096)] {
        let machine = Machine::new(1);
        machine.set_direct(direct);
        let process = machine.process();
        is_written_and_read(&process, Path::new("/"), Some(direct.is_some()));
        let directory = process.open_directory(Path::new("/")).unwrap();
        assert_eq!(LogFile::open(&directory, name()).unwrap().unwrap().block(), block);
    }
}

#[test]
fn what_was_made_or_grown_is_durable() {
    // LOG-9: its length, and zeros in it.
    let machine = Machine::new(1);
    let directory = machine.process().open_directory(Path::new("/")).unwrap();
    let log = LogFile::create(&directory, name(), 0o600, RING, Form::Sectors).unwrap();
    directory.flush().unwrap();
    let left = || machine.power_loss(&mut Nothing).file_view("app.db-dashlog").unwrap();
    assert_eq!(left(), vec![0; 4096 + RING as usize]);
    log.grow(3 * RING).unwrap();
    assert_eq!(left(), vec![0; 4096 + 3 * RING as usize]);
}

#[test]
fn writing_in_the_ring_takes_no_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let directory = Real.open_directory(folder.path()).unwrap();
    let log = LogFile::create(&directory, name(), 0o600, RING, Form::Sectors).unwrap();
    let blocks = || std::fs::metadata(folder.path().join(name())).unwrap().blocks();
    let made = blocks();
    assert!(made * 512 >= RING, "{made}");
    fill(&log);
    assert_eq!(blocks(), made);
}

#[test]
fn the_greater_block_of_two_is_used() {
    // LOG-5: the head was written where blocks are larger.
    let machine = Machine::new(1);
    let directory = machine.process().open_directory(Path::new("/")).unwrap();
    let log = LogFile::create(&directory, name(), 0o600, RING, Form::Sectors).unwrap();
    assert_eq!(log.block(), 512);
    for (said, used) in [(4096, 4096), (512, 512), (1 << 30, 4096), (0, 512), (3000, 512)] {
        log.write_head(&Head { block: said, ..head(ID, 0) }).unwrap();
        assert_eq!(LogFile::open(&directory, name()).unwrap().unwrap().block(), used, "{said}");
    }
}

#[test]
fn a_log_that_can_not_be_made_leaves_no_name() {
    for kind in [OperationKind::Initialize, OperationKind::Flush, OperationKind::MakeDirect] {
        let machine = Machine::new(1);
        let directory = machine.process().open_directory(Path::new("/")).unwrap();
        machine.fail(Fault::new(Effect::Error(5)).on(kind));
        assert!(
            LogFile::create(&directory, name(), 0o600, RING, Form::Sectors).is_err(),
            "{kind:?}"
        );
        assert!(LogFile::open(&directory, name()).unwrap().is_none(), "{kind:?}");
    }
    let machine = Machine::new(1);
    machine.set_capacity(Some(RING));
    let directory = machine.process().open_directory(Path::new("/")).unwrap();
    assert!(LogFile::create(&directory, name(), 0o600, RING, Form::Sectors).is_err());
    assert!(!machine.exists("app.db-dashlog"));
    let tiny = LogFile::create(&directory, name(), 0o600, 100, Form::Sectors);
    assert!(matches!(tiny, Err(Error::Refused(_))));
}
