//! A12, A16, against SHADOW-12: a commit that was decided against never
//! comes back, neither whole after its undo was cut off, nor in parts after its undo failed.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::common::sim::{start, tiny};
use super::common::{Content, PAGE, changes, commit, page, read, read_locked, write};
use dash_shadow::{Connection, LockLevel, OpenOptions};
use dash_simulated::{
    Effect, Everything, Fault, Machine, Nothing, OperationKind, Question, Random, Simulated,
    Survivors,
};
use dash_storage::{Directory, File, OpenMode, Storage};

/// A machine on which a transaction over `base` was flushed, rolled back, and its process killed
/// before step `kill_at` of the undo. `None` if the undo has fewer steps.
fn killed_in_the_undo(
    (base, never): &(Vec<Content>, Content),
    kill_at: usize,
    other: bool,
) -> Option<(Machine, Option<Connection<Simulated>>)> {
    let machine = Machine::new(1);
    let (killed, mut victim) = start(&machine, &tiny());
    let other = other.then(|| start(&machine, &tiny()).1);
    for content in base {
        commit(&mut victim, content).unwrap();
    }
    write(&mut victim, never).unwrap();
    victim.prepare(None).unwrap();
    victim.flush().unwrap();
    let (victims, reached) = (killed.clone(), Arc::new(AtomicBool::new(false)));
    let reach = reached.clone();
    let mut seen = 0;
    machine.watch(move |machine, operation| {
        if changes(operation.kind) {
            if seen == kill_at {
                reach.store(true, Ordering::SeqCst);
                machine.kill(&victims);
            }
            seen += 1;
        }
    });
    let _ = victim.unlock(LockLevel::None);
    machine.watch(|_, _| {});
    machine.kill(&killed);
    reached.load(Ordering::SeqCst).then_some((machine, other))
}

/// All names, and of data what was flushed.
struct Names;
impl Survivors for Names {
    fn choose(&mut self, question: Question, _: usize, newest: usize) -> usize {
        if let Question::Operations { .. } = question { newest } else { 0 }
    }
}

/// Cuts the power in several ways and expects to find `decided`.
fn stays(machine: &Machine, decided: &[u8], story: &str) {
    let mut fates: Vec<Box<dyn Survivors>> =
        vec![Box::new(Nothing), Box::new(Names), Box::new(Everything)];
    fates.extend((0..10).map(|seed| Box::new(Random::new(seed)) as Box<dyn Survivors>));
    for (number, fate) in fates.iter_mut().enumerate() {
        let after = machine.power_loss(&mut **fate);
        let (_p, mut c) = start(&after, &tiny());
        assert_eq!(read(&mut c).unwrap(), decided, "{story}, fate {number}");
        let next = [100, 101, 102];
        commit(&mut c, &next).unwrap();
        assert_eq!(read(&mut c).unwrap(), next, "{story}, fate {number}");
    }
}

const STORIES: [&[&[u8]]; 3] = [&[], &[&[1, 1, 1]], &[&[1, 1, 1], &[2, 1, 1]]];

/// Each story, with what is tried then: page 1 with room for the block, for its announcement, and
/// without, before and in what is undone.
fn stories() -> impl Iterator<Item = (Vec<Content>, Content)> {
    let shapes = (0..4).flat_map(|before| (0..4).map(move |never| (before, never)));
    shapes.flat_map(|(before, never)| {
        STORIES.iter().map(move |story| {
            let base = story.iter().map(|content| {
                let mut content = content.to_vec();
                content[0] = 4 * content[0] + before;
                content
            });
            (base.collect(), vec![40 + never, 9, 9])
        })
    })
}

/// A12: others are alive; whoever begins to write decides.
#[test]
pub(crate) fn a12_what_the_next_writer_decided() {
    let mut undone = 0;
    for base in stories() {
        for kill_at in 0.. {
            let Some((machine, Some(mut b))) = killed_in_the_undo(&base, kill_at, true) else {
                break;
            };
            let begun = |b: &mut Connection<Simulated>| {
                b.lock(LockLevel::Shared).and_then(|()| b.lock(LockLevel::Reserved))
            };
            if begun(&mut b).is_err() {
                b.unlock(LockLevel::None).unwrap();
                begun(&mut b).unwrap();
            }
            let decided = read_locked(&mut b).unwrap();
            undone += usize::from(decided != base.1);
            b.unlock(LockLevel::None).unwrap();
            let story = format!("{base:?}, killed at {kill_at}");
            stays(&machine, &decided, &story);
            b.close().unwrap();
            stays(&machine, &decided, &format!("{story}, closed"));
        }
    }
    assert!(undone > 10, "{undone}");
}

/// A12: nobody is alive; whoever opens next decides, and has only read when the power goes.
#[test]
pub(crate) fn a12_what_the_next_opener_decided() {
    let mut undone = 0;
    for base in stories() {
        for kill_at in 0.. {
            let Some((machine, _)) = killed_in_the_undo(&base, kill_at, false) else {
                break;
            };
            let (_q, mut b) = start(&machine, &tiny());
            let decided = read(&mut b).unwrap();
            undone += usize::from(decided != base.1);
            let story = format!("{base:?}, killed at {kill_at}");
            stays(&machine, &decided, &story);
            b.close().unwrap();
            stays(&machine, &decided, &format!("{story}, closed"));
        }
    }
    assert!(undone > 10, "{undone}");
}

