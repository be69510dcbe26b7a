//! Whoever may write `app.db-dash` may write nonsense into it: readers and writers answer with an
//! error that names the file, and neither search nor wait nor grow it without end (SEC7). When all
//! have closed, it is as if nothing had been.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::common;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use super::common::{commit, read};
use dash_shadow::{Connection, Error, LockLevel};
use dash_storage::real::Real;

/// Against a hang.
const PATIENCE: Duration = Duration::from_secs(20);
/// Words of the head, as in `coordination.rs`.
const CURRENT: u64 = 2;
const VERSIONS_BASE: u64 = 14;
const VERSIONS_END: u64 = 15;
const SLOTS: u64 = 16;
/// Where the version store begins.
const LOG: u64 = 65_536;

fn put(path: &Path, place: u64, words: &[u64]) {
    let file = OpenOptions::new().write(true).open(path.with_file_name("app.db-dash")).unwrap();
    for (at, word) in (place..).step_by(8).zip(words) {
        file.write_all_at(&word.to_le_bytes(), at).unwrap();
    }
}

fn get(path: &Path, place: u64) -> u64 {
    let file = OpenOptions::new().read(true).open(path.with_file_name("app.db-dash")).unwrap();
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, place).unwrap();
    u64::from_le_bytes(bytes)
}

/// Does something elsewhere; panics if it does not come back.
fn soon<T: Send + 'static>(what: &str, act: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, wait) = mpsc::channel();
    std::thread::spawn(move || done.send(act()));
    wait.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{what}: no answer"))
}

fn open(path: &Path) -> Connection<Real> {
    Connection::open(&Real, path, &common::sim::tiny()).unwrap()
}

/// A reader of a state whose copy has been overwritten since, and the writer that did it.
fn overtaken(path: &Path) -> (Connection<Real>, Connection<Real>) {
    let mut writer = open(path);
    commit(&mut writer, &[4, 1, 1, 1]).unwrap();
    commit(&mut writer, &[4, 2, 2, 2]).unwrap();
    let mut reader = open(path);
    reader.lock(LockLevel::Shared).unwrap();
    commit(&mut writer, &[4, 3, 3, 3]).unwrap();
    commit(&mut writer, &[4, 4, 4, 4]).unwrap();
    (reader, writer)
}

/// A transaction that changes page 1 and asks nobody what was there: the database is too long for
/// that.
fn write_blindly(connection: &mut Connection<Real>) -> Result<(), Error> {
    connection.lock(LockLevel::Shared)?;
    connection.lock(LockLevel::Reserved)?;
    connection.lock(LockLevel::Exclusive)?;
    connection.write(&common::page(1, 4, 4, 99), 0)?;
    connection.prepare(None)?;
    connection.flush()?;
    connection.publish()
}

#[test]
fn a_version_store_that_lies_is_an_io_error() {
    let record = |label, slot, offset, len| vec![(LOG, vec![label, slot, offset, len])];
    let max = u64::MAX;
    let scribbles: Vec<Vec<(u64, Vec<u64>)>> = vec![
        vec![(VERSIONS_END * 8, vec![max])],
        vec![(VERSIONS_END * 8, vec![1 << 40])],
        vec![(VERSIONS_BASE * 8, vec![1 << 40])],
        vec![(VERSIONS_BASE * 8, vec![max - 40, max])],
        vec![(VERSIONS_BASE * 8, vec![1 << 61, 1 << 61 | 4096])],
        record(9, 0, 0, 0),
        record(9, 0, 0, 1 << 21),
        record(9, 0, 0, max - 31),
        record(9, 0, 0, (1 << 63) - 32),
        record(9, 0, max - 1024, 2048),
        record(9, 1, max - 1024, 2048),
        record(9, 7, 0, 512),
    ];
    for scribble in scribbles {
        let (_folder, path) = common::real();
        let (mut reader, mut writer) = overtaken(&path);
        for (place, words) in &scribble {
            put(&path, *place, words);
        }
        let what = format!("{scribble:?}");
        let (seen, reader) = soon(&what, move || {
            let mut buffer = vec![0; common::PAGE];
            (reader.read(&mut buffer, 1024).map(|_| buffer[500]), reader)
        });
        match seen {
            Err(Error::Io { name, source, .. }) => {
                assert!(name.ends_with("app.db-dash"), "{what}: {name}");
                assert!(source.to_string().contains("close all connections"), "{what}: {source}");
            }
            other => panic!("{what}: {other:?}"),
        }
        // Whoever goes on gets errors, too, or mends it; nothing hangs, and nothing grows without
        // end.
        soon(&what, move || {
            drop(reader.close());
            drop(commit(&mut writer, &[4, 5, 5, 5]));
            drop(writer.close());
        });
        let mut connection = open(&path);
        let content = read(&mut connection).unwrap();
        assert!([[4, 4, 4, 4], [4, 5, 5, 5]].contains(&content[..].try_into().unwrap()), "{what}");
        commit(&mut connection, &[4, 6, 6, 6]).unwrap();
        connection.close().unwrap();
    }
}

/// A number that the next ones are counted from, and the size of the database.
#[test]
fn no_commit_is_built_on_a_word_that_cannot_be() {
    for (place, word) in [
        (CURRENT, u64::MAX - 1),
        (CURRENT, 1 << 63),
        (SLOTS, 1 << 40),
        (SLOTS, u64::MAX),
        (SLOTS, 1 << 62),
    ] {
        let what = format!("word {place} = {word:#x}");
        let (_folder, path) = common::real();
        let mut writer = open(&path);
        commit(&mut writer, &[4, 1, 1, 1]).unwrap();
        commit(&mut writer, &[4, 2, 2, 2]).unwrap();
        let slot = get(&path, CURRENT * 8) & 1;
        let (place, word) = match place {
            CURRENT => (CURRENT * 8, word | slot),
            _ => ((place + 8 * slot) * 8, word),
        };
        put(&path, place, &[word]);
        let other = what.clone();
        soon(&what, move || {
            // As the first commit of the next session: the other copy has to be looked at.
            let committed = write_blindly(&mut writer);
            drop(writer.unlock(LockLevel::None));
            let told = committed.expect_err(&other).to_string();
            assert!(told.contains("app.db-dash") && told.contains("close all"), "{other}: {told}");
            drop(writer.close());
        });
        let folder = path.parent().unwrap();
        for file in std::fs::read_dir(folder).unwrap() {
            let file = file.unwrap();
            assert!(file.metadata().unwrap().len() < 1 << 24, "{what}: {file:?} has grown");
        }
        let mut connection = open(&path);
        assert_eq!(read(&mut connection).unwrap(), [4, 2, 2, 2], "{what}");
        commit(&mut connection, &[4, 6, 6, 6]).unwrap();
        connection.close().unwrap();
    }
}
