//! A log in byte-addressable memory: made where there is some and nowhere else, written in lines,
//! read as any other, and still a log where it is copied to.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use super::common::{ID, create_mapped, head, noise};
use dash_engine::error::Error;
use dash_log::file::LogFile;
use dash_log::format::{Form, Invalid};
use dash_log::head::Head;
use dash_log::record::{Builder, WINDOW_START};
use dash_log::scan::{Condition, scan};
use dash_simulated::{Effect, Fault, Machine, Nothing, OperationKind};
use dash_storage::{Directory, File, OpenMode, Persistence, Storage, real::Real};
use dash_testing::mounts::folder_in_memory;
use std::ffi::OsStr;
use std::path::Path;

const RING: u64 = 16 << 10;

fn name() -> &'static OsStr {
    OsStr::new("app.db-dashlog")
}

/// A record of so many bytes of noise.
fn build(builder: &mut Builder, sequence: u64, content: usize) {
    let flags = if sequence == 1 { WINDOW_START } else { 0 };
    builder.begin(ID, sequence, flags, content as u32, 3, b"ctx").unwrap();
    builder.push(sequence as u32, b"abc", None, &noise(sequence, content)).unwrap();
}

/// Appends records from this one on up to the ring's end; where each is, and what is next.
fn fill<F: File>(log: &LogFile<F>, first: u64, from: u64) -> Vec<u64> {
    let (mut builder, mut places, mut position) = (Builder::new(), Vec::new(), from);
    let ring = log.ring().unwrap();
    builder.set_form(log.form());
    for sequence in first.. {
        build(&mut builder, sequence, 1 + sequence as usize * 7 % 300);
        let blocks = builder.finish(log.block()).unwrap();
        let len = blocks.len() as u64;
        let Some(place) = ring.next(position, len).filter(|place| *place >= position) else {
            break;
        };
        if sequence % 3 == 0 {
            log.write_durable(blocks, place).unwrap();
        } else {
            log.write(blocks, place).unwrap();
        }
        places.push(place);
        position = place + len;
    }
    log.flush().unwrap();
    places
}

/// The content of every record of the chain is what was written; how many there are.
fn read<F: File>(log: &LogFile<F>) -> u64 {
    let found = scan(log).unwrap();
    assert_eq!(found.condition, Condition::Whole);
    for (number, record) in (1..).zip(found.records()) {
        let record = record.unwrap();
        assert_eq!((record.sequence, record.context), (number, &b"ctx"[..]));
        assert_eq!(record.form, log.form());
        let mut images = dash_log::images::Images::new(record.unit_bytes);
        let entry = record.entries().next().unwrap();
        let image = images.feed(&entry).unwrap();
        assert_eq!(image, noise(number, 1 + number as usize * 7 % 300));
    }
    found.chain.len() as u64
}

