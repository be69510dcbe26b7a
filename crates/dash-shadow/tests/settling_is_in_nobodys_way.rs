//! FT8: settling held the write lock while it copied and flushed. Now it gives
//! way, and others write while it flushes. Whatever comes in between, at whatever moment, what is
//! committed is what is read, and what survives.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::channel;

use super::common::sim::{start, tiny};
use super::common::{Content, PAGE, changes, commit, read, value_of, write};
use dash_shadow::{Connection, Error, LockLevel, Moment, OpenOptions};
use dash_simulated::{
    Effect, Fault, Machine, Nothing, OperationKind, Question, Random, Simulated, Survivors,
};

type Other = Connection<Simulated>;

/// More pages than are copied in one piece; each commit changes all of them.
const PAGES: u8 = 200;

fn content(first: u8) -> Content {
    (0..PAGES).map(|page| page ^ first).collect()
}

/// A machine on which a connection has just made a large commit, and that connection. `grown`: into
/// a file that the other copy is shorter than.
fn after_a_large_commit(grown: bool, options: &OpenOptions) -> (Machine, Simulated, Other) {
    let machine = Machine::new(1);
    let (process, mut a) = start(&machine, options);
    commit(&mut a, &[1, 2]).unwrap();
    commit(&mut a, &[1, 3]).unwrap();
    if !grown {
        commit(&mut a, &content(1)).unwrap();
        commit(&mut a, &content(2)).unwrap();
    }
    commit(&mut a, &content(3)).unwrap();
    (machine, process, a)
}

/// A machine on which the first commit of a session was a large one: no name fence stands yet.
fn after_a_first_commit() -> (Machine, Simulated, Other) {
    let machine = Machine::new(1);
    let (first, mut a) = start(&machine, &tiny());
    commit(&mut a, &content(2)).unwrap();
    a.close().unwrap();
    machine.kill(&first);
    let (process, mut a) = start(&machine, &tiny());
    commit(&mut a, &content(3)).unwrap();
    (machine, process, a)
}

/// What anybody reads, and whatever a power loss leaves.
fn is(machine: &Machine, expected: &Content, story: &str) {
    let (_p, mut reader) = start(machine, &tiny());
    assert_eq!(read(&mut reader).unwrap(), *expected, "{story}");
    survives(machine, &[expected], story);
}

fn survives(machine: &Machine, allowed: &[&Content], story: &str) {
    for seed in 0..12 {
        let after = match seed {
            0 => machine.power_loss(&mut Nothing),
            _ => machine.power_loss(&mut Random::new(seed)),
        };
        let (_p, mut reader) = start(&after, &tiny());
        let found = read(&mut reader).unwrap();
        assert!(allowed.contains(&&found), "{story}, fate {seed}: {found:?}");
    }
}

/// What another connection does while the shadow is settled; the content that it leaves, if it came
/// to that.
type Act = fn(&mut Other, &Content) -> Option<Content>;

fn small(old: &Content) -> Content {
    let mut new = old.clone();
    (new[0], new[7]) = (250, 251);
    new
}

fn commits(other: &mut Other, old: &Content) -> Option<Content> {
    match commit(other, &small(old)) {
        Ok(()) => Some(small(old)),
        Err(Error::Busy) => None,
        Err(error) => panic!("{error}"),
    }
}

fn rolls_back(other: &mut Other, old: &Content) -> Option<Content> {
    let begun = write(other, &small(old)).and_then(|()| other.prepare(None));
    assert!(matches!(begun, Ok(()) | Err(Error::Busy)));
    other.unlock(LockLevel::None).unwrap();
    None
}

fn only_locks(other: &mut Other, _old: &Content) -> Option<Content> {
    other.lock(LockLevel::Reserved).unwrap();
    let locked = other.lock(LockLevel::Exclusive);
    assert!(matches!(locked, Ok(()) | Err(Error::Busy)));
    other.unlock(LockLevel::None).unwrap();
    None
}

/// Settles with `act` at one moment, then goes on; whether it came to that moment.
fn at_moment(moment: usize, grown: bool, options: &OpenOptions, name: &str, act: Act) -> bool {
    let story = format!("{name} at moment {moment}, grown: {grown}");
    let (machine, _p, mut a) = after_a_large_commit(grown, options);
    let (_q, mut other) = start(&machine, options);
    let (met, now) = (Cell::new(0), Cell::new(None));
    a.settle_telling(1, &mut |at| {
        if met.replace(met.get() + 1) == moment {
            let held = at == Moment::Copying;
            let left = act(&mut other, &content(3));
            assert!(!held || left.is_none(), "{story}: it wrote while the shadow was held");
            now.set(Some(left));
        }
    })
    .unwrap();
    let Some(left) = now.into_inner() else { return false };
    let mut newest = left.unwrap_or_else(|| content(3));
    is(&machine, &newest, &story);
    // Whatever was left of it, the next ones write on it: one cut off by a power loss, one
    // committed.
    newest[9] = 77;
    let before = read(&mut other).unwrap();
    write(&mut other, &newest).unwrap();
    other.prepare(None).unwrap();
    survives(&machine, &[&before, &newest], &format!("{story}, in the next commit"));
    other.flush().unwrap();
    other.publish().unwrap();
    other.unlock(LockLevel::None).unwrap();
    is(&machine, &newest, &format!("{story}, after the next commit"));
    newest[11] = 78;
    commit(&mut other, &newest).unwrap();
    is(&machine, &newest, &format!("{story}, after the one after that"));
    other.close().unwrap();
    a.close().unwrap();
    let plain = machine.file_view("/app.db").unwrap();
    assert_eq!(plain[PAGE * 10 - 1], 77, "{story}: at rest");
    true
}

