//! SQLite hands an error of `xUnlock` on as that of COMMIT (pager.c `pager_end_transaction`), when
//! the commit is published. Whoever is told that it failed makes it once more.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::common::sim::{start, tiny};
use super::common::{commit, read, write};
use dash_shadow::LockLevel;
use dash_simulated::{Effect, Fault, Machine, OperationKind};

const EIO: i32 = 5;

/// What can't be given back is with the next lock, and until then that lock fails.
#[test]
pub fn whatever_lock_can_not_be_given_back() {
    let machine = Machine::new(1);
    let (_p, mut a) = start(&machine, &tiny());
    let (_q, mut b) = start(&machine, &tiny());
    commit(&mut a, &[1, 1, 1]).unwrap();
    commit(&mut a, &[2, 1, 1]).unwrap();
    write(&mut a, &[3, 3, 3]).unwrap();
    a.lock(LockLevel::Exclusive).unwrap();
    a.prepare(None).unwrap();
    a.flush().unwrap();
    a.publish().unwrap();
    machine.fail(Fault::new(Effect::Error(EIO)).on(OperationKind::Unlock).forever());
    a.unlock(LockLevel::Shared).unwrap();
    // SQLite does not look at this one.
    drop(a.unlock(LockLevel::None));
    assert!(a.lock(LockLevel::Shared).is_err(), "what it could not give back is forgotten");
    machine.stop_failing();
    assert_eq!(read(&mut a).unwrap(), [3, 3, 3]);
    // Nothing keeps others out.
    commit(&mut b, &[4, 3, 3]).unwrap();
    commit(&mut a, &[5, 3, 3]).unwrap();
    assert_eq!(read(&mut b).unwrap(), [5, 3, 3]);
}

/// Nothing was committed: that is an error, and the transaction is over all the same.
#[test]
fn nor_does_one_that_was_rolled_back_go_on() {
    let machine = Machine::new(1);
    let (_p, mut a) = start(&machine, &tiny());
    commit(&mut a, &[1, 1, 1]).unwrap();
    write(&mut a, &[3, 3, 3]).unwrap();
    a.lock(LockLevel::Exclusive).unwrap();
    machine.fail(Fault::new(Effect::Error(EIO)).on(OperationKind::Unlock).forever());
    assert!(a.unlock(LockLevel::None).is_err());
    machine.stop_failing();
    let (_q, mut b) = start(&machine, &tiny());
    assert!(commit(&mut b, &[4, 4, 4]).is_err(), "its lock is held");
    assert_eq!(read(&mut a).unwrap(), [1, 1, 1]);
    commit(&mut b, &[4, 4, 4]).unwrap();
    assert_eq!(read(&mut a).unwrap(), [4, 4, 4]);
}
