//! WAL-32, WAL-33, WAL-34, WAL-39: a record of statements makes commits as durable as one of
//! frames. What is lost of their frames is run again, once and in order.

use std::path::Path;

use dash_simulated::{Machine, Operation, OperationKind};
use dash_wal::history::History;
use dash_wal::inspect::{Opening, Refusal};
use dash_wal::{Choice, inspect, recover};

use crate::common::{DB, Db, Fate, PAGE, Tale, overwrite, remove};

/// Whether the last commits of the log are carried by their statements.
fn carried(tale: &Tale, count: usize) -> Vec<bool> {
    let history = History::read(&tale.machine.process(), Path::new(DB)).unwrap();
    let commits = history.unwrap().commits_behind(0).unwrap();
    commits[commits.len() - count..].iter().map(|commit| commit.carried).collect()
}

fn carries(db: &Db, runner: u32) {
    db.ok(&format!("PRAGMA carries={runner}"));
}

/// So many commits, each of them carried.
fn put(tale: &Tale, db: &Db, count: usize) {
    carries(db, 1);
    for _ in 0..count {
        db.put();
    }
    assert_eq!(carried(tale, count), vec![true; count]);
}

/// What the power leaves of a machine on which nothing had been written back.
fn lost(tale: &Tale) -> Tale {
    tale.after(tale.machine.power_loss(&mut Fate::nothing()))
}

#[test]
pub(crate) fn whatever_is_lost() {
    for (tale, db) in [Tale::begun(), Tale::begun_in_memory()] {
        let (log, wal) = (tale.flushes("-dashlog"), tale.flushes("-wal"));
        for commits in 1..=6 {
            put(&tale, &db, 1);
            tale.survives_all();
            assert_eq!((tale.flushes("-dashlog"), tale.flushes("-wal")), (log + commits, wal));
        }
        db.scribble(3).unwrap();
        db.ok("COMMIT");
        put(&tale, &db, 1);
        tale.survives_all();
    }
}

/// The record that a window begins with may be one of them; so may the log's first one.
#[test]
pub(crate) fn from_the_first_one_on() {
    let tale = Tale::new();
    tale.watch();
    let db = tale.open();
    carries(&db, 1);
    for _ in 0..4 {
        db.put();
    }
    assert_eq!(carried(&tale, 2), [true; 2]);
    db.close();
    tale.done();
    tale.survives_all();
}

#[test]
pub(crate) fn until_a_checkpoint_copies_their_pages() {
    for (mode, in_memory) in [("PASSIVE", false), ("RESTART", false), ("TRUNCATE", true)] {
        let (tale, db) = if in_memory { Tale::begun_in_memory() } else { Tale::begun() };
        for _ in 0..2 {
            put(&tale, &db, 2);
            tale.watch();
            db.checkpoint(mode);
            tale.done();
            tale.survives_all();
            tale.watch();
            db.put();
            db.put();
            tale.done();
        }
        tale.watch();
        db.close();
        tale.done();
        tale.survives_all();
    }
}

/// What was in the window before is of no account in the next one.
#[test]
pub(crate) fn and_frames_begin_the_next_generation() {
    let (tale, db) = Tale::begun();
    put(&tale, &db, 2);
    db.checkpoint("RESTART");
    carries(&db, 0);
    db.put();
    assert_eq!(carried(&tale, 2), [true, false]);
    tale.survives_all();
}

/// Also one that asks for no flush.
#[test]
pub(crate) fn also_a_checkpoint_in_off() {
    let (tale, db) = Tale::begun();
    let off = tale.open();
    off.synchronous("OFF");
    put(&tale, &db, 2);
    tale.watch();
    off.checkpoint("PASSIVE");
    tale.done();
    tale.survives_all();
    put(&tale, &db, 2);
    tale.watch();
    off.checkpoint("RESTART");
    db.put();
    tale.done();
    tale.survives_all();
}

#[test]
pub(crate) fn with_frames_behind_them() {
    let (tale, db) = Tale::begun();
    put(&tale, &db, 2);
    let wal = tale.flushes("-wal");
    carries(&db, 0);
    tale.watch();
    db.put();
    tale.done();
    tale.survives_all();
    assert_eq!(tale.flushes("-wal"), wal + 1, "-wal was flushed in its place");
    db.put();
    assert_eq!(carried(&tale, 1), [false]);
    tale.survives_all();
    put(&tale, &db, 2);
    tale.survives_all();
    carries(&db, 0);
    db.put();
    put(&tale, &db, 1);
    tale.survives_all();
}