fn is_written_and_read<S: Storage>(storage: &S, path: &Path, persistence: Persistence) {
    let directory = storage.open_directory(path).unwrap();
    let make = || create_mapped(&directory, name(), 0o600, RING);
    let log = make().unwrap().unwrap();
    assert_eq!((log.block(), log.is_direct()), (64, false));
    assert_eq!(log.persistence(), Some(persistence));
    assert_eq!(log.read_head().unwrap(), Err(Invalid::Absent));
    log.write_head(&Head { block: log.block(), ..head(ID, 0) }).unwrap();
    log.flush().unwrap();
    assert_eq!(scan(&log).unwrap().chain.len(), 0);
    let places = fill(&log, 1, 0);
    assert!(places.len() > 40 && places.iter().all(|place| place % 64 == 0));
    assert!(places.iter().any(|place| place % 512 != 0));
    assert_eq!(read(&log), places.len() as u64);
    // It grows, and the mapping with it.
    log.grow(2 * RING).unwrap();
    let end = scan(&log).unwrap().end_position;
    let more = fill(&log, places.len() as u64 + 1, end);
    assert!(more.iter().any(|place| *place > RING), "{more:?}");
    let all = (places.len() + more.len()) as u64;
    // Others find the same, and store as well. They make it no second time.
    let other = LogFile::open(&directory, name()).unwrap().unwrap();
    assert_eq!((other.persistence(), other.block()), (Some(persistence), 64));
    assert_eq!((read(&other), read(&log)), (all, all));
    assert!(matches!(make(), Err(Error::Io { .. })));
    let reader = LogFile::open_to_read(&directory, name()).unwrap().unwrap();
    assert_eq!((read(&reader), reader.persistence()), (all, None));
    assert!(reader.write_head(&head(ID, 9)).is_err());
    // Heads are seen by all, whoever writes them, and have their two places in turn.
    let mut places = Vec::new();
    for (sequence, writer) in [(7, &log), (8, &other), (9, &log), (9, &log)] {
        let said = Head { block: 64, ..head(ID, sequence) };
        writer.write_head(&said).unwrap();
        let heads = [&log, &other, &reader].map(|log| log.heads().unwrap());
        assert!(heads.iter().all(|heads| heads.head.as_ref() == Ok(&said)));
        places.push((heads[0].place, heads[0].form));
    }
    let turn = |place| (place, Form::Lines);
    assert_eq!(places, [1, 0, 1, 0].map(turn));
    // What is void is void, and a log at rest is told by its head: whoever writes the first record
    // puts it there, at the next multiple of a disk's block, or at the ring's beginning.
    let rest = Head { block: 64, next: Some(8384), ..head(ID, all) };
    log.write_head(&rest).unwrap();
    let mut builder = Builder::new();
    for place in [8384, 12288, 0] {
        let found = scan(&log).unwrap();
        assert_eq!((found.chain.len(), found.greatest, found.end_position), (0, all, 8384));
        builder.set_form(if place == 0 { Form::Sectors } else { Form::Lines });
        builder.begin(ID, all + 1, WINDOW_START, 64, 0, b"").unwrap();
        other.write(builder.finish(64).unwrap(), place).unwrap();
        assert_eq!(scan(&log).unwrap().chain.len(), 1, "{place}");
        other.write(&[0; 64], place).unwrap();
    }
}

#[test]
fn in_simulated_memory() {
    let machine = Machine::new(1);
    machine.set_byte_addressable();
    is_written_and_read(&machine.process(), Path::new("/"), Persistence::Synchronous);
}

#[test]
fn in_the_memory_of_a_tmpfs() {
    let Some(folder) = folder_in_memory() else { return };
    is_written_and_read(&Real, folder.path(), Persistence::Volatile);
}

#[test]
fn where_there_is_no_memory_none_is_made_and_nothing_is_left() {
    // LOG-13
    let machine = Machine::new(1);
    let directory = machine.process().open_directory(Path::new("/")).unwrap();
    assert!(create_mapped(&directory, name(), 0o600, RING).unwrap().is_none());
    assert!(!machine.exists("app.db-dashlog"));
    let kinds: Vec<_> = machine.journal().entries.iter().map(|it| it.operation.kind).collect();
    assert!(kinds.contains(&OperationKind::MapPersistent));
    assert!(!kinds.contains(&OperationKind::Store) && !kinds.contains(&OperationKind::Write));
    // Another error is one.
    machine.fail(Fault::new(Effect::Error(13)).on(OperationKind::MapPersistent));
    assert!(create_mapped(&directory, name(), 0o600, RING).is_err());
    assert!(!machine.exists("app.db-dashlog"));
}

#[test]
fn a_log_of_sectors_in_memory_stays_one() {
    // It has but one head, which memory would tear where it is stored to.
    let machine = Machine::new(1);
    machine.set_byte_addressable();
    let directory = machine.process().open_directory(Path::new("/")).unwrap();
    let log = LogFile::create(&directory, name(), 0o600, RING, Form::Sectors).unwrap();
    log.write_head(&head(ID, 0)).unwrap();
    for log in [log, LogFile::open(&directory, name()).unwrap().unwrap()] {
        assert_eq!((log.persistence(), log.heads().unwrap().form), (None, Form::Sectors));
        assert!(log.block() >= 512);
    }
}

