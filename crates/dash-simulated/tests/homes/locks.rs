//! Locks of open file descriptions.

use std::path::Path;

use dash_storage::LockKind::{Exclusive, Shared};
use dash_storage::{Directory, File, OpenMode, Storage};

use crate::Place;

pub fn shared_locks_share_and_exclusive_ones_do_not<S: Storage>(place: Place<S>, _: &Path) {
    let (a, b) = (place.open("db"), place.open("db"));
    assert!(a.try_lock(10..20, Shared).unwrap() && b.try_lock(15..25, Shared).unwrap());
    assert!(!b.try_lock(12..13, Exclusive).unwrap());
    assert!(b.try_lock(20..30, Exclusive).unwrap());
    assert!(!a.try_lock(29..40, Shared).unwrap());
    assert!(a.try_lock(30..40, Exclusive).unwrap());
}

pub fn locks_of_one_description_do_not_conflict<S: Storage>(place: Place<S>, _: &Path) {
    let a = place.open("db");
    assert!(a.try_lock(0..10, Exclusive).unwrap() && a.try_lock(5..15, Exclusive).unwrap());
    assert_eq!(a.lock_conflict(0..100, Exclusive).unwrap(), None);
}

pub fn locks_convert<S: Storage>(place: Place<S>, _: &Path) {
    let (a, b) = (place.open("db"), place.open("db"));
    assert!(a.try_lock(0..10, Shared).unwrap() && b.try_lock(0..10, Shared).unwrap());
    assert!(!a.try_lock(0..10, Exclusive).unwrap());
    b.unlock(0..10).unwrap();
    assert!(a.try_lock(0..10, Exclusive).unwrap());
    assert!(!b.try_lock(0..1, Shared).unwrap());
    assert!(a.try_lock(0..5, Shared).unwrap());
    assert!(b.try_lock(0..5, Shared).unwrap() && !b.try_lock(5..6, Shared).unwrap());
}

pub fn unlocking_the_middle_splits<S: Storage>(place: Place<S>, _: &Path) {
    let (a, b) = (place.open("db"), place.open("db"));
    assert!(a.try_lock(0..30, Exclusive).unwrap());
    a.unlock(10..20).unwrap();
    assert!(b.try_lock(10..20, Exclusive).unwrap());
    assert!(!b.try_lock(9..10, Shared).unwrap() && !b.try_lock(20..21, Shared).unwrap());
    a.unlock(0..100).unwrap();
    assert!(b.try_lock(0..30, Exclusive).unwrap());
}

pub fn a_conflict_has_no_owner<S: Storage>(place: Place<S>, _: &Path) {
    let (a, b) = (place.open("db"), place.open("db"));
    assert!(a.try_lock(5..6, Shared).unwrap());
    assert_eq!(b.lock_conflict(0..10, Exclusive).unwrap(), Some(0));
    assert_eq!(b.lock_conflict(0..10, Shared).unwrap(), None);
    assert_eq!(b.lock_conflict(0..5, Exclusive).unwrap(), None);
    assert!(b.try_lock(0..5, Exclusive).unwrap());
}

pub fn an_empty_range_is_nothing<S: Storage>(place: Place<S>, _: &Path) {
    let (a, b) = (place.open("db"), place.open("db"));
    assert!(a.try_lock(0..10, Exclusive).unwrap());
    assert!(b.try_lock(5..5, Exclusive).unwrap());
    assert_eq!(b.lock_conflict(5..5, Exclusive).unwrap(), None);
    a.unlock(0..0).unwrap();
    assert!(!b.try_lock(0..10, Shared).unwrap());
}

pub fn a_range_may_go_to_the_end_of_all_bytes<S: Storage>(place: Place<S>, _: &Path) {
    let (a, b) = (place.open("db"), place.open("db"));
    assert!(a.try_lock(100..u64::MAX, Exclusive).unwrap());
    assert!(!b.try_lock((1 << 62)..(1 << 62) + 1, Shared).unwrap());
    assert!(b.try_lock(99..100, Exclusive).unwrap());
    a.unlock(0..u64::MAX).unwrap();
    assert!(b.try_lock(0..u64::MAX, Exclusive).unwrap());
}

pub fn locks_go_with_the_file<S: Storage>(place: Place<S>, _: &Path) {
    let (a, b) = (place.open("db"), place.open("db"));
    assert!(a.try_lock(0..10, Exclusive).unwrap());
    drop(place.open("db"));
    assert!(!b.try_lock(0..10, Exclusive).unwrap());
    drop(a);
    assert!(b.try_lock(0..10, Exclusive).unwrap());
}

pub fn locks_follow_the_inode_not_the_name<S: Storage>(place: Place<S>, _: &Path) {
    let (a, _b) = (place.open("a"), place.open("b"));
    assert!(a.try_lock(0..10, Exclusive).unwrap());
    place.directory.exchange("a".as_ref(), "b".as_ref()).unwrap();
    assert!(place.open("a").try_lock(0..10, Exclusive).unwrap());
    assert!(!place.open("b").try_lock(0..10, Exclusive).unwrap());
}

pub fn an_exclusive_lock_needs_a_writable_file<S: Storage>(place: Place<S>, _: &Path) {
    let writer = place.open("db");
    let reader = place.directory.open("db".as_ref(), OpenMode::Read).unwrap();
    assert!(reader.try_lock(0..1, Exclusive).is_err());
    assert!(reader.try_lock(0..1, Shared).unwrap());
    assert_eq!(writer.lock_conflict(0..1, Exclusive).unwrap(), Some(0));
}
