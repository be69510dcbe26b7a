//! SHADOW-24: of what commits overwrite, the version store holds what a living reader needs, once,
//! and no more. Up to the limit readers make no commit wait; at the limit, and on a full disk, a
//! writer waits for them, is told whom for, and loses nothing.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use std::ffi::OsStr;
use std::path::Path;

use super::common::sim::{start, tiny};
use super::common::{Content, commit, read, read_locked};
use dash_shadow::{Connection, Error, LockLevel};
use dash_simulated::{Machine, Simulated};
use dash_storage::{Directory, Storage};

/// More than one copy of the database takes with its tail and the headers of records.
const ONE_COPY: u64 = 64 << 10;
/// Where the version store begins in its file.
const LOG: u64 = 64 << 10;

fn shared_len(process: &Simulated) -> u64 {
    let folder = process.open_directory(Path::new("/")).unwrap();
    folder.metadata(OsStr::new("app.db-dash")).unwrap().unwrap().len
}

fn begin(machine: &Machine) -> Connection<Simulated> {
    let (_, mut reader) = start(machine, &tiny());
    reader.lock(LockLevel::Shared).unwrap();
    reader
}

/// Another content: three pages of it differ from those of round `i - 1`.
fn change(content: &mut Content, i: usize) {
    for place in [i * 3, i * 7 + 1] {
        let pages = content.len() - 1;
        content[1 + place % pages] = (i % 251) as u8;
    }
}

fn machine() -> (Machine, Simulated, Connection<Simulated>, Content) {
    let machine = Machine::new(1);
    let (process, mut writer) = start(&machine, &tiny());
    let content: Content = (0..40).collect();
    commit(&mut writer, &content).unwrap();
    (machine, process, writer, content)
}

/// Whoever writes, and however often.
#[test]
pub fn each_page_is_kept_once_for_one_reader() {
    let (machine, process, mut writer, mut content) = machine();
    let (mut reader, snapshot) = (begin(&machine), content.clone());
    let (_, mut other) = start(&machine, &tiny());
    for i in 0..300 {
        change(&mut content, i);
        commit(if i % 3 == 0 { &mut other } else { &mut writer }, &content).unwrap();
        if i % 20 == 0 {
            assert_eq!(read_locked(&mut reader).unwrap(), snapshot, "after commit {i}");
        }
        let kept = writer.kept_bytes();
        assert!(kept < ONE_COPY, "{kept} bytes are kept after commit {i}");
    }
    assert_eq!(read_locked(&mut reader).unwrap(), snapshot);
    assert!(shared_len(&process) > LOG + (32 << 10), "nothing was kept");
    reader.unlock(LockLevel::None).unwrap();
    assert_eq!((writer.kept_bytes(), shared_len(&process)), (0, LOG), "as soon as it has left");
    assert_eq!(read(&mut reader).unwrap(), content);
}

/// There is never an instant without somebody who reads an older state.
#[test]
pub fn what_only_those_needed_who_have_left_is_not_kept() {
    let (machine, _process, mut writer, mut content) = machine();
    let mut readers = vec![(begin(&machine), content.clone())];
    for i in 0..300 {
        change(&mut content, i);
        commit(&mut writer, &content).unwrap();
        readers.push((begin(&machine), content.clone()));
        if readers.len() > 4 {
            let (mut oldest, snapshot) = readers.remove(0);
            assert_eq!(read_locked(&mut oldest).unwrap(), snapshot, "after commit {i}");
            oldest.close().unwrap();
        }
        assert!(writer.kept_bytes() < ONE_COPY, "{} bytes are kept", writer.kept_bytes());
    }
    for (reader, snapshot) in &mut readers {
        assert_eq!(read_locked(reader).unwrap(), *snapshot);
    }
}

#[test]
fn what_a_killed_reader_needed_is_not_kept() {
    let (machine, process, mut writer, mut content) = machine();
    let (killed, mut reader) = start(&machine, &tiny());
    reader.lock(LockLevel::Shared).unwrap();
    for i in 0..20 {
        change(&mut content, i);
        commit(&mut writer, &content).unwrap();
    }
    assert!(writer.kept_bytes() > 0 && shared_len(&process) > LOG);
    machine.kill(&killed);
    commit(&mut writer, &content).unwrap();
    assert_eq!((writer.kept_bytes(), shared_len(&process)), (0, LOG));
}

