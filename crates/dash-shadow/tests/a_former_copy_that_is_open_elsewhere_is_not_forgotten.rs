//! SHADOW-16. A stock process that has a former copy open would roll the journal of whoever writes
//! `app.db` back into that copy, and remove it. So whenever no process of dash lives, either nobody
//! has a former copy open, or no stock process can write `app.db`: the name fence stands, or the
//! file is protected.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::common;
use super::common::stock::{self, Left};
use super::common::{commit, open, read};
use dash_shadow::inspect;
use dash_simulated::{Machine, Random};
use dash_storage::{Directory, File, OpenMode, Storage};
use std::path::Path;

const DB: &str = "/app.db";

/// Panics where stock SQLite may write `app.db` while a stock process has `held`, another file.
fn nobody_writes_beside(machine: &Machine, held: u64, what: &str) {
    let named = machine.open_stock(DB).unwrap().inode();
    let seen = inspect(&machine.process(), Path::new(DB)).unwrap();
    let protected = seen.database.unwrap().header.is_some_and(|header| header.is_protected);
    assert!(named == held || protected || seen.beside.fence, "{what}");
}

#[test]
pub(crate) fn where_it_is_the_empty_file_that_the_first_commit_replaced() {
    for commits in 0..4 {
        let machine = Machine::new(1);
        let first = machine.process();
        let mut connection = open(&first, DB).unwrap();
        // As long as nothing is committed the database is an empty file.
        let stock = machine.open_stock(DB).unwrap();
        commit(&mut connection, &[1, 1, 1]).unwrap();
        machine.kill(&first);
        drop(connection);
        nobody_writes_beside(&machine, stock.inode(), "killed after the first commit");
        for closes in [false, true] {
            let process = machine.process();
            let mut connection = open(&process, DB).unwrap();
            assert_eq!(read(&mut connection).unwrap()[1..], [1, 1]);
            for number in 0..commits {
                commit(&mut connection, &[number, 1, 1]).unwrap();
            }
            if closes {
                connection.close().unwrap();
            } else {
                machine.kill(&process);
                drop(connection);
            }
            let what = format!("{commits} commits later, closed: {closes}");
            nobody_writes_beside(&machine, stock.inode(), &what);
        }
    }
}

/// Who is reading when the database is closed has looked at the header, and may go on to write.
#[test]
pub(crate) fn where_the_current_copy_is_being_read() {
    let machine = Machine::new(1);
    let mut connection = open(&machine.process(), DB).unwrap();
    commit(&mut connection, &[1, 1, 1]).unwrap();
    let former = machine.open_stock(DB).unwrap();
    commit(&mut connection, &[2, 1, 1]).unwrap();
    let reader = machine.open_stock(DB).unwrap();
    assert!(reader.try_lock_shared());
    let mut told = String::new();
    connection.close_telling(&mut |message| told = message.to_owned()).unwrap();
    assert!(told.contains("can't open the database"), "{told}");
    let seen = inspect(&machine.process(), Path::new(DB)).unwrap();
    assert!(seen.beside.fence, "it may write a journal");
    reader.unlock();
    drop(former);
    let mut connection = open(&machine.process(), DB).unwrap();
    assert_eq!(read(&mut connection).unwrap(), [2, 1, 1]);
    connection.close().unwrap();
    let seen = inspect(&machine.process(), Path::new(DB)).unwrap();
    assert!(!seen.beside.fence && !seen.database.unwrap().header.unwrap().is_protected);
}

