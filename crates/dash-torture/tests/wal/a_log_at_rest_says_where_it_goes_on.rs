//! The next session of a log begins where the head says, so whoever opens a log at rest need not
//! read it (LOG-12). After a short session the log is begun later.

use dash_simulated::{Effect, Fault, Operation, OperationKind, Question, Survivors};

use crate::common::{Tale, overwrite};

/// Commits of a session that is not short.
const LONG: usize = 6;

/// A database whose last session was of so many commits, a while ago.
fn after(commits: usize) -> Tale {
    let (tale, db) = Tale::begun();
    for _ in 2..commits {
        db.put();
    }
    db.close();
    tale.machine.write_back();
    tale
}

/// Also where the ring's end is near, or a record does not fit before it.
#[test]
pub(crate) fn and_what_comes_next_is_found() {
    for commits in (LONG..30).step_by(3) {
        let tale = after(commits);
        let db = tale.open();
        tale.watch();
        for _ in 0..3 {
            db.put();
        }
        tale.done();
        tale.survives_all();
    }
}

/// LOG-18: whatever numbers a head at rest has been given, commits are found. SEC S2-11
#[test]
pub(crate) fn whatever_else_it_says() {
    const SEQUENCE: usize = 32;
    const NEXT: usize = 56;
    let numbers = [
        1 << 40,
        (1 << 62) - 1,
        1 << 62,
        (1 << 63) - 4096,
        (1 << 63) - 1,
        1 << 63,
        u64::MAX - 4095,
    ];
    for (place, number) in [SEQUENCE, NEXT].into_iter().flat_map(|it| numbers.map(|n| (it, n))) {
        let tale = after(LONG);
        let log = tale.machine.file_view("/app.db-dashlog").unwrap();
        let mut log: Vec<u8> = log.to_vec();
        log[place..place + 8].copy_from_slice(&number.to_le_bytes());
        log[12..16].fill(0);
        let sum = crc32fast::hash(&log[..512]);
        log[12..16].copy_from_slice(&sum.to_le_bytes());
        overwrite(&tale.machine, "app.db-dashlog", &log);
        tale.machine.write_back();
        for session in 0..2 {
            let db = tale.open();
            for _ in 0..3 {
                db.put();
                tale.survives_all();
            }
            assert!(session > 0 || tale.flushes("-dashlog") > 0, "the log is in use");
            db.close();
            tale.survives_all();
        }
    }
}

/// The first record's number is skipped, and its place is used again; the head may be the one that
/// says that the log is at rest.
#[test]
pub(crate) fn after_flushes_that_failed_too() {
    for effect in [Effect::LostFlush(libc::EIO), Effect::Error(libc::EIO)] {
        for failures in 1..4 {
            let tale = after(LONG);
            let db = tale.open();
            db.put();
            for _ in 0..failures {
                let flush = Fault::new(effect).on(OperationKind::Flush);
                tale.machine.fail(flush.of_inode(tale.inode("-dashlog")));
                db.put();
                tale.machine.stop_failing();
                tale.survives_all();
            }
            for _ in 0..3 {
                db.put();
                tale.survives_all();
            }
        }
    }
}

/// Where no flush is asked for: any of several records may be on the device after a power loss,
/// while the head is still the one that says that the log is at rest. One that is far behind the
/// first would not be looked for, and its number used again.
#[test]
pub(crate) fn with_a_record_that_is_flushed() {
    let tale = after(4);
    let db = tale.open();
    db.put();
    db.ok("PRAGMA dash_durability=none");
    db.synchronous("NORMAL");
    db.put();
    for _ in 0..2 {
        db.scribble(6).unwrap();
        db.ok("COMMIT");
    }
    db.put();
    let next = tale.after(tale.machine.power_loss(&mut NewestRecord::of(&tale)));
    let next = next.with(next.open().content());
    let db = next.open();
    db.restart();
    for _ in 0..5 {
        db.put();
        next.survives_all();
    }
}

/// Of all that was written and not flushed, the last write into the log alone is there.
struct NewestRecord {
    log: u64,
    begins: u64,
}

impl NewestRecord {
    fn of(tale: &Tale) -> Self {
        let log = tale.inode("-dashlog");
        let entries = tale.machine.journal().entries;
        let written = |operation: &Operation| {
            operation.inode == log && operation.kind == OperationKind::Write
        };
        let last = entries.iter().rfind(|entry| written(&entry.operation)).unwrap();
        let range = last.operation.range.clone().unwrap();
        Self { log, begins: range.start }
    }
}

impl Survivors for NewestRecord {
    fn choose(&mut self, question: Question, _: usize, newest: usize) -> usize {
        match question {
            Question::Unit { inode, offset } if inode == self.log && offset >= self.begins => {
                newest
            }
            _ => 0,
        }
    }
}

#[test]
pub(crate) fn a_short_session_is_followed_by_one_that_begins_it_later() {
    for (before, logged) in [(2, 0), (LONG, 2)] {
        let tale = after(before);
        let db = tale.open();
        let flushes = tale.flushes("-dashlog");
        for _ in 0..3 {
            db.put();
        }
        assert_eq!(tale.flushes("-dashlog") - flushes, logged, "after {before} commits");
        db.put();
        assert!(tale.flushes("-dashlog") > flushes, "it is begun in the end");
        tale.survives_all();
    }
}
