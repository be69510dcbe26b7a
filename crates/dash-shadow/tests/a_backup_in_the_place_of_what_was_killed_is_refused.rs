//! A process was killed, and an older backup was put in the place of `app.db`. The shadow alone had
//! what was committed since; the backup was taken without a word, or refused as damage, by the
//! parity of the commits, and the next commit wrote over the shadow (SHADOW-29).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use super::common::sim::{OldNames, at_rest, start, tiny};
use super::common::{commit, read};
use dash_shadow::{Connection, Error, LockLevel, ReadOnly, forget};
use dash_simulated::{Everything, Machine, Nothing, Simulated};
use dash_storage::{Directory, File, OpenMode, Storage};

fn root(machine: &Machine) -> <Simulated as Storage>::Directory {
    machine.process().open_directory(Path::new("/")).unwrap()
}

/// So many commits after the backup; then the process is killed.
fn killed(commits: u8, before: u8) -> (Machine, Vec<u8>) {
    let machine = at_rest();
    let (process, mut connection) = start(&machine, &tiny());
    for value in 0..before {
        commit(&mut connection, &[1, 50 + value, 3]).unwrap();
    }
    let backup = machine.file_view("app.db").unwrap();
    for value in 0..commits {
        commit(&mut connection, &[1, 10 + value, 3]).unwrap();
    }
    machine.kill(&process);
    (machine, backup)
}

/// Puts a backup in the place of `app.db`, which is kept as `kept`: over its bytes, or as another
/// file.
fn put_there(machine: &Machine, backup: &[u8], over: bool) {
    let root = root(machine);
    let newer = machine.file_view("app.db").unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let file = root.open(name.as_ref(), OpenMode::Create { permissions: 0o644 }).unwrap();
        file.set_len(bytes.len() as u64).unwrap();
        file.write_at(bytes, 0).unwrap();
    };
    match over {
        true => write("kept", &newer),
        false => root.rename("app.db".as_ref(), "kept".as_ref()).unwrap(),
    }
    write("app.db", backup);
}

fn refused(machine: &Machine, story: &str) {
    let shadow = machine.file_view("app.db-shadow").unwrap();
    for _ in 0..3 {
        let error = Connection::open(&machine.process(), Path::new("/app.db"), &tiny()).err();
        let Some(Error::CantOpen(message)) = error else {
            panic!("{story}: {error:?}");
        };
        assert!(message.contains("app.db is older than the last commit"), "{story}: {message}");
        assert!(message.contains("--keep database"), "{story}: {message}");
        let reader = ReadOnly::open(&machine.process(), Path::new("/app.db"), false);
        let read = reader.and_then(|mut reader| reader.lock(LockLevel::Shared));
        assert!(read.is_err(), "{story}: read only");
    }
    assert_eq!(machine.file_view("app.db-shadow").unwrap(), shadow, "{story}");
}

#[test]
pub(crate) fn after_any_number_of_commits() {
    for before in 0..4 {
        for commits in 1..6 {
            for over in [false, true] {
                let story = format!("{commits} commits behind {before}, over it {over}");
                let (machine, backup) = killed(commits, before);
                put_there(&machine, &backup, over);
                refused(&machine, &story);
            }
        }
    }
}

/// Either way out is one for good.
#[test]
pub(crate) fn until_the_newer_one_is_back_or_the_older_one_is_taken() {
    for taken in [false, true] {
        let (machine, backup) = killed(4, 1);
        put_there(&machine, &backup, false);
        refused(&machine, "before");
        let (root, path) = (root(&machine), Path::new("/app.db"));
        let content = match taken {
            false => {
                root.rename("kept".as_ref(), "app.db".as_ref()).unwrap();
                [1, 13, 3]
            }
            true => {
                root.rename("app.db-shadow".as_ref(), "aside".as_ref()).unwrap();
                forget(&machine.process(), path).unwrap();
                [1, 50, 3]
            }
        };
        let (_p, mut connection) = start(&machine, &tiny());
        assert_eq!(read(&mut connection).unwrap(), content, "taken {taken}");
        commit(&mut connection, &[5, 5, 5]).unwrap();
        let (_p, mut connection) = start(&machine.power_loss(&mut Nothing), &tiny());
        assert_eq!(read(&mut connection).unwrap(), [5, 5, 5], "taken {taken}");
    }
}

/// There the shadow tells, where it is more than one commit ahead: the backup is refused, or taken
/// for the file that was being written.
#[test]
pub(crate) fn also_after_a_power_loss() {
    let mut older = 0;
    for commits in 3..7 {
        for over in [false, true] {
            let (machine, backup) = killed(commits, 2);
            for machine in [
                machine.power_loss(&mut OldNames),
                machine.power_loss(&mut Nothing),
                machine.power_loss(&mut Everything),
            ] {
                put_there(&machine, &backup, over);
                match Connection::open(&machine.process(), Path::new("/app.db"), &tiny()) {
                    Err(Error::CantOpen(text)) if text.contains("is older than") => older += 1,
                    Err(_) => {}
                    Ok(mut connection) => {
                        let story = format!("{commits} commits, over {over}");
                        assert_ne!(read(&mut connection).unwrap(), [1, 51, 3], "{story}");
                    }
                }
            }
        }
    }
    assert!(older > 0, "none was refused for that");
}

/// A process that was killed had committed nothing: the backup is put there as at rest.
#[test]
pub(crate) fn but_not_where_nothing_was_committed() {
    let machine = at_rest();
    let backup = machine.file_view("app.db").unwrap();
    let (_p, mut connection) = start(&machine, &tiny());
    for value in 0..3 {
        commit(&mut connection, &[1, value, 3]).unwrap();
    }
    connection.close().unwrap();
    let (process, mut connection) = start(&machine, &tiny());
    read(&mut connection).unwrap();
    machine.kill(&process);
    put_there(&machine, &backup, true);
    let (_p, mut connection) = start(&machine, &tiny());
    assert_eq!(read(&mut connection).unwrap(), [1, 2, 3]);
}
