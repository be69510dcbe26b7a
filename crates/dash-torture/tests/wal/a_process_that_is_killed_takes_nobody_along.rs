//! WAL-5, WAL-7, WAL-10: of two processes one is killed at each step of what it does. The other one
//! reads on, writes on, and what it commits survives.

use crate::common::{Db, Tale, changes};

fn killed_in(act: fn(&Db)) {
    for after in [false, true] {
        for step in 0.. {
            let (tale, db) = Tale::begun();
            db.put();
            let victim = tale.open();
            assert_eq!(victim.content(), tale.tried());
            let mut seen = 0;
            let died = victim.dies(
                after,
                move |operation| {
                    seen += usize::from(changes(operation.kind));
                    seen == step + 1
                },
                act,
            );
            let found = db.content();
            let both = tale.acknowledged()..=tale.tried();
            assert!(both.contains(&found), "step {step}: {found}, not {both:?}");
            tale.survives_all();
            // What it has not committed is somebody else's number now.
            let tale = tale.with(found);
            let db = db.of(&tale);
            db.put();
            tale.survives_all();
            db.restart();
            tale.survives_all();
            if !died {
                break;
            }
        }
    }
}

#[test]
pub(crate) fn in_a_commit() {
    killed_in(|db| drop(db.try_put()));
}

#[test]
pub(crate) fn in_a_commit_of_many_pages() {
    killed_in(|db| drop(db.scribble(9).and_then(|()| db.run("COMMIT"))));
}

#[test]
pub(crate) fn in_a_rollback() {
    killed_in(|db| drop(db.scribble(40).and_then(|()| db.run("ROLLBACK"))));
}

#[test]
pub(crate) fn in_a_checkpoint() {
    killed_in(|db| drop(db.run("PRAGMA wal_checkpoint(PASSIVE)")));
    killed_in(|db| drop(db.run("PRAGMA wal_checkpoint(TRUNCATE)")));
}

#[test]
pub(crate) fn in_a_new_generation() {
    killed_in(|db| {
        drop(db.run("PRAGMA wal_checkpoint(RESTART)"));
        drop(db.try_put());
    });
}
