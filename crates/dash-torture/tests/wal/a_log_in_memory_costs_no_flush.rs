//! A log in byte-addressable memory: a commit is stores, a write-back and a fence (LOG-13). Lines
//! that were stored and not fenced tear in words, and may be in memory long before or never.

use std::sync::{Arc, Mutex};

use dash_simulated::{Effect, Fault, OperationKind};

use crate::common::{Fate, Tale};

/// How often each of these was called since the journal had so many entries.
fn calls(tale: &Tale, from: usize, kinds: &[OperationKind]) -> usize {
    let entries = tale.machine.journal().entries;
    let of = entries[from..].iter().filter(|entry| kinds.contains(&entry.operation.kind));
    of.count()
}

/// So many commits, and of nothing a flush. The records lack the headers of their frames: what
/// recovery makes of them is what SQLite had written (WAL-31).
#[test]
pub(crate) fn by_one_fence_each() {
    use OperationKind::{Fence, Flush, FlushDirectory, WriteDurable};
    let (tale, db) = Tale::begun_in_memory();
    let from = tale.machine.journal().entries.len();
    const COMMITS: usize = 20;
    for _ in 0..COMMITS {
        db.put();
    }
    let told = [&[Flush, FlushDirectory, WriteDurable][..], &[Fence]];
    assert_eq!(told.map(|kinds| calls(&tale, from, kinds)), [0, COMMITS]);
    tale.survives_all();
}

/// On a device nothing is ever mapped to be stored to.
#[test]
pub(crate) fn and_nothing_is_stored_on_a_device() {
    use OperationKind::{Fence, Flush, Store, WriteBack};
    let (tale, db) = Tale::begun();
    let from = tale.machine.journal().entries.len();
    for _ in 0..5 {
        db.put();
    }
    assert_eq!(calls(&tale, from, &[Flush]), 5);
    db.close();
    assert_eq!(calls(&tale, 0, &[Store, WriteBack, Fence]), 0);
}

/// Whatever is lost at any step: from the first opening on, over wraps, growth, checkpoints and the
/// end.
#[test]
pub(crate) fn whatever_is_lost_at_any_step() {
    let tale = Tale::in_memory();
    tale.watch();
    let db = tale.open();
    for _ in 0..4 {
        db.put();
    }
    db.restart();
    for _ in 0..3 {
        db.put();
    }
    db.close();
    tale.done();
    tale.survives_all();
}

/// And where the ring goes round, and grows.
#[test]
pub(crate) fn also_round_and_round() {
    let (tale, db) = Tale::begun_in_memory();
    for round in 0..60 {
        db.put();
        if round % 10 == 9 {
            tale.survives_all();
        }
    }
    db.restart();
    for _ in 0..20 {
        db.put();
    }
    tale.survives_all();
}

/// Each process makes durable what it stored itself, one after the other and after deaths (LOG-2).
#[test]
pub(crate) fn in_two_processes() {
    let (tale, first) = Tale::begun_in_memory();
    let second = tale.open();
    for _ in 0..4 {
        first.put();
        tale.survives_all();
        second.put();
        tale.survives_all();
    }
    first.kill();
    second.put();
    tale.survives_all();
    let third = tale.open();
    third.put();
    tale.survives_all();
}

/// Also where a commit is only to be written (`dash_durability=none`): nobody else can make durable
/// what one has stored, and to do it oneself costs a fence (WAL-28).
#[test]
pub(crate) fn also_what_is_only_to_be_written() {
    let (tale, first) = Tale::begun_in_memory();
    first.ok("PRAGMA dash_durability=none");
    first.put();
    let second = tale.open();
    // What follows is promised to survive, and so is all before it.
    second.put();
    tale.survives_all();
    second.put();
    tale.survives_all();
}

/// A process dies at any step of a commit; the others go on.
#[test]
pub(crate) fn after_the_leader_died_at_any_step() {
    for after in [false, true] {
        for step in 0.. {
            let (tale, first) = Tale::begun_in_memory();
            let second = tale.open();
            let mut left = step;
            let when = move |operation: &dash_simulated::Operation| {
                use OperationKind::{Fence, Store, WriteBack};
                let is_one = matches!(operation.kind, Store | WriteBack | Fence);
                let now = is_one && left == 0;
                left -= i32::from(is_one && left > 0);
                now
            };
            let died = first.dies(after, when, |db| drop(db.try_put()));
            second.put();
            tale.survives_all();
            second.put();
            tale.survives_all();
            if !died {
                assert!(step > 2, "a commit has steps");
                break;
            }
        }
    }
}

/// A fence or a write-back that fails is a flush that fails: `-wal` is flushed instead (WAL-9).
#[test]
pub(crate) fn and_a_fence_that_fails_is_made_good() {
    for kind in [OperationKind::Store, OperationKind::WriteBack, OperationKind::Fence] {
        let (tale, db) = Tale::begun_in_memory();
        db.put();
        tale.machine.fail(Fault::new(Effect::Error(libc::EIO)).on(kind));
        db.put();
        tale.survives_all();
        tale.machine.stop_failing();
        for _ in 0..3 {
            db.put();
            tale.survives_all();
        }
    }
}

/// The stories would see it if a fence, or the write-back before it, were left out.
#[test]
pub(crate) fn a_fence_that_is_left_out_is_seen() {
    for kind in [OperationKind::Fence, OperationKind::WriteBack] {
        let (tale, db) = Tale::begun_in_memory();
        tale.machine.fail(Fault::new(Effect::LeftOut).on(kind).forever());
        db.put();
        let seen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| tale.survives_all()));
        assert!(seen.is_err(), "{kind} was left out");
    }
}

/// Whatever call fails, once, while a log elsewhere is begun, used and given up: the call is an
/// error or is made good, and nothing that was acknowledged is lost.
#[test]
pub(crate) fn whatever_call_fails() {
    let steps = Arc::new(Mutex::new(0_u64));
    let tale = Tale::in_memory();
    let before = tale.machine.steps();
    session(&tale).unwrap();
    *steps.lock().unwrap() = tale.machine.steps() - before;
    let total = *steps.lock().unwrap();
    for at in 0..total {
        let tale = Tale::in_memory();
        tale.machine.fail(Fault::new(Effect::Error(libc::EIO)).after(at));
        drop(session(&tale));
        tale.machine.stop_failing();
        let what = tale.survives(&tale.machine.killed());
        what.unwrap_or_else(|what| panic!("call {at} failed: {what}"));
        let what = tale.survives(&tale.machine.power_loss(&mut Fate::nothing()));
        what.unwrap_or_else(|what| panic!("call {at} failed, power lost: {what}"));
    }
}

fn session(tale: &Tale) -> Result<(), String> {
    let db = tale.try_open()?;
    for _ in 0..3 {
        db.try_put()?;
    }
    db.run("PRAGMA wal_checkpoint(RESTART)")?;
    db.try_put()?;
    db.db.close().map_err(|(_, error)| error.to_string())
}
