//! Steps, cuts, the journal and watchers; and a whole exploration in small.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex};

use dash_storage::{Directory as _, File as _, OpenMode, Storage as _};

use super::{root, sector};
use crate::{Enumerate, Everything, Machine, OperationKind};

/// Replaces `db` by way of a temporary file; `careful` flushes before the rename.
fn replace(machine: &Machine, byte: u8, careful: bool) -> io::Result<()> {
    let directory = machine.process().open_directory("/".as_ref())?;
    let new = directory.open("new".as_ref(), OpenMode::Create { permissions: 0o644 })?;
    new.set_len(0)?;
    new.write_at(&[byte; 1024], 0)?;
    if careful {
        new.flush()?;
    }
    directory.rename("new".as_ref(), "db".as_ref())?;
    directory.flush()
}

/// Everything that `db` may be after a cut anywhere in the second of two replacements, and how
/// many states there were.
fn explore(careful: bool) -> (BTreeSet<Option<Vec<u8>>>, usize) {
    let run = |cut: u64| {
        let machine = Machine::new(1);
        replace(&machine, b'1', true).unwrap();
        let start = machine.steps();
        machine.cut_at(cut);
        let done = replace(&machine, b'2', careful).is_ok();
        (machine, start, done)
    };
    let (whole, start, done) = run(u64::MAX);
    assert!(done);
    let (mut seen, mut states) = (BTreeSet::new(), BTreeSet::new());
    for cut in whole.crash_points().into_iter().filter(|&cut| cut >= start) {
        let (machine, _, done) = run(cut);
        assert_eq!(done, cut == whole.steps());
        let mut all = Enumerate::new(10_000);
        while all.advance() {
            let left = machine.power_loss(&mut all);
            states.insert(left.state_hash());
            seen.insert(left.file_view("db"));
        }
        assert!(all.is_complete());
    }
    (seen, states.len())
}

#[test]
fn a_careful_program_survives_every_cut_and_a_careless_one_is_caught() {
    let (careful, states) = explore(true);
    let good: BTreeSet<_> = [Some(vec![b'1'; 1024]), Some(vec![b'2'; 1024])].into();
    assert_eq!(careful, good);
    assert!(states > 5);
    let (careless, _) = explore(false);
    assert!(careless.contains(&Some(Vec::new())));
    assert!(!careless.is_subset(&good));
}

#[test]
fn after_the_cut_everything_fails_and_nothing_changes() {
    let machine = Machine::new(1);
    let process = machine.process();
    let directory = root(&process);
    let file = super::open(&directory, "db");
    file.write_at(&sector(b'a'), 0).unwrap();
    machine.cut_at(machine.steps() + 1);
    file.write_at(&sector(b'b'), 0).unwrap();
    assert!(!machine.is_on());
    let (hash, steps) = (machine.state_hash(), machine.steps());
    assert!(file.write_at(&sector(b'c'), 0).is_err() && file.flush().is_err());
    assert!(directory.unlink("db".as_ref()).is_err() && file.metadata().is_err());
    assert!(machine.open_stock("db").unwrap().write_at(b"x", 0).is_err());
    assert_eq!((machine.state_hash(), machine.steps()), (hash, steps));
    assert!(machine.power_loss(&mut Everything).is_on());
}

#[test]
fn cutting_between_crash_points_makes_no_difference() {
    let states = |cuts: &mut dyn Iterator<Item = u64>| {
        let mut states = BTreeSet::new();
        for cut in cuts {
            let machine = Machine::new(1);
            machine.cut_at(cut);
            let _ = replace(&machine, b'1', true);
            states.insert(machine.state_hash());
        }
        states
    };
    let machine = Machine::new(1);
    replace(&machine, b'1', true).unwrap();
    let points = machine.crash_points();
    assert!((points.len() as u64) < machine.steps() + 1);
    assert_eq!(states(&mut points.into_iter()), states(&mut (0..=machine.steps())));
}

#[test]
fn the_journal_is_a_line_an_operation() {
    let machine = Machine::new(1);
    replace(&machine, b'1', true).unwrap();
    root(&machine.process()).unlink("none".as_ref()).unwrap_err();
    let journal = machine.journal();
    assert_eq!(journal.entries.len() as u64, machine.steps());
    let text = journal.to_string();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    assert_eq!(lines[1], "1 process 1: open inode 1 new");
    assert_eq!(lines[3], "3 process 1: write inode 2 0..1024");
    assert_eq!(lines[5], "5 process 1: rename inode 1 new db");
    assert!(lines[8].starts_with("8 process 2: unlink inode 1 none failed: No such file"));
}

#[test]
fn a_watcher_sees_the_machine_before_every_operation() {
    let machine = Machine::new(1);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let inside = Arc::clone(&seen);
    machine.watch(move |machine, operation| {
        let left = machine.power_loss(&mut Everything);
        inside.lock().unwrap().push((operation.kind, left.file_view("new").is_some()));
    });
    replace(&machine, b'1', true).unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len() as u64, machine.steps());
    assert!(seen.contains(&(OperationKind::Open, false)));
    assert!(seen.contains(&(OperationKind::Rename, true)));
}
