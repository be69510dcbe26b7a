//! WAL-20: the name of a log is durable before the name fence stands, and outlives it. So a fence
//! without a log tells that somebody has removed one.

use dash_simulated::Everything;
use dash_wal::Choice;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use crate::common::{Fate, Tale, changes, is_fenced, overwrite, remove};

/// A session with commits that no power loss leaves in `-wal`, cut off by one.
fn cut_off() -> Tale {
    let (tale, db) = Tale::begun();
    for _ in 0..3 {
        db.put();
    }
    db.kill();
    tale.after(tale.machine.power_loss(&mut Fate::nothing()))
}

/// The same, without its log.
fn without_log() -> Tale {
    let tale = cut_off();
    remove(&tale.machine, "-dashlog");
    tale
}

#[test]
pub(crate) fn after_a_power_loss() {
    let tale = without_log();
    let refused = tale.try_open().err().unwrap();
    assert!(refused.contains("app.db-dashlog is missing"), "{refused}");
    assert!(refused.contains("sqlite-dash recover app.db --discard"), "{refused}");
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

/// What may be left of a log, or put in its place.
fn wrecks() -> [(&'static str, Vec<u8>); 4] {
    [
        ("nothing", Vec::new()),
        ("zeros", vec![0; 20 << 10]),
        ("text", b"no log".to_vec()),
        ("noise", (0..20_000_u32).map(|at| at.to_le_bytes()[0] ^ 0x5a).collect()),
    ]
}

/// A power loss leaves no such thing: the head was durable before the fence stood.
#[test]
pub(crate) fn also_where_it_was_written_over() {
    for (what, bytes) in wrecks() {
        let tale = cut_off();
        let whole = tale.machine.file_view("/app.db-dashlog").unwrap();
        overwrite(&tale.machine, "app.db-dashlog", &bytes);
        let refused = tale.try_open().err().unwrap_or_else(|| panic!("{what} is taken for a log"));
        assert!(refused.contains("app.db-dashlog is neither a log nor"), "{what}: {refused}");
        assert!(refused.contains("sqlite-dash recover app.db --discard"), "{what}: {refused}");
        // Nothing was touched.
        assert!(is_fenced(&tale.machine) && tale.machine.exists("/app.db-wal"), "{what}");
        assert_eq!(tale.machine.file_view("/app.db-dashlog").unwrap(), bytes, "{what}");
        let other = tale.after(tale.machine.killed());
        overwrite(&other.machine, "app.db-dashlog", &whole);
        assert_eq!(other.open().content(), tale.acknowledged(), "{what}: it is put back");
        let (home, path) = (tale.machine.process(), Path::new("/app.db"));
        dash_wal::recover(&home, path, Choice::Discard).unwrap();
        assert!(!is_fenced(&tale.machine), "{what}");
        let found = tale.open().content();
        let tale = tale.with(found);
        tale.all_counts();
        let db = tale.open();
        for _ in 0..4 {
            db.put();
            tale.survives_all();
        }
    }
}

/// And after a kill `-wal` has it all: the fence, which would outlive that, goes.
#[test]
pub(crate) fn nor_is_it_missed_after_a_kill() {
    for (_, bytes) in wrecks() {
        let (tale, db) = Tale::begun();
        db.put();
        db.kill();
        overwrite(&tale.machine, "app.db-dashlog", &bytes);
        let db = tale.open();
        assert_eq!(db.content(), tale.acknowledged());
        assert!(!is_fenced(&tale.machine));
        tale.watch();
        (0..3).for_each(|_| db.put());
        tale.done();
        tale.survives_all();
    }
}

/// Whoever makes a log is killed, and another process, which was there before, goes on with what
/// is there of it.
#[test]
pub(crate) fn nor_where_its_maker_was_killed() {
    let mut killed = 0;
    for step in 0.. {
        let tale = Tale::new();
        remove(&tale.machine, "-dashlog");
        tale.machine.write_back();
        let (other, db) = (tale.open(), tale.open());
        let mut left = step;
        let died = db.dies(
            false,
            move |operation| {
                let is_it = changes(operation.kind);
                left -= i32::from(is_it);
                is_it && left < 0
            },
            |db| (0..4).for_each(|_| drop(db.try_put())),
        );
        if !died {
            break;
        }
        killed += 1;
        // What nobody was told of may be visible, and is durable with the next commit.
        let tale = tale.with(other.content());
        let other = other.of(&tale);
        tale.watch();
        for _ in 0..3 {
            other.put();
        }
        tale.done();
        tale.survives_all();
    }
    assert!(killed > 8, "{killed} steps");
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

/// Without a log that they use nobody joins others: it would have to fail commits that are visible.
/// WAL-29.
#[test]
pub(crate) fn by_who_comes_while_others_use_it() {
    let (tale, db) = Tale::begun();
    let log = tale.machine.file_view("/app.db-dashlog").unwrap();
    remove(&tale.machine, "-dashlog");
    let refused = tale.try_open().err().unwrap();
    assert!(refused.contains("app.db-dashlog is missing here"), "{refused}");
    assert!(refused.contains("close app.db everywhere"), "{refused}");
    let other = log.iter().map(|byte| !byte).collect::<Vec<_>>();
    overwrite(&tale.machine, "app.db-dashlog", &other);
    let refused = tale.try_open().err().unwrap();
    assert!(refused.contains("app.db-dashlog is another file here"), "{refused}");
    // Who has it goes on, and what is said to do helps.
    db.put();
    db.close();
    tale.machine.write_back();
    let db = tale.open();
    assert_eq!(db.content(), tale.acknowledged());
    db.put();
    db.put();
    tale.survives_all();
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
