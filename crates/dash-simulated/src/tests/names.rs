//! Rules 6 and 7: directory operations, inodes.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use dash_storage::{Directory as _, File as _, OpenMode};

use super::{open, outcomes, root, with_file};
use crate::{Enumerate, Everything, Machine, Nothing};

/// Which of the names `a` to `d` exist, for every fate.
fn names(machine: &Machine) -> BTreeSet<String> {
    let mut all = Enumerate::new(1000);
    let mut seen = BTreeSet::new();
    while all.advance() {
        let left = machine.power_loss(&mut all);
        let there = ["a", "b", "c", "d"].into_iter().filter(|name| left.file_view(name).is_some());
        seen.insert(there.collect());
    }
    seen
}

fn set<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.into_iter().map(String::from).collect()
}

#[test]
fn directory_operations_survive_as_a_prefix() {
    let machine = Machine::new(1);
    let directory = root(&machine.process());
    open(&directory, "a");
    open(&directory, "b");
    directory.rename(OsStr::new("a"), OsStr::new("c")).unwrap();
    directory.unlink(OsStr::new("b")).unwrap();
    assert_eq!(names(&machine), set(["", "a", "ab", "bc", "c"]));
    directory.flush().unwrap();
    assert_eq!(names(&machine), set(["c"]));
}

#[test]
fn an_exchange_is_all_or_nothing_and_independent_of_data() {
    let (machine, directory, file) = with_file(0);
    let other = open(&directory, "other");
    directory.flush().unwrap();
    for (file, byte) in [(&file, b'f'), (&other, b'o')] {
        file.write_at(&[byte], 0).unwrap();
        file.flush().unwrap();
    }
    directory.exchange("db".as_ref(), "other".as_ref()).unwrap();
    file.write_at(b"g", 0).unwrap();
    assert_eq!(machine.file_view("db").unwrap(), b"o");
    let seen = outcomes(&machine, "db");
    let expected: BTreeSet<_> = ["f", "g", "o"].map(|text| Some(text.into())).into();
    assert_eq!(seen, expected);
}

#[test]
fn a_flushed_file_without_a_flushed_name_is_gone() {
    let machine = Machine::new(1);
    let file = open(&root(&machine.process()), "db");
    file.write_at(b"x", 0).unwrap();
    file.flush().unwrap();
    assert_eq!(machine.power_loss(&mut Nothing).file_view("db"), None);
    assert_eq!(machine.power_loss(&mut Everything).file_view("db").unwrap(), b"x");
}

#[test]
fn an_unflushed_unlink_may_be_undone_whole() {
    let (machine, directory, file) = with_file(5000);
    drop(file);
    directory.unlink("db".as_ref()).unwrap();
    assert_eq!(machine.file_view("db"), None);
    assert_eq!(machine.power_loss(&mut Nothing).file_view("db").unwrap(), vec![0xdd; 5000]);
    directory.flush().unwrap();
    assert_eq!(machine.power_loss(&mut Nothing).file_view("db"), None);
}

#[test]
fn an_unlinked_file_lives_until_its_last_descriptor_is_closed() {
    let (machine, directory, file) = with_file(0);
    let stock = machine.open_stock("db").unwrap();
    directory.unlink("db".as_ref()).unwrap();
    directory.flush().unwrap();
    file.write_at(b"still here", 0).unwrap();
    assert_eq!(file.metadata().unwrap().links, 0);
    drop(file);
    assert_eq!(stock.read_all(), b"still here");
    assert!(open(&directory, "db").id().inode != stock.inode());
}

#[test]
fn directories_survive_independently() {
    let machine = Machine::new(1);
    let process = machine.process();
    let top = root(&process);
    top.create_directory("inner".as_ref()).unwrap();
    let inner = dash_storage::Storage::open_directory(&process, "/inner".as_ref()).unwrap();
    open(&inner, "db");
    inner.flush().unwrap();
    assert_eq!(machine.power_loss(&mut Nothing).file_view("inner/db"), None);
    top.flush().unwrap();
    open(&inner, "late");
    open(&top, "later");
    let mut all = Enumerate::new(10);
    let mut seen = BTreeSet::new();
    while all.advance() {
        let left = machine.power_loss(&mut all);
        assert!(left.file_view("inner/db").is_some());
        seen.insert((left.file_view("inner/late").is_some(), left.file_view("later").is_some()));
    }
    assert_eq!(seen.len(), 4);
}

#[test]
fn a_handle_follows_its_directory() {
    let machine = Machine::new(1);
    let process = machine.process();
    let top = root(&process);
    top.create_directory("old".as_ref()).unwrap();
    let inner = dash_storage::Storage::open_directory(&process, "old".as_ref()).unwrap();
    top.rename("old".as_ref(), "new".as_ref()).unwrap();
    open(&inner, "db").write_at(b"x", 0).unwrap();
    assert_eq!(machine.file_view("/new/db").unwrap(), b"x");
}

#[test]
fn inode_numbers_are_used_again_only_if_told_so() {
    let machine = Machine::new(1);
    let directory = root(&machine.process());
    let number = |name| {
        let number = open(&directory, name).id().inode;
        directory.unlink(OsStr::new(name)).unwrap();
        number
    };
    assert_ne!(number("a"), number("b"));
    machine.set_inode_reuse(true);
    assert_eq!(number("a"), number("b"));
    let held = directory.open("c".as_ref(), OpenMode::CreateNew { permissions: 0o600 }).unwrap();
    directory.unlink("c".as_ref()).unwrap();
    assert_ne!(number("d"), held.id().inode);
}
