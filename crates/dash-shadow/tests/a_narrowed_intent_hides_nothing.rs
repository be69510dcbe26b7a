//! SHADOW-6: an intent that is narrowed when the database is closed is not
//! flushed, and the copy it is in may not be either.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use super::common::sim::{start, tiny};
use super::common::{PAGE, commit, commit_unflushed, read, write};
use dash_shadow::OpenOptions;
use dash_simulated::{Machine, Question, Survivors};
use dash_storage::{Directory, File, OpenMode, Storage};

/// Of one inode's file loses everything in some ranges; all else survives.
struct WithoutAll(u64, Vec<std::ops::Range<u64>>);
impl Survivors for WithoutAll {
    fn choose(&mut self, question: Question, _: usize, newest: usize) -> usize {
        match question {
            Question::Unit { inode, offset }
                if inode == self.0 && self.1.iter().any(|range| range.contains(&offset)) =>
            {
                0
            }
            _ => newest,
        }
    }
}

fn inode_of(machine: &Machine, name: &str) -> u64 {
    let directory = machine.process().open_directory("/".as_ref()).unwrap();
    directory.open(name.as_ref(), OpenMode::Read).unwrap().id().inode
}

/// One commit in a session of its own.
fn session(machine: &Machine, options: &OpenOptions, content: &[u8]) {
    let (_process, mut connection) = start(machine, options);
    commit(&mut connection, content).unwrap();
    connection.close().unwrap();
}

fn place(number: usize) -> std::ops::Range<u64> {
    (number * PAGE) as u64..((number + 1) * PAGE) as u64
}

/// Changes whole blocks of what mending compares at once, the first one and another.
fn change(content: &mut [u8], at: usize) {
    for page in [0, 1, 2, 3, at, at + 1, at + 2, at + 3] {
        content[page] += 4;
    }
}

/// The narrow intent stays in the cache: what the last commit changed is in it, and in the other
/// copy's only. The next one changes a neighbour, without widening it, and is cut off.
#[test]
pub(crate) fn not_what_only_it_marks() {
    let mut options = tiny();
    options.tuning.intent_region = 4 * 4096;
    for distance in [4, 5, 6] {
        let machine = Machine::new(1);
        let mut content = vec![1; 120];
        session(&machine, &options, &content);
        for at in [84, 88] {
            change(&mut content, at);
            session(&machine, &options, &content);
        }
        let (_process, mut connection) = start(&machine, &options);
        for at in [64, 24] {
            change(&mut content, at);
            commit(&mut connection, &content).unwrap();
        }
        connection.close().unwrap();
        let (_process, mut connection) = start(&machine, &options);
        let shadow = inode_of(&machine, "app.db-shadow");
        let len = machine.file_view("/app.db-shadow").unwrap().len() as u64;
        let mut never = content.clone();
        never[24 + distance] = 200;
        write(&mut connection, &never).unwrap();
        connection.prepare(None).unwrap();
        let old = vec![place(0), len - 8192..len];
        let after = machine.power_loss(&mut WithoutAll(shadow, old));
        let (_process, mut connection) = start(&after, &options);
        assert!(read(&mut connection).unwrap() == content);
        change(&mut content, 100);
        commit(&mut connection, &content).unwrap();
        assert_eq!(read(&mut connection).unwrap(), content, "what was cut off is there in part");
    }
}

/// Two commits under synchronous=OFF. Closing flushes the newer one; the copy with the older one is
/// the shadow, and on the disk it is not what it is in the cache.
#[test]
pub(crate) fn not_what_was_never_flushed() {
    let mut options = tiny();
    options.tuning.intent_all = 1 << 20;
    let machine = Machine::new(1);
    let mut content = vec![1; 60];
    session(&machine, &options, &content);
    content[0] = 5;
    session(&machine, &options, &content);
    let (_process, mut connection) = start(&machine, &options);
    content[30] = 9;
    commit_unflushed(&mut connection, &content);
    let unflushed = inode_of(&machine, "app.db");
    content[41] = 9;
    commit_unflushed(&mut connection, &content);
    connection.close().unwrap();
    let after = machine.power_loss(&mut WithoutAll(unflushed, vec![place(30)]));
    let (_process, mut connection) = start(&after, &options);
    assert!(read(&mut connection).unwrap() == content);
    content[50] = 77;
    commit(&mut connection, &content).unwrap();
    assert_eq!(read(&mut connection).unwrap(), content);
}
