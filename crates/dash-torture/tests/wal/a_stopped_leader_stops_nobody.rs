//! A process may be stopped while it holds the log: by a debugger, or with its container. Whoever
//! waits for its flush flushes `-wal` after a while, and nothing of that is told to the others.

use std::sync::{Arc, Mutex};

use dash_simulated::OperationKind;

use crate::common::{Db, Tale};

/// What another process does while one stands still before an operation on the log, and what is
/// left once that goes on.
fn beside(kind: OperationKind, act: fn(&Tale, &Db)) {
    for commits in 0..3 {
        let (tale, db) = Tale::begun();
        for _ in 0..commits {
            db.put();
        }
        let (log, other) = (tale.inode("-dashlog"), Arc::new(Mutex::new(tale.open())));
        let (seen, acting, mut stopped) = (tale.clone(), Arc::clone(&other), false);
        tale.machine.watch(move |_, operation| {
            if !stopped && operation.kind == kind && operation.inode == log {
                stopped = true;
                act(&seen, &acting.lock().unwrap());
            }
        });
        let result = db.try_put();
        tale.machine.watch(|_, _| {});
        result.unwrap();
        tale.survives_all();
        db.put();
        drop(other);
        db.restart();
        db.put();
        tale.survives_all();
    }
}

const HOLDS_IT: [OperationKind; 2] = [OperationKind::Write, OperationKind::Flush];

#[test]
pub(crate) fn who_commits() {
    for kind in HOLDS_IT {
        beside(kind, |tale, other| {
            other.put();
            tale.survives_all();
        });
    }
}

#[test]
pub(crate) fn who_makes_a_checkpoint() {
    for kind in HOLDS_IT {
        beside(kind, |tale, other| {
            other.checkpoint("PASSIVE");
            tale.survives_all();
            other.put();
            tale.survives_all();
        });
    }
}

/// A new generation needs the log.
#[test]
pub(crate) fn but_who_needs_the_log_is_told_that_it_is_locked() {
    for kind in HOLDS_IT {
        beside(kind, |tale, other| {
            other.checkpoint("PASSIVE");
            let refused = other.try_put().and_then(|()| other.try_put());
            if let Err(error) = refused {
                assert!(error.contains("locked"), "{error}");
                drop(other.run("ROLLBACK"));
            }
            tale.survives_all();
        });
    }
}