/// What a killed process left of the store goes when the next one opens the database.
#[test]
fn nor_is_it_after_all_were_killed() {
    let (machine, process, mut writer, mut content) = machine();
    let reader = begin(&machine);
    for i in 0..20 {
        change(&mut content, i);
        commit(&mut writer, &content).unwrap();
    }
    assert!(shared_len(&process) > LOG);
    let machine = machine.killed();
    drop((writer, reader));
    let (process, mut connection) = start(&machine, &tiny());
    assert!(shared_len(&process) <= LOG);
    assert_eq!(read(&mut connection).unwrap(), content);
}

#[test]
fn at_the_limit_nobody_begins_to_write() {
    let (machine, _process, mut writer, mut content) = machine();
    writer.set_kept_limit(Some(12 << 10));
    let (mut reader, snapshot) = (begin(&machine), content.clone());
    let mut notices = Vec::new();
    let refused = (0..100).find_map(|i| {
        let mut next = content.clone();
        change(&mut next, i);
        let begun = writer.lock(LockLevel::Shared).and_then(|()| writer.lock(LockLevel::Reserved));
        writer.unlock(LockLevel::None).unwrap();
        notices.extend(writer.kept_notice());
        begun.err().or_else(|| {
            // What has begun is committed.
            commit(&mut writer, &next).unwrap();
            content = next;
            None
        })
    });
    let Some(Error::Held(why)) = refused else { panic!("{refused:?}") };
    let me = std::process::id().to_string();
    for part in ["app.db", "dash_kept_limit", "in this process", &me, "end its transaction"] {
        assert!(why.contains(part), "{part}: {why}");
    }
    assert_eq!(notices.len(), 1, "it was told of at half, once: {notices:?}");
    assert!(notices[0].contains("half") && notices[0].contains(&me), "{notices:?}");
    assert!(matches!(commit(&mut writer, &[1, 2, 3]), Err(Error::Held(_))));
    let rows = writer.readers().unwrap();
    assert_eq!(rows.len(), 1);
    assert!(rows[0].kept_bytes > 0 && rows[0].process == u64::from(std::process::id()));
    assert_eq!(read_locked(&mut reader).unwrap(), snapshot);
    reader.unlock(LockLevel::None).unwrap();
    change(&mut content, 3);
    commit(&mut writer, &content).unwrap();
    assert_eq!(read(&mut reader).unwrap(), content);
}

#[test]
fn on_a_full_disk_a_writer_waits_for_the_reader() {
    let (machine, process, mut writer, mut content) = machine();
    for i in 0..10 {
        change(&mut content, i);
        commit(&mut writer, &content).unwrap();
    }
    let folder = process.open_directory(Path::new("/")).unwrap();
    let used: u64 = ["app.db", "app.db-shadow", "app.db-dash"]
        .map(|name| folder.metadata(OsStr::new(name)).unwrap().unwrap().len.next_multiple_of(4096))
        .iter()
        .sum();
    let (mut reader, snapshot) = (begin(&machine), content.clone());
    machine.set_capacity(Some(used + (12 << 10)));
    let refused = (10..100).find_map(|i| {
        let mut next = content.clone();
        change(&mut next, i);
        match commit(&mut writer, &next) {
            Ok(()) => content = next,
            Err(error) => return Some(error),
        }
        None
    });
    assert!(matches!(refused, Some(Error::Held(_))), "{refused:?}");
    assert_eq!(read_locked(&mut reader).unwrap(), snapshot);
    assert_eq!(read(&mut writer).unwrap(), content, "what was refused is not there");
    reader.unlock(LockLevel::None).unwrap();
    change(&mut content, 5);
    commit(&mut writer, &content).unwrap();
    assert_eq!(read(&mut reader).unwrap(), content);
}
