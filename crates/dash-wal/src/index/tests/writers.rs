//! The slots where stock writers are let in.

use super::super::slots::{
    CKPT, CKPT_BYTE, READ, RECOVER, RECOVER_BYTE, SLOTS, WRITE, WRITER_BYTE,
};
use super::{Connection, Machine, busy};
use crate::index::Others;
use crate::options::Stock;
use dash_simulated::StockDescriptor;
use dash_storage::LockKind::{Exclusive, Shared};
use std::sync::atomic::Ordering::SeqCst;

fn beside(machine: &Machine) -> Connection {
    Connection::open_beside(machine, Stock::Write).unwrap()
}

fn shm(machine: &Machine) -> StockDescriptor {
    machine.open_stock("/db-shm").unwrap()
}

#[test]
fn those_of_dash_meet_on_bytes_of_the_coordination_file_and_stock_ones_on_its_own() {
    let machine = Machine::new(1);
    let mut a = beside(&machine);
    let (shm, private) = (shm(&machine), machine.open_stock("/db-dash").unwrap());
    for (slot, byte) in [(WRITE, WRITER_BYTE), (CKPT, CKPT_BYTE), (RECOVER, RECOVER_BYTE)] {
        let public = 120 + slot as u64;
        assert!(a.lock(slot..slot + 1, Exclusive));
        assert!(!private.lock(byte..byte + 1, Shared));
        assert!(!shm.lock(public..public + 1, Exclusive), "stock SQLite is not at work meanwhile");
        a.unlock(slot..slot + 1);
        assert!(private.lock(byte..byte + 1, Exclusive));
        private.unlock();
        assert!(shm.lock(public..public + 1, Exclusive), "it may be then");
        assert!(!a.lock(slot..slot + 1, Exclusive) && private.lock(byte..byte + 1, Exclusive));
        private.unlock();
        shm.unlock();
    }
}

#[test]
fn an_opener_is_attached_whoever_is_at_work() {
    let machine = Machine::new(1);
    drop(beside(&machine));
    let stock = shm(&machine);
    for byte in 120..123 {
        assert!(stock.lock(128..129, Shared) && stock.lock(byte..byte + 1, Exclusive));
        let mut a = beside(&machine);
        assert!(!stock.lock(119..120, Exclusive));
        assert_eq!(a.index.exclude().unwrap(), Others::Stock);
        a.index.readmit().unwrap();
        drop(a);
        stock.unlock();
        assert!(stock.lock(119..129, Exclusive), "no lock of the opener is left");
        stock.unlock();
    }
}

#[test]
fn who_has_the_index_alone_keeps_everybody_out() {
    let machine = Machine::new(1);
    let (mut a, mut b) = (beside(&machine), beside(&machine));
    assert_eq!(a.index.exclude().unwrap(), Others::Some);
    drop(b);
    assert_eq!(a.index.exclude().unwrap(), Others::Nobody);
    assert!(busy(Connection::open_beside(&machine, Stock::Write)));
    let shm = shm(&machine);
    assert!((120..123).all(|byte| !shm.lock(byte..byte + 1, Shared)));
    a.index.readmit().unwrap();
    b = beside(&machine);
    assert_eq!(b.index.exclude().unwrap(), Others::Some);
    assert!(shm.lock(120..121, Exclusive), "a stock writer is let in");
}

/// What keeps stock checkpoints out, and its writers from beginning `-wal` anew.
#[test]
fn a_guard_takes_three_bytes_from_stock_sqlite() {
    let machine = Machine::new(1);
    let (mut a, mut b) = (beside(&machine), beside(&machine));
    for one in [&mut a, &mut b] {
        one.index.map_region(0, true).unwrap();
        one.index.guard().unwrap();
    }
    let shm = shm(&machine);
    for byte in 120..128 {
        let kept_out = [121, 122, 127].contains(&byte);
        assert_eq!(shm.lock(byte..byte + 1, Exclusive), !kept_out, "{byte}");
        shm.unlock();
    }
    // Connections of dash begin anew, checkpoint and recover.
    assert!(a.lock(READ + 1..SLOTS, Exclusive) && a.lock(CKPT..READ, Exclusive));
    a.unlock(0..SLOTS);
    drop(b);
    assert!(!shm.lock(127..128, Exclusive), "what was given up is the slots'");
    a.index.unguard().unwrap();
    assert!(shm.lock(120..128, Exclusive));
    shm.unlock();
    // A reader, or a checkpoint, of stock SQLite is waited for, and nothing is held meanwhile.
    for byte in [121, 122, 127] {
        a.word(0, 14).store(7 << 32 | 7, SeqCst);
        assert!(shm.lock(byte..byte + 1, if byte == 127 { Shared } else { Exclusive }));
        assert!(busy(a.index.guard()), "{byte}");
        shm.unlock();
        assert!(shm.lock(121..128, Exclusive));
        shm.unlock();
    }
    assert!(!a.lock(SLOTS - 1..SLOTS, Exclusive), "nobody of dash claims the last slot");
    assert!(a.lock(CKPT..RECOVER, Exclusive) && a.lock(SLOTS - 1..SLOTS, Exclusive));
}

/// Where they are kept out it takes nothing.
#[test]
fn beside_readers_there_is_no_guard() {
    let machine = Machine::new(1);
    let mut a = Connection::open(&machine).unwrap();
    a.index.map_region(0, true).unwrap();
    a.index.guard().unwrap();
    let shm = shm(&machine);
    assert!(shm.lock(119..120, Exclusive) && shm.lock(123..128, Exclusive));
    assert!(!shm.lock(120..121, Exclusive));
}

/// Where stock SQLite checkpoints, a guard takes nothing, and dash begins `-wal` anew beside no
/// checkpoint of it.
#[test]
fn beside_checkpoints_nothing_is_held_but_to_begin_anew() {
    let machine = Machine::new(1);
    let mut a = Connection::open_beside(&machine, Stock::Checkpoint).unwrap();
    a.index.map_region(0, true).unwrap();
    a.index.guard().unwrap();
    let shm = shm(&machine);
    assert!(shm.lock(120..128, Exclusive) && !shm.lock(119..120, Exclusive));
    shm.unlock();
    let marks = READ + 1..SLOTS;
    for taken in [121..122, 127..128] {
        assert!(shm.lock(taken, Exclusive) && !a.lock(marks.clone(), Exclusive));
        shm.unlock();
        assert!(shm.lock(120..128, Exclusive), "nothing is left");
        shm.unlock();
    }
    assert!(a.lock(marks.clone(), Exclusive) && !shm.lock(121..122, Exclusive));
    a.unlock(marks.clone());
    assert!(shm.lock(121..128, Exclusive));
    shm.unlock();
    // A checkpoint of dash keeps it.
    assert!(a.lock(CKPT..RECOVER, Exclusive) && a.lock(marks.clone(), Exclusive));
    a.unlock(marks);
    assert!(!shm.lock(121..122, Exclusive));
}
