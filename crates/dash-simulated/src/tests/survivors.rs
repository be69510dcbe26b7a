//! Who decides: nothing, everything, chance, all combinations, and repetition.

use std::collections::BTreeSet;

use dash_storage::{Directory as _, File as _, Storage as _};

use super::{open, root, sector, with_file};
use crate::{Enumerate, Everything, Machine, Nothing, Random, Replay};

/// Three pending sectors, a length, and two names.
fn undecided() -> Machine {
    let (machine, directory, file) = with_file(1024);
    file.write_at(&[b'a'; 1536], 0).unwrap();
    file.write_at(&sector(b'b'), 0).unwrap();
    open(&directory, "new").write_at(b"n", 0).unwrap();
    machine
}

#[test]
fn nothing_and_everything_are_the_two_ends() {
    let machine = undecided();
    let (low, high) = (machine.power_loss(&mut Nothing), machine.power_loss(&mut Everything));
    assert_eq!(low.file_view("db").unwrap(), [0xdd; 1024]);
    assert_eq!(low.file_view("new"), None);
    for name in ["db", "new"] {
        assert_eq!(high.file_view(name), machine.file_view(name));
    }
}

#[test]
fn enumerate_walks_every_combination_once() {
    let machine = undecided();
    let mut all = Enumerate::new(1000);
    let (mut hashes, mut answers) = (BTreeSet::new(), BTreeSet::new());
    while all.advance() {
        let left = machine.power_loss(&mut all);
        assert!(answers.insert(left.answers().to_vec()));
        hashes.insert(left.state_hash());
    }
    // `db` has 3 · 2 values at its old length and twice as many at the new one; `new` is absent,
    // empty, or has one of two bytes.
    assert_eq!(machine.survivor_count(), (6 + 12) * (1 + 3));
    assert_eq!((all.walked(), all.is_complete()), (72, true));
    assert_eq!(hashes.len(), 72);
}

#[test]
fn enumerate_stops_at_its_limit_and_says_so() {
    let machine = undecided();
    let mut some = Enumerate::new(10);
    while some.advance() {
        machine.power_loss(&mut some);
    }
    assert_eq!((some.walked(), some.is_complete()), (10, false));
}

#[test]
fn random_repeats_with_its_seed_and_reaches_everything() {
    let machine = undecided();
    let run = |seed, losses| {
        let mut random = Random::new(seed);
        let mut lose = || machine.power_loss(&mut random).state_hash();
        (0..losses).map(|_| lose()).collect::<Vec<_>>()
    };
    assert_eq!(run(7, 100), run(7, 100));
    assert_ne!(run(7, 100), run(8, 100));
    let seen: BTreeSet<_> = run(7, 6000).into_iter().collect();
    assert_eq!(seen.len(), 72);
}

#[test]
fn replay_makes_the_same_machine_again() {
    let machine = undecided();
    let mut random = Random::new(3);
    for _ in 0..50 {
        let left = machine.power_loss(&mut random);
        let again = machine.power_loss(&mut Replay::new(left.answers().to_vec()));
        assert_eq!(again.state_hash(), left.state_hash());
    }
}

#[test]
fn power_can_be_lost_again_and_again() {
    let machine = undecided();
    let second = machine.power_loss(&mut Everything);
    assert_eq!(second.survivor_count(), 1);
    let file = open(&root(&second.process()), "db");
    file.write_at(&sector(b'z'), 512).unwrap();
    assert_eq!(second.survivor_count(), 2);
    assert_eq!(second.power_loss(&mut Nothing).file_view("db"), machine.file_view("db"));
    let (first, after) = (machine.process().random(), second.process().random());
    assert!(first != 0 && after != 0);
}

#[test]
fn the_state_hash_tells_names_contents_and_possible_survivors_apart() {
    let (machine, directory, file) = with_file(512);
    let mut seen = BTreeSet::new();
    assert!(seen.insert(machine.state_hash()));
    let mut differs = |what: &str| assert!(seen.insert(machine.state_hash()), "{what}");
    file.write_at(&sector(b'a'), 0).unwrap();
    differs("a pending sector");
    file.write_at(&sector(b'b'), 0).unwrap();
    differs("another value");
    file.flush().unwrap();
    differs("durable");
    directory.rename("db".as_ref(), "db2".as_ref()).unwrap();
    differs("a name");
    directory.flush().unwrap();
    differs("a durable name");
    let before = machine.state_hash();
    file.metadata().unwrap();
    file.try_lock(0..1, dash_storage::LockKind::Shared).unwrap();
    assert_eq!(machine.state_hash(), before);
}
