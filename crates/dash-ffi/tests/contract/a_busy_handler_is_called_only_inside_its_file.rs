//! A stored busy handler sleeps for its connection inside a callback, and does nothing elsewhere.

use crate::common::{Database, Fault};
use std::sync::atomic::{AtomicUsize, Ordering};

static CALLS: AtomicUsize = AtomicUsize::new(0);

fn three_times(tries: i32) -> bool {
    CALLS.fetch_add(1, Ordering::Relaxed);
    tries < 2
}

#[test]
fn a_busy_handler_is_called_only_inside_its_file() {
    let database = Database::new();
    let mut db = database.open("").unwrap();
    db.busy_handler(Some(three_times)).unwrap();

    database.probe.fail("xLock", Fault::AskBusyHandler);
    db.execute_batch("BEGIN IMMEDIATE; COMMIT").unwrap();
    // Asked for SHARED, then for RESERVED; counting goes on where SQLite's own wait left it.
    assert!(CALLS.load(Ordering::Relaxed) >= 3, "{CALLS:?}");

    let before = CALLS.load(Ordering::Relaxed);
    assert!(!database.probe.busy.lock().unwrap().as_ref().unwrap().call());
    drop(db);
    assert!(!database.probe.busy.lock().unwrap().as_ref().unwrap().call());
    assert_eq!(CALLS.load(Ordering::Relaxed), before);
}