fn at_every_moment(name: &str, act: Act) {
    for options in [tiny(), OpenOptions::default()] {
        for grown in [false, true] {
            let moments = (0..).take_while(|&at| at_moment(at, grown, &options, name, act)).count();
            assert!(moments > 2, "{moments} moments");
        }
    }
}

#[test]
pub(crate) fn who_commits_meanwhile() {
    at_every_moment("a commit", commits);
}

#[test]
fn who_rolls_back_meanwhile() {
    at_every_moment("a rollback", rolls_back);
}

#[test]
fn who_only_locks_meanwhile() {
    at_every_moment("a lock", only_locks);
}

/// Runs `first`, and `second` before its call number `at`; whether it came to that.
fn before_call<T>(
    machine: &Machine,
    at: usize,
    first: impl FnOnce() -> T,
    second: impl FnOnce() + Send + 'static,
) -> (T, bool) {
    let (mut seen, mut second) = (0, Some(second));
    let met = Arc::new(AtomicBool::new(false));
    let meets = met.clone();
    machine.watch(move |machine, operation| {
        let counts = changes(operation.kind);
        if counts
            && seen == at
            && let Some(act) = second.take()
        {
            machine.watch(|_, _| {});
            meets.store(true, SeqCst);
            act();
        }
        seen += usize::from(counts);
    });
    let done = first();
    machine.watch(|_, _| {});
    (done, met.load(SeqCst))
}

/// Not only at the moments that settling tells of: before each call of either. The name fence of a
/// large commit was put up by both at once, and a commit failed.
#[test]
pub(crate) fn who_commits_between_any_two_calls() {
    for (fenced, settles_first) in [(false, false), (false, true), (true, false), (true, true)] {
        for at in 0.. {
            let (machine, _p, mut a) = match fenced {
                true => after_a_large_commit(true, &tiny()),
                false => after_a_first_commit(),
            };
            let (_q, mut other) = start(&machine, &tiny());
            let settles = move || {
                let settled = a.settle(1);
                assert!(matches!(settled, Ok(_) | Err(Error::Busy)), "{settled:?}");
            };
            let (sent, left) = channel();
            let commits = move || sent.send(commits(&mut other, &content(3))).unwrap();
            let ((), met) = match settles_first {
                true => before_call(&machine, at, settles, commits),
                false => before_call(&machine, at, commits, settles),
            };
            let story =
                format!("before call {at}, fenced: {fenced}, settles first: {settles_first}");
            let newest = left.try_iter().next().flatten().unwrap_or_else(|| content(3));
            is(&machine, &newest, &story);
            if !met {
                assert!(at > 3, "{at} calls");
                break;
            }
        }
    }
}

/// It is declared settled only when it is durable: the next commit does not list those pages.
#[test]
pub(crate) fn what_is_settled_is_durable() {
    for (grown, options) in [false, true].map(|grown| (grown, OpenOptions::default())) {
        let (machine, _p, mut a) = after_a_large_commit(grown, &options);
        assert!(a.settle(1).unwrap());
        // In places whose intent is durable already, or a flush of theirs would do.
        let mut new = content(3);
        new[0] = 250;
        write(&mut a, &new).unwrap();
        a.prepare(None).unwrap();
        for seed in 0..200 {
            let after = machine.power_loss(&mut Random::new(seed));
            let found = read(&mut start(&after, &options).1).unwrap();
            assert!(found == content(3) || found == new, "fate {seed}: {found:?}");
        }
    }
}