/// Without a journal file stock SQLite does not ask whether its file still has its name, and writes
/// into a former copy that it was reading when dash closed. Both have a commit then that the other
/// lacks.
#[test]
pub(crate) fn nor_what_a_reader_wrote_there() {
    // Of some contents page 1 has room for a block, of others not.
    for value in [1, 2, 3] {
        for (before, commits) in [(0, 1), (0, 2), (2, 1), (2, 2), (2, 3)] {
            let machine = Machine::new(1);
            let mut content = vec![value, 1, 1];
            let mut connection = open(&machine.process(), DB).unwrap();
            commit(&mut connection, &content).unwrap();
            connection.close().unwrap();
            let mut connection = open(&machine.process(), DB).unwrap();
            for number in 0..before {
                content[1] = 10 + number;
                commit(&mut connection, &content).unwrap();
            }
            let reader = machine.open_stock(DB).unwrap();
            assert!(reader.try_lock_shared());
            let cached = reader.read_all();
            commit(&mut connection, &[value, 5, 1]).unwrap();
            connection.close().unwrap();
            reader.write_at(&cached[..100], 0).unwrap();
            for _ in 0..commits {
                content = stock::commit_into(&reader, &content, Left::All, &|_| {});
            }
            reader.unlock();
            drop(reader);
            let what = format!("{value}: {before} commits, then {commits} of stock");
            let refused = open(&machine.process(), DB).err().expect(&what);
            assert!(refused.to_string().contains("--keep shadow"), "{what}: {refused}");
        }
    }
}

/// Also where it leaves no block of dash's there: it grows over the tail of a file that dash has
/// never written before, or makes the file anew.
#[test]
pub(crate) fn nor_what_it_wrote_over_every_trace() {
    for killed in [false, true] {
        for commits in 1..4 {
            let machine = Machine::new(1);
            let folder = machine.process().open_directory(Path::new("/")).unwrap();
            let made =
                folder.open("app.db".as_ref(), OpenMode::CreateNew { permissions: 0o600 }).unwrap();
            let mut content = vec![1, 1, 1];
            for (number, value) in (0..).zip(&content) {
                let page = common::page(number + 1, *value, content.len(), 7);
                made.write_at(&page, (number * common::PAGE) as u64).unwrap();
            }
            drop(made);
            let reader = machine.open_stock(DB).unwrap();
            assert!(reader.try_lock_shared());
            let cached = reader.read_all();
            let process = machine.process();
            let mut connection = open(&process, DB).unwrap();
            commit(&mut connection, &[1, 5, 1]).unwrap();
            if killed {
                machine.kill(&process);
                drop(connection);
            } else {
                connection.close().unwrap();
            }
            reader.write_at(&cached[..100], 0).unwrap();
            let set_len = |len| {
                folder
                    .open("app.db-shadow".as_ref(), OpenMode::ReadWrite)
                    .unwrap()
                    .set_len(len)
                    .unwrap();
            };
            for _ in 0..commits {
                content = stock::commit_into(&reader, &content, Left::Nothing, &set_len);
            }
            reader.unlock();
            drop(reader);
            let what = format!("killed {killed}, {commits} commits of stock");
            let refused = open(&machine.process(), DB).err().expect(&what);
            assert!(refused.to_string().contains("--keep shadow"), "{what}: {refused}");
        }
    }
}

/// Another program copies a backup over the current copy: the shadow is nobody's then, but stays
/// the file it is.
#[test]
fn where_a_backup_was_copied_over_the_current_one() {
    let machine = Machine::new(1);
    let mut connection = open(&machine.process(), DB).unwrap();
    commit(&mut connection, &[1, 1, 1]).unwrap();
    let former = machine.open_stock(DB).unwrap();
    commit(&mut connection, &[2, 1, 1]).unwrap();
    let late = machine.open_stock(DB).unwrap();
    connection.close().unwrap();
    let plain = common::page(1, 9, 1, 77);
    late.write_at(&plain, 0).unwrap();
    let process = machine.process();
    let mut connection = open(&process, DB).unwrap();
    let content = [8; 3];
    commit(&mut connection, &content).unwrap();
    for seed in 0..8 {
        let after = machine.power_loss(&mut Random::new(seed));
        assert_eq!(read(&mut open(&after.process(), DB).unwrap()).unwrap(), content);
    }
    machine.kill(&process);
    drop(connection);
    nobody_writes_beside(&machine, former.inode(), "after a kill");
    let mut connection = open(&machine.process(), DB).unwrap();
    assert_eq!(read(&mut connection).unwrap(), content);
    connection.close().unwrap();
    nobody_writes_beside(&machine, former.inode(), "closed");
}
