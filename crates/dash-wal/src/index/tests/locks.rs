//! The eight slots.

use super::super::slots::{
    CKPT, CKPT_BYTE, READ, RECOVER, RECOVER_BYTE, SLOTS, WRITE, WRITER_BYTE,
};
use super::{Connection, Machine, busy, root};
use crate::index::Others;
use dash_engine::error::{Error, Operation};
use dash_simulated::{Effect, Fault, OperationKind};
use dash_storage::LockKind::{Exclusive, Shared};
use proptest::prelude::*;

fn two(machine: &Machine) -> (Connection, Connection) {
    (Connection::open(machine).unwrap(), Connection::open(machine).unwrap())
}

#[test]
fn a_slot_that_is_held_is_nothing_to_take_and_changes_no_kind() {
    let machine = Machine::new(1);
    let (mut a, mut b) = two(&machine);
    for slot in 0..SLOTS {
        let slots = slot..slot + 1;
        assert!(a.lock(slots.clone(), Exclusive) && a.lock(slots.clone(), Exclusive));
        assert_eq!(a.index.held(slot), Some(Exclusive));
        assert!(!a.lock(slots.clone(), Shared), "unixShmLock: it is held exclusively");
        assert!(!b.lock(slots.clone(), Shared) && !b.lock(slots.clone(), Exclusive));
        a.unlock(slots.clone());
        a.unlock(slots.clone());
        assert!(a.lock(slots.clone(), Shared) && a.lock(slots.clone(), Shared));
        assert!(b.lock(slots.clone(), Shared) && !a.lock(slots.clone(), Exclusive));
        a.unlock(slots.clone());
        b.unlock(slots.clone());
        assert_eq!((a.index.held(slot), b.index.held(slot)), (None, None));
        assert!(b.lock(slots.clone(), Exclusive));
        b.unlock(slots);
    }
}

#[test]
fn several_slots_are_all_taken_or_none() {
    let machine = Machine::new(1);
    let (mut a, mut b) = two(&machine);
    for held in 0..SLOTS {
        assert!(b.lock(held..held + 1, Shared));
        for slots in [0..SLOTS, CKPT..READ, READ + 1..SLOTS, WRITE..READ + 1] {
            let free = !slots.contains(&held);
            assert_eq!(a.lock(slots.clone(), Exclusive), free, "{held} {slots:?}");
            let mut c = Connection::open(&machine).unwrap();
            let left = (0..SLOTS).filter(|&slot| c.lock(slot..slot + 1, Exclusive)).count();
            let taken = if free { slots.len() } else { 0 };
            assert_eq!(left, SLOTS - 1 - taken, "{held} {slots:?}");
            c.unlock(0..SLOTS);
            a.unlock(0..SLOTS);
        }
        b.unlock(held..held + 1);
    }
}

#[test]
fn what_was_held_before_outlives_a_lock_that_failed() {
    let machine = Machine::new(1);
    let (mut a, mut b) = two(&machine);
    assert!(a.lock(WRITE..CKPT, Exclusive) && b.lock(READ..READ + 1, Shared));
    assert!(!a.lock(WRITE..SLOTS, Exclusive));
    assert_eq!(a.index.held(WRITE), Some(Exclusive));
    assert_eq!(a.index.held(CKPT), None);
    assert!(!b.lock(WRITE..CKPT, Exclusive) && b.lock(CKPT..READ, Exclusive));
}

#[test]
fn a_lock_call_that_fails_takes_nothing() {
    for nth in 0..3 {
        let machine = Machine::new(1);
        let (mut a, mut b) = two(&machine);
        machine.fail(Fault::new(Effect::Error(5)).on(OperationKind::Lock).after(nth));
        let failed = a.index.lock(0..SLOTS, Exclusive, &a.coordination).unwrap_err();
        assert!(matches!(failed, Error::Io { operation: Operation::Lock, .. }), "{failed}");
        assert!(b.lock(0..SLOTS, Exclusive), "{nth}");
    }
}

#[test]
fn writers_of_dash_meet_on_bytes_of_the_coordination_file() {
    let machine = Machine::new(1);
    let mut a = Connection::open(&machine).unwrap();
    let shm = machine.open_stock("/db-shm").unwrap();
    let private = machine.open_stock("/db-dash").unwrap();
    for (slot, byte) in [(WRITE, WRITER_BYTE), (CKPT, CKPT_BYTE), (RECOVER, RECOVER_BYTE)] {
        let public = 120 + slot as u64;
        assert!(a.lock(slot..slot + 1, Exclusive));
        assert!(!private.lock(byte..byte + 1, Shared));
        assert!(shm.lock(public..public + 1, Shared), "stock readers look there");
        a.unlock(slot..slot + 1);
        assert!(private.lock(byte..byte + 1, Exclusive));
        private.unlock();
        assert!(!shm.lock(public..public + 1, Exclusive), "it stays with dash");
        shm.unlock();
    }
    for slot in READ..SLOTS {
        let public = 120 + slot as u64;
        assert!(a.lock(slot..slot + 1, Shared));
        assert!(shm.lock(public..public + 1, Shared) && !shm.lock(public..public + 1, Exclusive));
        shm.unlock();
        assert!(private.lock(0..u64::MAX, Exclusive), "nothing private here");
        private.unlock();
        a.unlock(slot..slot + 1);
        assert!(shm.lock(public..public + 1, Exclusive));
        shm.unlock();
    }
}

