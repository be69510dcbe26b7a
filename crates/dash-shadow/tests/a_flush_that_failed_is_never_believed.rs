//! F3, F4: a flush that failed leaves pages clean in the cache and lost on the device. A shadow
//! that was being mended then, and an intent that was being widened, look right to whoever comes
//! next, and are not.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use super::common::sim::{start, tiny};
use super::common::{Content, PAGE, changes, commit, read, write};
use dash_shadow::{Connection, LockLevel, OpenOptions, Tuning};
use dash_simulated::{
    Effect, Everything, Fault, Machine, Nothing, OperationKind, Question, Random, Survivors,
};
use dash_storage::{Directory, File, OpenMode, Storage};

/// EIO, and the pages are clean.
const LOST: Effect = Effect::LostFlush(5);
/// A page in the middle, which no commit here changes.
const MIDDLE: usize = 24;
/// So many pages are compared at once: if all of them are in the page list, nothing has to be
/// mended.
const COMPARED: usize = 8;

fn base() -> Content {
    (1..=48).collect()
}

/// One page of one file, and nothing else that was not flushed.
struct OnlyPage(u64, usize);
impl Survivors for OnlyPage {
    fn choose(&mut self, question: Question, _: usize, newest: usize) -> usize {
        let page = (self.1 * PAGE) as u64;
        match question {
            Question::Unit { inode, offset } if inode == self.0 && offset == page => newest,
            _ => 0,
        }
    }
}

fn inode(machine: &Machine, name: &str) -> u64 {
    let root = machine.process().open_directory(Path::new("/")).unwrap();
    root.metadata(name.as_ref()).unwrap().unwrap().id.inode
}

/// A database at rest on whose shadow a commit was cut off: page `MIDDLE` of the shadow is another.
fn cut_in_a_commit() -> Machine {
    let machine = Machine::new(1);
    let (_p, mut a) = start(&machine, &tiny());
    let mut content = base();
    for first in 1..5 {
        content[0] = first;
        commit(&mut a, &content).unwrap();
    }
    content[0] = 9;
    content[MIDDLE] = 99;
    write(&mut a, &content).unwrap();
    a.prepare(None).unwrap();
    machine.power_loss(&mut OnlyPage(inode(&machine, "app.db-shadow"), MIDDLE))
}

/// F3: the flush of a mended shadow fails; who comes next must mend all of it again.
#[test]
pub(crate) fn f3_a_shadow_that_was_being_mended() {
    for lost in 0..6 {
        for killed in [false, true] {
            let machine = cut_in_a_commit();
            let (mending, mut b) = start(&machine, &tiny());
            let mut content = read(&mut b).unwrap();
            assert_eq!((content[0], content[MIDDLE]), (4, base()[MIDDLE]));
            machine.fail(Fault::new(LOST).on(OperationKind::Flush).after(lost));
            content[0] = 10;
            let begun = b.lock(LockLevel::Shared).and_then(|()| b.lock(LockLevel::Reserved));
            let failed = begun.and_then(|()| b.lock(LockLevel::Exclusive)).is_err();
            machine.stop_failing();
            if killed {
                machine.kill(&mending);
            }
            drop(b.unlock(LockLevel::None));
            let mut b = if killed { start(&machine, &tiny()).1 } else { b };
            commit(&mut b, &content).unwrap();
            for seed in 0..8 {
                let after = match seed {
                    0 => machine.power_loss(&mut Nothing),
                    _ => machine.power_loss(&mut Random::new(seed)),
                };
                let found = read(&mut start(&after, &tiny()).1).unwrap();
                assert_eq!(found, content, "flush {lost}, failed: {failed}, killed: {killed}");
            }
        }
    }
}

/// F3, a find of the explorer: an undo is cut off, and the flush that buries its commit fails. What
/// the undo had put back is right in the cache only.
#[test]
pub(crate) fn f3_a_commit_that_was_being_buried() {
    let mut buried = 0;
    for kill_at in 0..24 {
        let machine = Machine::new(1);
        let (undoing, mut a) = start(&machine, &tiny());
        let mut content = base();
        for first in 1..5 {
            content[0] = first;
            commit(&mut a, &content).unwrap();
        }
        let mut never = content.clone();
        (never[0], never[MIDDLE]) = (9, 99);
        write(&mut a, &never).unwrap();
        a.prepare(None).unwrap();
        a.flush().unwrap();
        let (victim, mut seen) = (undoing.clone(), 0);
        machine.watch(move |machine, operation| {
            if changes(operation.kind) && seen == kill_at {
                machine.kill(&victim);
            }
            seen += u64::from(changes(operation.kind));
        });
        drop(a.unlock(LockLevel::None)); // rolled back
        machine.watch(|_, _| {});
        machine.kill(&undoing);
        machine.fail(Fault::new(LOST).on(OperationKind::Flush));
        let process = machine.process();
        buried += u64::from(Connection::open(&process, Path::new("/app.db"), &tiny()).is_err());
        machine.kill(&process);
        machine.stop_failing();
        let (_p, mut b) = start(&machine, &tiny());
        let mut content = read(&mut b).unwrap();
        content[0] = 10;
        commit(&mut b, &content).unwrap();
        for seed in 0..8 {
            let after = match seed {
                0 => machine.power_loss(&mut Nothing),
                _ => machine.power_loss(&mut Random::new(seed)),
            };
            let found = read(&mut start(&after, &tiny()).1).unwrap();
            assert_eq!(found, content, "killed at {kill_at}");
        }
    }
    assert!(buried > 2, "{buried}");
}