/// The names after so many operations on the directory; of what a failed flush left open, pages
/// from the third on as before the undo if `torn`.
struct Behind {
    operations: usize,
    torn: bool,
}

impl Survivors for Behind {
    fn choose(&mut self, question: Question, answers: usize, newest: usize) -> usize {
        match question {
            Question::Operations { .. } => self.operations.min(answers - 1),
            Question::Unit { offset, .. }
                if self.torn && (2 * PAGE as u64..4 * PAGE as u64).contains(&offset) =>
            {
                0
            }
            _ => newest,
        }
    }
}

/// A16: the flush of an undo fails, the shadow is given up, names on disk are behind: what is left
/// under `app.db` must not be taken for a file dash has never seen, also if its intent was torn.
#[test]
fn a16_a_shadow_that_was_given_up_is_not_the_database() {
    let machine = Machine::new(1);
    let (p, mut a) = start(&machine, &tiny());
    for i in 1..6 {
        commit(&mut a, &[i, 1, 1, 1]).unwrap();
    }
    write(&mut a, &[9, 9, 9, 9]).unwrap();
    a.prepare(None).unwrap();
    a.flush().unwrap();
    machine.fail(Fault::new(Effect::LostFlush(5)).on(OperationKind::Flush));
    let _ = a.unlock(LockLevel::None); // rolled back; the undo's flush fails
    machine.stop_failing();
    assert_eq!(read(&mut a).unwrap(), [5, 1, 1, 1]);
    for intent_torn in [false, true] {
        if intent_torn {
            let root = p.open_directory(Path::new("/")).unwrap();
            let shadow = root.open("app.db-shadow".as_ref(), OpenMode::ReadWrite).unwrap();
            let len = shadow.metadata().unwrap().len;
            shadow.write_at(&[1], len - 8192 + 600).unwrap();
        }
        for operations in 0..20 {
            for torn in [false, true] {
                let after = machine.power_loss(&mut Behind { operations, torn });
                let (_q, mut b) = start(&after, &tiny());
                let content = read(&mut b).unwrap();
                let story = format!("names {operations}, torn {torn}, intent {intent_torn}");
                assert_eq!(content, [5, 1, 1, 1], "{story}");
            }
        }
    }
}

/// Found on a real file system by the ring `fs`, where `integrity_check` said so. Under
/// locking_mode=EXCLUSIVE SQLite rolls back what it has spilled by writing what was there and
/// syncing it, and goes on with the next transaction. The block of that sync vouched for pages that
/// the next transaction had overwritten and it did not list.
#[test]
pub(crate) fn under_an_exclusive_lock_what_comes_after_a_rollback() {
    for spilled in [false, true] {
        let options = if spilled { tiny() } else { OpenOptions::default() };
        let machine = Machine::new(1);
        let (_process, mut connection) = start(&machine, &options);
        let mut content: Content = (0..12).collect();
        for place in 1..12 {
            content[place] += 20;
            commit(&mut connection, &content).unwrap();
        }
        let before = content.clone();
        write(&mut connection, &content).unwrap();
        // Rolled back: only page 1 and this one are written again, and synced.
        let place = |number: usize| (number as u64 - 1) * PAGE as u64;
        let write_page = |connection: &mut Connection<Simulated>, number: usize, value: u8| {
            connection.write(&page(number, value, 12, 100), place(number)).unwrap();
        };
        write_page(&mut connection, 3, 99);
        write_page(&mut connection, 3, before[2]);
        connection.prepare(None).unwrap();
        connection.flush().unwrap();
        let cut = Arc::new(Mutex::new(Vec::new()));
        let put = cut.clone();
        machine.watch(move |machine, operation| {
            if changes(operation.kind) {
                put.lock().unwrap().push(machine.power_loss(&mut Everything));
                for place in (0..12).map(|page| page * PAGE as u64) {
                    let mut only = Only(place..place + PAGE as u64);
                    put.lock().unwrap().push(machine.power_loss(&mut only));
                }
            }
        });
        (5..12).for_each(|number| write_page(&mut connection, number, 150));
        content[4..11].fill(150);
        connection.prepare(None).unwrap();
        connection.flush().unwrap();
        connection.publish().unwrap();
        let cut = std::mem::take(&mut *cut.lock().unwrap());
        assert!(cut.len() > 30);
        for after in cut {
            let (_process, mut connection) = start(&after, &options);
            let seen = read(&mut connection).unwrap();
            assert!(seen == before || seen == content, "spilled {spilled}: {seen:?}");
        }
    }
}

/// Of what was not flushed only a range of places survives, in any file.
struct Only(std::ops::Range<u64>);

impl Survivors for Only {
    fn choose(&mut self, question: Question, _: usize, newest: usize) -> usize {
        match question {
            Question::Unit { offset, .. } if !self.0.contains(&offset) => 0,
            _ => newest,
        }
    }
}