/// A power loss at any step of the recovery, and at any step of the one after that.
#[test]
pub(crate) fn though_recovery_is_cut_off_again() {
    let (tale, db) = Tale::begun();
    put(&tale, &db, 3);
    let tale = lost(&tale);
    tale.watch();
    let db = tale.open();
    tale.done();
    assert_eq!(db.content(), tale.acknowledged());
    tale.survives_all();
}

/// The same, where whoever recovers is killed.
#[test]
pub(crate) fn or_whoever_recovers_is_killed() {
    use OperationKind::{Flush, SetLen, Write};
    for step in 0.. {
        let (tale, db) = Tale::begun();
        put(&tale, &db, 3);
        let tale = lost(&tale);
        drop(db);
        let killed = tale.open_killed(step, &[Write, SetLen, Flush]);
        tale.survives_all();
        tale.survives(&tale.machine.killed()).unwrap();
        // What the next one finds in the cache may be on no device (WAL-11).
        tale.watch();
        tale.open().close();
        tale.done();
        tale.survives_all();
        if !killed {
            assert!(step > 3, "a recovery has steps");
            break;
        }
    }
}

/// Several connections, in one record and in several processes.
#[test]
pub(crate) fn of_several_connections() {
    let (tale, db) = Tale::begun();
    let other = db.another();
    other.synchronous("NORMAL");
    carries(&other, 1);
    other.put();
    put(&tale, &db, 1);
    assert_eq!(carried(&tale, 2), [true; 2]);
    tale.survives_all();
    // One whose statements nobody of this process has keeps all of them from being carried.
    let stranger = tale.open();
    stranger.synchronous("NORMAL");
    carries(&stranger, 1);
    stranger.put();
    let wal = tale.flushes("-wal");
    db.put();
    assert_eq!(tale.flushes("-wal"), wal + 1);
    tale.survives_all();
    stranger.synchronous("FULL");
    put(&tale, &stranger, 2);
    tale.survives_all();
    put(&tale, &db, 2);
    tale.survives_all();
    db.kill();
    stranger.put();
    tale.survives_all();
}

/// A process dies at any step of such a commit; the others go on, with frames.
#[test]
pub(crate) fn after_the_leader_died_at_any_step() {
    for after in [false, true] {
        for step in 0.. {
            let (tale, first) = Tale::begun();
            let second = tale.open();
            carries(&first, 1);
            first.put();
            let (mut left, log) = (step, tale.inode("-dashlog"));
            let when = move |operation: &Operation| {
                use OperationKind::{Flush, Write};
                let is_one = matches!(operation.kind, Write | Flush) && operation.inode == log;
                let now = is_one && left == 0;
                left -= i32::from(is_one && left > 0);
                now
            };
            let died = first.dies(after, when, |db| drop(db.try_put()));
            tale.survives_all();
            second.put();
            tale.survives_all();
            second.checkpoint("RESTART");
            second.put();
            tale.survives_all();
            if !died {
                assert!(step > 1, "a commit has steps");
                break;
            }
        }
    }
}

/// It is not what provably comes to the same.
#[test]
pub(crate) fn but_another_sqlite_does_not_run_them() {
    let (tale, db) = Tale::begun();
    carries(&db, 2);
    db.put();
    assert_eq!(carried(&tale, 1), [true]);
    let before = tale.acknowledged();
    // What the page cache has still need not be run again.
    tale.survives(&tale.machine.killed()).unwrap();
    let tale = lost(&tale);
    let refused = tale.try_open().err().unwrap();
    assert!(refused.contains("SQLite 0.0.2"), "{refused}");
    assert!(refused.contains("sqlite-dash recover app.db --discard"), "{refused}");
    let process = || tale.machine.process();
    let asked = recover(&process(), Path::new(DB), Choice::Ask).unwrap_err().to_string();
    assert!(asked.contains("this program runs none"), "{asked}");
    recover(&process(), Path::new(DB), Choice::Discard).unwrap();
    let found = tale.open().content();
    assert_eq!(found, before - 1, "what was durable without statements");
}

/// Nobody could run them all again: the second one's go by frames, which end the window.
#[test]
pub(crate) fn never_of_two_sqlites_in_a_window() {
    let (tale, db) = Tale::begun();
    let wal = tale.flushes("-wal");
    put(&tale, &db, 2);
    carries(&db, 2);
    db.put();
    assert_eq!((carried(&tale, 1), tale.flushes("-wal")), (vec![true], wal + 1));
    tale.survives_all();
    carries(&db, 1);
    db.put();
    assert_eq!((carried(&tale, 1), tale.flushes("-wal")), (vec![true], wal + 1));
    tale.survives_all();
}

