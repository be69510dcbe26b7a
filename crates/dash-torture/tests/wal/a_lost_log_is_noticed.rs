//! WAL-20: the name of a log is durable before the name fence stands, and outlives it. So a fence
//! without a log tells that somebody has removed one.

use dash_storage::simulated::Everything;
use dash_wal::Choice;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use crate::common::{Fate, Tale, is_fenced, remove};

/// A session with commits that no power loss leaves in `-wal`, cut off by one, and without its log.
fn without_log() -> Tale {
    let (tale, db) = Tale::begun();
    for _ in 0..3 {
        db.put();
    }
    db.kill();
    let tale = tale.after(tale.machine.power_loss(&mut Fate::nothing()));
    remove(&tale.machine, "-dashlog");
    tale
}

#[test]
pub(crate) fn after_a_power_loss() {
    let tale = without_log();
    let refused = tale.try_open().err().unwrap();
    assert!(refused.contains("app.db-dashlog is missing"), "{refused}");
    assert!(refused.contains("dash recover app.db --discard"), "{refused}");
    // Nothing was touched, for it may be put back.
    assert!(is_fenced(&tale.machine) && tale.machine.exists("/app.db-wal"));
}

/// What is there is taken, and from then on counts like any other.
#[test]
pub(crate) fn until_a_person_goes_on_without_it() {
    let tale = without_log();
    let (home, path) = (tale.machine.process(), Path::new("/app.db"));
    assert!(dash_wal::recover(&home, path, Choice::Keep).is_err(), "there is nothing to keep");
    dash_wal::recover(&home, path, Choice::Discard).unwrap();
    assert!(!is_fenced(&tale.machine));
    let found = tale.open().content();
    let tale = tale.with(found);
    tale.all_counts();
    let db = tale.open();
    for _ in 0..4 {
        db.put();
        tale.survives_all();
    }
}

/// The page cache of a killed process has it all. The fence would outlive that, and goes.
#[test]
pub(crate) fn but_not_after_a_kill() {
    let (tale, db) = Tale::begun();
    for _ in 0..3 {
        db.put();
    }
    db.kill();
    remove(&tale.machine, "-dashlog");
    let db = tale.open();
    assert_eq!(db.content(), tale.acknowledged());
    assert!(!is_fenced(&tale.machine));
    tale.watch();
    db.put();
    db.put();
    tale.done();
    tale.survives_all();
    assert!(tale.survives(&tale.machine.power_loss(&mut Everything)).is_ok());
}

/// A file system may make names durable in any order.
#[test]
pub(crate) fn and_its_name_is_durable_before_the_fence_stands() {
    let tale = Tale::new();
    // It may be removed at rest; the next session makes another one.
    remove(&tale.machine, "-dashlog");
    let tale = tale.after(tale.machine.power_loss(&mut Everything));
    let early = Arc::new(AtomicUsize::new(0));
    let db = tale.open();
    let count = Arc::clone(&early);
    tale.machine.watch(move |machine, _| {
        let after = machine.power_loss(&mut Fate::nothing());
        let is_early = is_fenced(machine) && !after.exists("/app.db-dashlog");
        count.fetch_add(usize::from(is_early), SeqCst);
    });
    for _ in 0..4 {
        db.put();
    }
    tale.machine.watch(|_, _| {});
    assert!(is_fenced(&tale.machine));
    assert_eq!(early.load(SeqCst), 0);
}

/// Whatever a power loss leaves of the session that makes a new log: none is missed that never held
/// anything.
#[test]
pub(crate) fn whatever_is_lost_when_a_new_one_is_made() {
    let tale = Tale::new();
    remove(&tale.machine, "-dashlog");
    tale.watch();
    let db = tale.open();
    for _ in 0..12 {
        db.put();
    }
    tale.done();
    tale.survives_all();
}
