//! Rule 6 without a journal: names and inodes survive one by one.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use dash_storage::{Directory as _, File as _, Storage as _};

use super::{open, root};
use crate::{Directory, Enumerate, File, Machine, Metadata, Nothing};

/// A machine with durable files `a` and `b`, which hold their names.
fn machine(metadata: Metadata) -> (Machine, Directory, [File; 2]) {
    let machine = Machine::new(1);
    machine.set_metadata(metadata);
    let directory = root(&machine.process());
    let files = ["a", "b"].map(|name| {
        let file = open(&directory, name);
        file.write_at(name.as_bytes(), 0).unwrap();
        file.flush().unwrap();
        file
    });
    directory.flush().unwrap();
    assert_eq!(machine.survivor_count(), 1);
    (machine, directory, files)
}

/// What `a`, `b` and `c` hold, for every fate: `-` for no file, `0` for an empty one.
fn outcomes(machine: &Machine) -> Vec<String> {
    let mut all = Enumerate::new(1000);
    let mut seen = BTreeSet::new();
    while all.advance() {
        let left = machine.power_loss(&mut all);
        let shown = ["a", "b", "c"].map(|name| match left.file_view(name) {
            None => '-',
            Some(bytes) => bytes.first().map_or('0', |&byte| char::from(byte)),
        });
        seen.insert(shown.into_iter().collect::<String>());
    }
    assert!(all.is_complete());
    assert_eq!(u128::from(all.walked()), machine.survivor_count());
    seen.into_iter().collect()
}

fn exchanged(metadata: Metadata) -> (Machine, Directory) {
    let (machine, directory, _) = machine(metadata);
    directory.exchange("a".as_ref(), "b".as_ref()).unwrap();
    (machine, directory)
}

#[test]
fn an_exchange_within_a_sector_is_all_or_nothing() {
    for metadata in [Metadata::Journaled, Metadata::OneSector] {
        assert_eq!(outcomes(&exchanged(metadata).0), ["ab-", "ba-"]);
    }
}

#[test]
fn an_exchange_over_two_sectors_may_be_torn_in_half() {
    let (machine, directory) = exchanged(Metadata::Apart);
    assert_eq!(outcomes(&machine), ["aa-", "ab-", "ba-", "bb-"]);
    directory.flush().unwrap();
    assert_eq!(outcomes(&machine), ["ba-"]);
    // Both names are one file's, and its count of links is what e2fsck makes of it.
    let (machine, _) = exchanged(Metadata::Apart);
    let mut all = Enumerate::new(10);
    let mut links = BTreeSet::new();
    while all.advance() {
        let left = root(&machine.power_loss(&mut all).process());
        links.insert(left.metadata(OsStr::new("a")).unwrap().unwrap().links);
    }
    assert_eq!(links, [1, 2].into());
}

#[test]
fn a_rename_over_two_sectors_may_lose_a_file() {
    let (machine, directory, _) = machine(Metadata::Apart);
    directory.rename("a".as_ref(), "c".as_ref()).unwrap();
    assert_eq!(outcomes(&machine), ["-b-", "-ba", "ab-", "aba"]);
}

#[test]
fn a_new_directory_needs_its_own_flush_and_its_parents() {
    for metadata in [Metadata::OneSector, Metadata::Apart] {
        let survives = |own: bool, parents: bool| {
            let machine = Machine::new(1);
            machine.set_metadata(metadata);
            let process = machine.process();
            let top = root(&process);
            top.create_directory("fence".as_ref()).unwrap();
            if own {
                process.open_directory("fence".as_ref()).unwrap().flush().unwrap();
            }
            if parents {
                top.flush().unwrap();
            }
            machine.power_loss(&mut Nothing).exists("fence")
        };
        assert!(survives(true, true));
        assert!(!survives(true, false) && !survives(false, true) && !survives(false, false));
    }
}

#[test]
fn a_name_whose_inode_was_never_written_is_removed() {
    let (machine, directory, _) = machine(Metadata::OneSector);
    let file = open(&directory, "c");
    directory.flush().unwrap();
    assert_eq!(outcomes(&machine), ["ab-", "ab0"]);
    file.flush().unwrap();
    assert_eq!(outcomes(&machine), ["ab0"]);
    let machine = Machine::new(1);
    open(&root(&machine.process()), "c");
    machine.write_back();
    assert_eq!(outcomes(&machine), ["--0"]);
}

#[test]
fn a_removed_file_may_be_gone_before_its_name() {
    let (machine, directory, files) = machine(Metadata::OneSector);
    drop(files);
    directory.unlink("a".as_ref()).unwrap();
    assert_eq!(outcomes(&machine), ["-b-", "ab-"]);
    // Three ways: the name is gone, or it is there and its inode is not, or both are.
    assert_eq!(machine.survivor_count(), 3);
}

#[test]
fn what_may_survive_tells_machines_apart() {
    let (machine, directory, _) = machine(Metadata::Apart);
    let mut seen = BTreeSet::from([machine.state_hash()]);
    directory.create_directory("c".as_ref()).unwrap();
    directory.flush().unwrap();
    assert!(seen.insert(machine.state_hash()), "a name without a durable inode");
    machine.process().open_directory("c".as_ref()).unwrap().flush().unwrap();
    assert!(seen.insert(machine.state_hash()), "a durable inode");
}
