//! FT6. A transaction over several databases (ATTACH) is decided when its
//! super-journal is gone. Its writer was killed before it had published it in each of them, and a
//! connection that had been open since before read the old state of the one and the new state of
//! the other, until somebody wrote. Readers, too, finish what was decided; they wait for a writer
//! that lives.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ffi::OsStr;
use std::path::Path;

use super::common::sim::{start, tiny};
use super::common::{Content, PAGE, commit, read, write};
use dash_shadow::{Connection, Error, LockLevel, ReadOnly};
use dash_simulated::{Machine, Nothing, OperationKind, Random, Simulated};
use dash_storage::{Directory, File, OpenMode, Storage};

const SUPER: &str = "app.db-mj01AB23945";
const OLD: [u8; 3] = [1, 2, 3];
const NEW: [u8; 4] = [9, 2, 8, 7];

type Process = (Simulated, Connection<Simulated>);

/// A writer, with a commit that is prepared and flushed under a super-journal, and a process that
/// has the database open since before.
fn prepared() -> (Machine, Process, Process) {
    let machine = Machine::new(1);
    let (process, mut writer) = start(&machine, &tiny());
    commit(&mut writer, &[1]).unwrap();
    commit(&mut writer, &OLD).unwrap();
    let (other, mut reader) = start(&machine, &tiny());
    assert_eq!(read(&mut reader).unwrap(), OLD);
    write(&mut writer, &NEW).unwrap();
    let root = process.open_directory(Path::new("/")).unwrap();
    let listed = root.open(SUPER.as_ref(), OpenMode::CreateNew { permissions: 0o644 }).unwrap();
    listed.write_at(b"/app.db-journal\0/other.db-journal\0", 0).unwrap();
    root.flush().unwrap();
    writer.prepare(Some(OsStr::new(SUPER))).unwrap();
    writer.flush().unwrap();
    (machine, (process, writer), (other, reader))
}

/// SQLite removes the super-journal: all databases of the transaction are committed.
fn decide(machine: &Machine) {
    let root = machine.process().open_directory(Path::new("/")).unwrap();
    root.unlink(SUPER.as_ref()).unwrap();
    root.flush().unwrap();
}

fn read_by_one_that_may_only_read(machine: &Machine) -> Result<Content, Error> {
    let mut reader = ReadOnly::open(&machine.process(), Path::new("/app.db"), false)?;
    reader.lock(LockLevel::Shared)?;
    let mut content = Content::new();
    for number in 0..reader.size() / PAGE as u64 {
        let mut page = [0; PAGE];
        reader.read(&mut page, number * PAGE as u64)?;
        content.push(page[PAGE - 1]);
    }
    reader.close()?;
    Ok(content)
}

#[test]
pub(crate) fn by_the_one_that_died() {
    let (machine, (victim, writer), (_q, mut reader)) = prepared();
    decide(&machine);
    machine.kill(&victim);
    drop(writer);
    assert_eq!(read(&mut reader).unwrap(), NEW);
    for seed in 0..20 {
        let after = match seed {
            0 => machine.power_loss(&mut Nothing),
            _ => machine.power_loss(&mut Random::new(seed)),
        };
        assert_eq!(read(&mut start(&after, &tiny()).1).unwrap(), NEW, "fate {seed}");
    }
    commit(&mut reader, &OLD).unwrap();
    assert_eq!(read(&mut reader).unwrap(), OLD);
}

#[test]
pub(crate) fn and_by_who_may_only_read() {
    let (machine, (victim, writer), (_q, reader)) = prepared();
    assert_eq!(read_by_one_that_may_only_read(&machine).unwrap(), OLD);
    decide(&machine);
    machine.kill(&victim);
    drop(writer);
    assert_eq!(read_by_one_that_may_only_read(&machine).unwrap(), NEW);
    drop(reader);
}

#[test]
fn not_what_was_not_decided() {
    let (machine, (victim, writer), (_q, mut reader)) = prepared();
    machine.kill(&victim);
    drop(writer);
    for _ in 0..3 {
        assert_eq!(read(&mut reader).unwrap(), OLD);
        assert_eq!(read_by_one_that_may_only_read(&machine).unwrap(), OLD);
    }
    // The next writer undoes it, and removes its super-journal.
    commit(&mut reader, &[4, 5]).unwrap();
    assert!(!machine.exists(format!("/{SUPER}")));
    assert_eq!(read(&mut reader).unwrap(), [4, 5]);
}

#[test]
fn and_nothing_old_beside_a_writer_that_lives() {
    let (machine, (_p, mut writer), (_q, mut reader)) = prepared();
    assert_eq!(read(&mut reader).unwrap(), OLD);
    decide(&machine);
    assert!(matches!(read(&mut reader), Err(Error::Busy)), "it waits, then the busy handler does");
    assert!(matches!(read_by_one_that_may_only_read(&machine), Err(Error::Busy)));
    writer.publish().unwrap();
    assert_eq!(read(&mut reader).unwrap(), NEW);
    writer.unlock(LockLevel::None).unwrap();
    assert_eq!(read(&mut reader).unwrap(), NEW);
}

/// Wherever the reader is killed in it, the next one finishes it.
#[test]
fn whoever_dies_of_it() {
    for at in 0..200 {
        let (machine, (victim, writer), (process, mut reader)) = prepared();
        let (_r, mut third) = start(&machine, &tiny());
        decide(&machine);
        machine.kill(&victim);
        drop(writer);
        let (mut calls, dying) = (0, process.clone());
        machine.watch(move |machine, operation| {
            if calls == at && operation.kind != OperationKind::Read {
                machine.kill(&dying);
            }
            calls += 1;
        });
        let done = read(&mut reader).is_ok();
        machine.watch(|_, _| {});
        machine.kill(&process);
        drop(reader);
        assert_eq!(read(&mut third).unwrap(), NEW, "killed before call {at}");
        if done {
            return;
        }
    }
    panic!("reading never ended");
}