/// The names after so many operations on the directory, the pages of all files behind the first
/// one, and nothing else that was not flushed.
struct NamesAndPages(usize);
impl Survivors for NamesAndPages {
    fn choose(&mut self, question: Question, answers: usize, newest: usize) -> usize {
        let pages = PAGE as u64..(base().len() * PAGE) as u64;
        match question {
            Question::Operations { .. } => self.0.min(answers - 1),
            Question::Entry { .. } | Question::Inode { .. } => newest,
            Question::Length { .. } | Question::Cut { .. } => newest,
            Question::Unit { offset, .. } if pages.contains(&offset) => newest,
            Question::Unit { .. } | Question::Line { .. } => 0,
        }
    }
}

/// F13, a find of the explorer: the flush of a tail that moves fails. The undo must not use the old
/// place before the new one is durable: under the name `app.db` nothing would tell that the file is
/// ours.
#[test]
pub(crate) fn f13_a_tail_that_was_being_moved() {
    let machine = Machine::new(1);
    let (_p, mut a) = start(&machine, &tiny());
    commit(&mut a, &[1]).unwrap();
    commit(&mut a, &[2]).unwrap();
    let content = base();
    commit(&mut a, &content).unwrap();
    let mut never = base();
    never.truncate(40);
    never[0] = 9;
    write(&mut a, &never).unwrap();
    machine.fail(Fault::new(LOST).on(OperationKind::Flush));
    a.prepare(None).unwrap_err();
    machine.watch(move |machine, operation| {
        if changes(operation.kind) {
            for operations in 0..8 {
                let after = machine.power_loss(&mut NamesAndPages(operations));
                let found = read(&mut start(&after, &tiny()).1).unwrap();
                assert_eq!(found, base(), "{operations} operations, before {operation:?}");
            }
        }
    });
    a.unlock(LockLevel::None).unwrap();
    machine.watch(|_, _| {});
    assert_eq!(read(&mut a).unwrap(), content);
}

/// F4: the flush of a widened intent fails and the writer dies: who comes next must not dirty pages
/// that only the intent in the cache covers.
#[test]
pub(crate) fn f4_an_intent_that_was_being_widened() {
    let machine = Machine::new(1);
    let (_p, mut a) = start(&machine, &tiny());
    let mut content = base();
    for first in 1..5 {
        content[..COMPARED].fill(first);
        commit(&mut a, &content).unwrap();
    }
    a.close().unwrap(); // its intent is narrow now
    let machine = machine.power_loss(&mut Everything);
    // Widened, not durably, and killed at once.
    let on_disk = machine.file_view("app.db-shadow").unwrap();
    let (killed, mut b) = start(&machine, &tiny());
    let mut never = content.clone();
    (never[0], never[MIDDLE]) = (9, 99);
    write(&mut b, &never).unwrap();
    machine.fail(Fault::new(LOST).on(OperationKind::Flush));
    let victim = killed.clone();
    let mut flushed = false;
    machine.watch(move |machine, operation| {
        if flushed {
            machine.kill(&victim);
        }
        flushed |= operation.kind == OperationKind::Flush;
    });
    b.prepare(None).unwrap_err();
    machine.watch(|_, _| {});
    machine.kill(&killed);
    machine.stop_failing();
    drop(b);
    // Its page 1 is clean, too, and dropped from the cache: the fence in it is gone.
    machine.open_stock("app.db-shadow").unwrap().write_at(&on_disk[..PAGE], 0).unwrap();
    // The same transaction again, cut off when its page is on the disk.
    // What it mends stays under the wide intent.
    let tuning = Tuning { intent_all: 1 << 20, ..Tuning::tiny() };
    let (_q, mut c) = start(&machine, &OpenOptions { tuning, ..OpenOptions::default() });
    write(&mut c, &never).unwrap();
    c.prepare(None).unwrap();
    let shadow = inode(&machine, "app.db-shadow");
    let machine = machine.power_loss(&mut OnlyPage(shadow, MIDDLE));
    let (r, mut d) = start(&machine, &tiny());
    assert_eq!(read(&mut d).unwrap(), content);
    let root = r.open_directory(Path::new("/")).unwrap();
    let mut page = [0; PAGE];
    let file = root.open("app.db-shadow".as_ref(), OpenMode::Read).unwrap();
    file.read_at(&mut page, (MIDDLE * PAGE) as u64).unwrap();
    assert_eq!(page[0], 99, "the story is not the one that is to be told");
    for first in 11..14 {
        content[0] = first;
        commit(&mut d, &content).unwrap();
        assert_eq!(read(&mut d).unwrap(), content);
    }
}