/// A stock process that has had the shadow open since long ago waits, or reads a whole state: it
/// never meets a mark of ours or a mix.
#[test]
fn who_reads_the_shadow_as_stock_sqlite_does() {
    for grown in [false, true] {
        let (machine, _p, mut a) = after_a_large_commit(grown, &tiny());
        let stock = machine.open_stock("/app.db-shadow").unwrap();
        let (held, read) = (Cell::new(0), Cell::new(0));
        let settled = a.settle_telling(1, &mut |at| {
            let got = stock.try_lock_shared();
            assert_eq!(got, at != Moment::Copying, "{at:?}");
            if !got {
                held.set(held.get() + 1);
                return;
            }
            let bytes = stock.read_all();
            assert!(bytes[19] <= 2, "{at:?}: fenced");
            let pages = u32::from_be_bytes(bytes[28..32].try_into().unwrap()) as usize;
            let page = |number: usize| &bytes[(number - 1) * PAGE..number * PAGE];
            let seen: Content = (1..=pages)
                .map(|number| value_of(number, page(number), false).expect("a torn page"))
                .collect();
            let old = if grown { vec![1, 3] } else { content(2) };
            assert!(seen == old || seen == content(3), "{at:?}: {seen:?}");
            read.set(read.get() + 1);
            stock.unlock();
        });
        assert!(settled.unwrap() && held.get() > 0 && read.get() > 1);
    }
}

/// Whoever settles is killed before any call; or one of its flushes fails.
#[test]
fn who_dies_of_it_or_fails_leaves_nothing_that_anybody_trusts() {
    for grown in [false, true] {
        for at in 0.. {
            let (machine, process, mut a) = after_a_large_commit(grown, &tiny());
            let (_q, mut other) = start(&machine, &tiny());
            let (mut seen, victim) = (0, process.clone());
            machine.watch(move |machine, operation| {
                if changes(operation.kind) && seen == at {
                    machine.kill(&victim);
                }
                seen += usize::from(changes(operation.kind));
            });
            let settled = a.settle(1).is_ok();
            machine.watch(|_, _| {});
            machine.kill(&process);
            drop(a);
            let story = format!("killed before call {at}, grown: {grown}");
            survives(&machine, &[&content(3)], &story);
            let new = small(&content(3));
            commit(&mut other, &new).unwrap();
            is(&machine, &new, &story);
            if settled {
                assert!(at > 3);
                break;
            }
        }
        for flush in 0..3 {
            let (machine, _p, mut a) = after_a_large_commit(grown, &tiny());
            machine.fail(Fault::new(Effect::LostFlush(5)).on(OperationKind::Flush).after(flush));
            drop(a.settle(1));
            machine.stop_failing();
            let new = small(&content(3));
            commit(&mut a, &new).unwrap();
            is(&machine, &new, &format!("flush {flush} failed, grown: {grown}"));
        }
    }
}

/// The last one closes beside what a dead settler left: the copy is whole at rest.
#[test]
fn who_closes_after_it() {
    for grown in [false, true] {
        for moment in 0..6 {
            let (machine, process, mut a) = after_a_large_commit(grown, &tiny());
            let (_q, other) = start(&machine, &tiny());
            let met = Cell::new(0);
            drop(a.settle_telling(1, &mut |_| {
                if met.replace(met.get() + 1) == moment {
                    machine.kill(&process);
                }
            }));
            machine.kill(&process);
            drop(a);
            other.close().unwrap();
            is(&machine, &content(3), &format!("closed after moment {moment}, grown: {grown}"));
        }
    }
}

/// The names after so many operations on the directory, pages of all files, and no tail that was
/// not flushed.
struct NamesAndPages(usize);
impl Survivors for NamesAndPages {
    fn choose(&mut self, question: Question, answers: usize, newest: usize) -> usize {
        let pages = PAGE as u64..u64::from(PAGES) * PAGE as u64;
        match question {
            Question::Operations { .. } => self.0.min(answers - 1),
            Question::Entry { .. } | Question::Inode { .. } => newest,
            Question::Length { .. } | Question::Cut { .. } => newest,
            Question::Unit { offset, .. } if pages.contains(&offset) => newest,
            Question::Unit { .. } | Question::Line { .. } => 0,
        }
    }
}

/// F13: the tail of the shadow has moved, not durably, when another one takes it over.
#[test]
pub(crate) fn a_tail_that_was_being_moved() {
    let (machine, _p, mut a) = after_a_large_commit(true, &tiny());
    let (_q, mut other) = start(&machine, &tiny());
    let mut new = content(3);
    new[0] = 99;
    new.truncate(usize::from(PAGES) - 20);
    let met = Cell::new(false);
    a.settle_telling(1, &mut |at| {
        if at != Moment::Grown || met.replace(true) {
            return;
        }
        let watched = new.clone();
        machine.watch(move |machine, operation| {
            if changes(operation.kind) {
                for operations in 0..8 {
                    let after = machine.power_loss(&mut NamesAndPages(operations));
                    let found = read(&mut start(&after, &tiny()).1).unwrap();
                    let story = format!("{operations} operations, before {operation:?}");
                    assert!(found == content(3) || found == watched, "{story}: {found:?}");
                }
            }
        });
        commit(&mut other, &new).unwrap();
        machine.watch(|_, _| {});
    })
    .unwrap();
    assert!(met.get(), "nothing had to grow");
    is(&machine, &new, "taken over");
}
