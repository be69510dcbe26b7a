//! WAL-25: a log elsewhere is made, durably, and its sign says so, before the first record; by who
//! names its place, and by nobody else.

use dash_simulated::OperationKind;

use crate::a_log_elsewhere_is_found_or_refused::open;
use crate::common::{LOG, Tale, changes, is_fenced};

/// Whoever finds one that was being made makes it durable, and says so, before it is used.
#[test]
pub(crate) fn also_where_its_maker_was_killed() {
    let mut killed = 0;
    for step in 0.. {
        let tale = Tale::in_memory();
        // It is moved away, and so made anew when it is moved back.
        open(&tale.machine, Some("/pmem/other-dashlog")).unwrap().close().unwrap();
        tale.machine.write_back();
        let db = tale.open();
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
        let next = tale.open();
        let tale = tale.with(next.content());
        tale.all_counts();
        let next = next.of(&tale);
        for _ in 0..4 {
            next.put();
        }
        tale.survives_all();
    }
    assert!(killed > 8, "{killed} steps");
}

/// The others' commits become durable without it, and they use it once it is there.
#[test]
pub(crate) fn and_is_made_only_by_who_names_its_place() {
    let (tale, db) = Tale::begun_in_memory();
    db.close();
    let connection = open(&tale.machine, None).unwrap();
    connection.keep_no_log();
    connection.close().unwrap();
    assert!(!tale.machine.exists(LOG));
    let db = tale.untold().open();
    tale.watch();
    for _ in 0..4 {
        db.put();
    }
    tale.done();
    assert!(!tale.machine.exists(LOG) && !is_fenced(&tale.machine));
    let told = tale.open();
    told.put();
    told.put();
    assert!(tale.machine.exists(LOG));
    let flushes = tale.flushes("-dashlog");
    db.put();
    assert!(tale.flushes("-dashlog") > flushes);
    tale.survives_all();
}

/// Who may not make it does not look for it at each commit, but once it is there, and now and then.
#[test]
pub(crate) fn and_is_not_looked_for_at_each_commit() {
    let (tale, db) = Tale::begun_in_memory();
    db.close();
    let connection = open(&tale.machine, None).unwrap();
    connection.keep_no_log();
    connection.close().unwrap();
    let db = tale.untold().open();
    let opened = |commits: usize| {
        let from = tale.machine.journal().entries.len();
        (0..commits).for_each(|_| db.put());
        let entries = tale.machine.journal().entries;
        entries[from..].iter().filter(|it| it.operation.kind == OperationKind::Open).count()
    };
    assert!(opened(20) > 0);
    assert_eq!(opened(20), 0);
    let looks = opened(64);
    assert!(looks > 0 && looks < 6, "{looks}");
    tale.survives_all();
}