/// A stock connection that outlives the process copies a page of theirs and flushes nothing, then
/// the power takes all of it from `-wal`: run on that page they would count twice. Where the header
/// or the page that was written last is copied, the log's stamp tells (WAL-18).
#[test]
pub(crate) fn but_are_not_run_on_what_they_have_made() {
    let (tale, db) = Tale::begun();
    // What is in `-wal` by now is in nobody's way.
    db.restart();
    put(&tale, &db, 2);
    db.scribble(1).unwrap();
    db.ok("COMMIT");
    put(&tale, &db, 1);
    assert_eq!(carried(&tale, 4), [true; 4]);
    let view = |machine: &Machine, name: &str| machine.file_view(name).unwrap();
    let made = view(&tale.machine.killed(), "/app.db-wal");
    let machine = lost(&tale).machine;
    let before = view(&machine, DB);
    let mut refused = Vec::new();
    for frame in made[32..].chunks_exact(24 + PAGE) {
        let page = u32::from_be_bytes(*frame.first_chunk().unwrap()) as usize;
        let mut bytes = before.clone();
        bytes.resize(bytes.len().max(page * PAGE), 0);
        bytes[(page - 1) * PAGE..][..PAGE].copy_from_slice(&frame[24..]);
        overwrite(&machine, "app.db", &bytes);
        let tale = tale.after(machine.killed());
        refused.extend(tale.try_open().err());
        if refused.last().is_some_and(|last| last.contains("come to something else")) {
            recover(&tale.machine.process(), Path::new(DB), Choice::Discard).unwrap();
            drop(tale.open());
        }
    }
    let others = |text: &String| text.contains("come to something else than they did");
    assert!(refused.iter().any(others), "{refused:?}");
}

/// Frames may be lost that come before them: that is no damage to whoever only looks, either.
#[test]
pub(crate) fn and_whoever_looks_sees_what_opening_does() {
    let (tale, db) = Tale::begun();
    db.put();
    put(&tale, &db, 2);
    let tale = lost(&tale);
    let seen = inspect(&tale.machine.process(), Path::new(DB)).unwrap();
    let Opening::Refuse(Refusal::Statements, why) = &seen.opening else {
        panic!("{:?}", seen.opening);
    };
    assert!(why.contains("holds 2 commits by their statements alone"), "{why}");
    tale.survives_all();
}

#[test]
pub(crate) fn unless_the_wal_that_they_are_of_is_gone() {
    let (tale, db) = Tale::begun();
    put(&tale, &db, 2);
    db.kill();
    remove(&tale.machine, "-wal");
    let refused = tale.try_open().err().unwrap();
    assert!(refused.contains("app.db-wal is missing"), "{refused}");
    let process = || tale.machine.process();
    let kept = recover(&process(), Path::new(DB), Choice::Keep).unwrap_err().to_string();
    assert!(kept.contains("by their statements alone"), "{kept}");
    recover(&process(), Path::new(DB), Choice::Discard).unwrap();
    drop(tale.open());
}

/// It closes, which copies everything and deletes `-wal`.
#[test]
pub(crate) fn but_not_if_a_stock_survivor_has_deleted_it() {
    let (tale, db) = Tale::begun();
    let stock = tale.open_stock();
    put(&tale, &db, 2);
    db.kill();
    drop(stock);
    assert!(!tale.machine.exists("/app.db-wal"));
    assert_eq!(tale.open().content(), tale.acknowledged());
    tale.survives_all();
}

/// Behind so many that running them again would take long `-wal` is flushed.
#[test]
pub(crate) fn not_more_of_them_than_are_soon_run_again() {
    let (tale, db) = Tale::begun();
    put(&tale, &db, 12);
    let wal = tale.flushes("-wal");
    db.put();
    assert_eq!(tale.flushes("-wal"), wal + 1);
    tale.survives_all();
    put(&tale, &db, 1);
    assert_eq!(tale.flushes("-wal"), wal + 1);
    tale.survives_all();
}

/// The ring goes round, and grows.
#[test]
pub(crate) fn also_round_and_round() {
    let (tale, db) = Tale::begun();
    carries(&db, 1);
    for round in 0..60 {
        db.put();
        if round % 10 == 9 {
            carries(&db, 0);
            db.put();
            carries(&db, 1);
            tale.survives_all();
        }
    }
    put(&tale, &db, 1);
    db.restart();
    for _ in 0..20 {
        db.put();
    }
    tale.survives_all();
}