/// Opened before there was a head: the head of the one who made it says what it is.
#[test]
fn who_came_before_the_head_writes_it_as_it_is() {
    let machine = Machine::new(1);
    machine.set_byte_addressable();
    let directory = machine.process().open_directory(Path::new("/")).unwrap();
    let log = create_mapped(&directory, name(), 0o600, RING).unwrap().unwrap();
    let early = LogFile::open(&directory, name()).unwrap().unwrap();
    assert_eq!(early.persistence(), None);
    log.write_head(&Head { block: 64, ..head(ID, 1) }).unwrap();
    early.write_head(&Head { block: 64, ..head(ID, 2) }).unwrap();
    let heads = log.heads().unwrap();
    assert_eq!((heads.form, heads.turn, heads.head.unwrap().sequence), (Form::Lines, 3, 2));
}

/// Bytes of a file, in another home.
fn copy<S: Storage>(bytes: &[u8], storage: &S) -> S::Directory {
    let directory = storage.open_directory(Path::new("/")).unwrap();
    let mode = OpenMode::CreateNew { permissions: 0o600 };
    let file = directory.open(name(), mode).unwrap();
    file.write_at(bytes, 0).unwrap();
    file.flush().unwrap();
    directory.flush().unwrap();
    directory
}

#[test]
fn copied_to_a_disk_and_back_it_is_the_same_log() {
    // LOG-5: also in blocks that have several of its records, and both of its heads.
    let memory = Machine::new(1);
    memory.set_byte_addressable();
    let directory = memory.process().open_directory(Path::new("/")).unwrap();
    let log = create_mapped(&directory, name(), 0o600, RING).unwrap().unwrap();
    log.write_head(&Head { block: 64, ..head(ID, 0) }).unwrap();
    let count = fill(&log, 1, 0).len() as u64;
    log.grow(2 * RING).unwrap();
    let bytes = log.read_all().unwrap();
    for direct in [Some(512), Some(4096), None] {
        let disk = Machine::new(2);
        disk.set_direct(direct);
        let there = copy(&bytes, &disk.process());
        let log = LogFile::open(&there, name()).unwrap().unwrap();
        let block = direct.unwrap_or(4096);
        assert_eq!((log.persistence(), log.block(), read(&log)), (None, block, count));
        // What is there is written again, and goes on in larger blocks.
        let found = scan(&log).unwrap();
        found.rewrite(&log).unwrap();
        let more = fill(&log, count + 1, found.end_position).len() as u64;
        log.write_head(&Head { block, ..head(ID, 0) }).unwrap();
        log.flush().unwrap();
        let after = disk.power_loss(&mut Nothing);
        let there = after.process().open_directory(Path::new("/")).unwrap();
        let log = LogFile::open(&there, name()).unwrap().unwrap();
        assert_eq!((read(&log), log.heads().unwrap().form), (count + more, Form::Lines));
        let memory = Machine::new(3);
        memory.set_byte_addressable();
        let back = copy(&log.read_all().unwrap(), &memory.process());
        let log = LogFile::open(&back, name()).unwrap().unwrap();
        let stored = (log.persistence(), log.block());
        assert_eq!(stored, (Some(Persistence::Synchronous), block), "{direct:?}");
        assert_eq!(read(&log), count + more);
        log.write_head(&Head { block: 64, ..head(ID, 3) }).unwrap();
        assert_eq!(log.read_head().unwrap().unwrap().sequence, 3);
    }
}

#[test]
fn a_log_that_was_cut_is_an_error_and_no_end() {
    let Some(folder) = folder_in_memory() else { return };
    let directory = Real.open_directory(folder.path()).unwrap();
    let log = create_mapped(&directory, name(), 0o600, RING).unwrap().unwrap();
    log.write_head(&head(ID, 0)).unwrap();
    let file = directory.open(name(), OpenMode::ReadWrite).unwrap();
    file.set_len(4096).unwrap();
    let block = [1; 64];
    assert!(matches!(log.write(&block, 0), Err(Error::Io { .. })));
    assert!(matches!(log.write_durable(&block, 64), Err(Error::Io { .. })));
    assert!(matches!(log.flush(), Err(Error::Io { .. })));
}