/// SQLite takes no notice of an unlock that fails, and takes the slot in another way next.
#[test]
fn a_slot_that_could_not_be_given_up_is_so_before_it_is_taken_again() {
    let machine = Machine::new(1);
    let (mut a, mut b) = two(&machine);
    for slot in 0..SLOTS {
        let slots = slot..slot + 1;
        assert!(a.lock(slots.clone(), Exclusive));
        machine.fail(Fault::new(Effect::Error(5)).on(OperationKind::Unlock));
        a.index.unlock(slots.clone(), &a.coordination).unwrap_err();
        machine.stop_failing();
        assert!(!b.lock(slots.clone(), Shared));
        assert!(a.lock(slots.clone(), Shared) && b.lock(slots.clone(), Shared));
        a.unlock(slots.clone());
        b.unlock(slots);
    }
}

#[test]
fn whoever_unmaps_gives_every_lock_up() {
    let machine = Machine::new(1);
    let (mut a, mut b) = two(&machine);
    assert!(a.lock(WRITE..RECOVER, Exclusive) && a.lock(READ..READ + 1, Shared));
    let coordination = a.coordination;
    a.index.unmap(&root(&machine), &coordination, false).unwrap();
    assert!(b.lock(0..SLOTS, Exclusive));
    drop(coordination);
    drop(b);
    let shm = machine.open_stock("/db-shm").unwrap();
    assert!(shm.lock(0..u64::MAX, Exclusive));
}

#[test]
fn recovery_keeps_everybody_out_and_lets_them_in_again() {
    let machine = Machine::new(1);
    let mut a = Connection::open(&machine).unwrap();
    assert_eq!(a.index.exclude().unwrap(), Others::Nobody);
    assert!(busy(Connection::open(&machine)));
    let shm = machine.open_stock("/db-shm").unwrap();
    assert!((120..123).all(|byte| !shm.lock(byte..byte + 1, Shared)));
    assert!(shm.lock(123..128, Shared));
    shm.unlock();
    a.index.readmit().unwrap();
    let mut b = Connection::open(&machine).unwrap();
    assert_eq!(a.index.exclude().unwrap(), Others::Some);
    assert_eq!(b.index.exclude().unwrap(), Others::Some);
    drop(a);
    assert_eq!(b.index.exclude().unwrap(), Others::Nobody);
}

#[test]
fn locks_of_a_killed_process_are_free() {
    let machine = Machine::new(1);
    let mut a = Connection::open(&machine).unwrap();
    assert!(a.lock(0..SLOTS, Exclusive));
    let mut b = Connection::open(&machine.killed()).unwrap();
    assert!(b.lock(0..SLOTS, Exclusive));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn slots_are_granted_by_sqlites_rules(
        steps in prop::collection::vec((0..3usize, 0..SLOTS, 1..4usize, 0..3u8), 0..60),
    ) {
        let machine = Machine::new(1);
        let mut all: Vec<_> = (0..3).map(|_| Connection::open(&machine).unwrap()).collect();
        let mut model = [[None; SLOTS]; 3];
        for (who, first, len, choice) in steps {
            let len = if choice == 1 { 1 } else { len };
            let slots = first..(first + len).min(SLOTS);
            if choice == 2 {
                all[who].unlock(slots.clone());
                model[who][slots].fill(None);
                continue;
            }
            let kind = [Exclusive, Shared][usize::from(choice)];
            let free = slots.clone().all(|slot| {
                let others = (0..3).filter(|&other| other != who);
                let mut others = others.filter_map(|other| model[other][slot]);
                let own: Option<_> = model[who][slot];
                own.is_none_or(|own| own == kind)
                    && others.all(|other| kind == Shared && other == Shared)
            });
            prop_assert_eq!(all[who].lock(slots.clone(), kind), free);
            if free {
                model[who][slots].fill(Some(kind));
            }
            for (connection, model) in all.iter().zip(&model) {
                let held: Vec<_> = (0..SLOTS).map(|slot| connection.index.held(slot)).collect();
                prop_assert_eq!(&held[..], &model[..]);
            }
        }
    }
}
