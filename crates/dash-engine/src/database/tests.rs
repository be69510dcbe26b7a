//! SQLite's lock levels, among connections of dash and with stock ones.

use super::DatabaseFile;
use crate::error::{Error, Operation};
use crate::locks::LockLevel::{self, Exclusive, None, Pending, Reserved, Shared};
use dash_simulated::{Effect, Fault, File, Machine, OperationKind, StockDescriptor};
use dash_storage::real::Real;
use dash_storage::{Directory, OpenMode, Storage};
use dash_testing::stock::{Stock, play};
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;

type Simulated = DatabaseFile<File>;

/// The role's name.
const STOCK: &str = "database::tests::stock_sqlite";

fn connection(machine: &Machine) -> Simulated {
    let directory = machine.process().open_directory(Path::new("/")).unwrap();
    let file = directory.open("db".as_ref(), OpenMode::Create { permissions: 0o644 }).unwrap();
    DatabaseFile::new(Arc::new(file), "db")
}

fn busy<T: std::fmt::Debug>(result: Result<T, Error>) -> bool {
    match result {
        Ok(_) => false,
        Err(Error::Busy) => true,
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn what_is_written_is_read_back() {
    let machine = Machine::new(1);
    let (a, b) = (connection(&machine), connection(&machine));
    a.write(b"0123456789", 4).unwrap();
    let mut bytes = [9; 16];
    assert_eq!(b.read(&mut bytes, 0).unwrap(), 14);
    assert_eq!(&bytes[..14], b"\0\0\0\x000123456789");
    b.truncate(6).unwrap();
    assert_eq!((a.size().unwrap(), a.read(&mut bytes, 4).unwrap()), (6, 2));
    let durable =
        |machine: &Machine| machine.power_loss(&mut dash_simulated::Nothing).file_view("/db");
    assert_eq!(durable(&machine), Option::None);
    a.sync().unwrap();
    machine.process().open_directory(Path::new("/")).unwrap().flush().unwrap();
    assert_eq!(durable(&machine).as_deref(), Some(b"\0\0\0\x0001".as_slice()));
}

#[test]
fn a_failed_exclusive_keeps_new_readers_out_and_lets_old_ones_end() {
    let machine = Machine::new(1);
    let (mut writer, mut reader, mut late) =
        (connection(&machine), connection(&machine), connection(&machine));
    reader.lock(Shared).unwrap();
    writer.lock(Shared).unwrap();
    writer.lock(Reserved).unwrap();
    assert!(busy(writer.lock(Exclusive)));
    assert_eq!(writer.level(), Pending);
    assert!(busy(late.lock(Shared)));
    reader.unlock(None).unwrap();
    writer.lock(Exclusive).unwrap();
    writer.unlock(Shared).unwrap();
    late.lock(Shared).unwrap();
    late.lock(Reserved).unwrap();
}

#[test]
fn a_lost_journal_is_rolled_back_without_pending() {
    let machine = Machine::new(1);
    let (mut a, mut b) = (connection(&machine), connection(&machine));
    a.lock(Shared).unwrap();
    b.lock(Shared).unwrap();
    // At SHARED a failed EXCLUSIVE changes nothing: both may try again, and somebody gets in.
    assert!(busy(a.lock(Exclusive)) && busy(b.lock(Exclusive)));
    assert_eq!((a.level(), b.level()), (Shared, Shared));
    b.unlock(None).unwrap();
    a.lock(Exclusive).unwrap();
    assert!(busy(b.lock(Shared)));
}

#[test]
fn the_hold_tells_stock_readers_that_no_journal_is_hot() {
    let machine = Machine::new(1);
    let (mut a, mut b) = (connection(&machine), connection(&machine));
    let stock = machine.open_stock("/db").unwrap();
    assert!(!stock.is_reserved_elsewhere());
    a.hold_reserved().unwrap();
    b.hold_reserved().unwrap();
    a.lock(Shared).unwrap();
    assert!(stock.is_reserved_elsewhere() && stock.try_lock_shared());
    assert!(!stock.try_lock_reserved());
    assert!(busy(a.lock(Reserved)), "another connection holds it");
    b.release_hold().unwrap();
    a.lock(Reserved).unwrap();
    assert!(busy(b.hold_reserved()));
    a.unlock(None).unwrap();
    assert!(stock.is_reserved_elsewhere() && !stock.try_lock_reserved(), "it outlives the level");
    b.hold_reserved().unwrap();
    a.release_hold().unwrap();
    b.release_hold().unwrap();
    assert!(!stock.is_reserved_elsewhere() && stock.try_lock_reserved());
    assert!(busy(a.hold_reserved()), "a stock writer has it");
}

#[test]
fn a_hold_taken_or_given_up_by_a_writer_counts_when_it_unlocks() {
    let machine = Machine::new(1);
    let mut a = connection(&machine);
    let stock = machine.open_stock("/db").unwrap();
    a.lock(Reserved).unwrap();
    a.hold_reserved().unwrap();
    assert!(!stock.lock(super::RESERVED, dash_storage::LockKind::Shared), "still exclusive");
    a.unlock(Shared).unwrap();
    assert!(stock.lock(super::RESERVED, dash_storage::LockKind::Shared), "shared now");
    stock.unlock();
    a.lock(Reserved).unwrap();
    a.release_hold().unwrap();
    assert!(stock.is_reserved_elsewhere());
    a.unlock(Shared).unwrap();
    assert!(!stock.is_reserved_elsewhere());
}

#[test]
fn a_lock_call_that_fails_can_be_made_again() {
    let kinds = [OperationKind::Lock, OperationKind::Unlock];
    for (kind, nth) in kinds.into_iter().flat_map(|kind| (0..4).map(move |nth| (kind, nth))) {
        let machine = Machine::new(1);
        let mut a = connection(&machine);
        machine.fail(Fault::new(Effect::Error(5)).on(kind).after(nth));
        let mut failures = 0;
        let mut until_it_works = |mut act: Box<dyn FnMut() -> Result<(), Error> + '_>| {
            while let Err(error) = act() {
                assert!(matches!(error, Error::Io { operation: Operation::Lock, .. }), "{error}");
                failures += 1;
            }
        };
        until_it_works(Box::new(|| a.hold_reserved()));
        until_it_works(Box::new(|| a.lock(Exclusive)));
        until_it_works(Box::new(|| a.unlock(Shared)));
        until_it_works(Box::new(|| a.unlock(None)));
        until_it_works(Box::new(|| a.release_hold()));
        assert_eq!(failures, 1, "{kind:?} {nth}");
        let stock = machine.open_stock("/db").unwrap();
        assert!(stock.try_lock_exclusive() && stock.try_lock_reserved(), "{kind:?} {nth}");
    }
}

#[test]
fn nothing_is_left_where_reading_could_not_begin() {
    let machine = Machine::new(1);
    let mut a = connection(&machine);
    machine.fail(Fault::new(Effect::Error(5)).on(OperationKind::Unlock));
    assert!(matches!(a.lock(Shared), Err(Error::Io { .. })));
    assert_eq!(a.level(), None);
    let stock = machine.open_stock("/db").unwrap();
    assert!(stock.lock(super::SHARED, dash_storage::LockKind::Exclusive), "no reader is there");
}

/// A connection, of dash or not.
enum Actor {
    Dash(Simulated),
    Stock(StockDescriptor),
}

/// What one holds, by the rules of os_unix.c.
#[derive(Clone, Copy, Default)]
struct Model {
    level: LockLevel,
    reserved: bool,
    pending: bool,
    hold: bool,
}

/// Raises a level in the model; whether that is granted.
fn grant(all: &mut [Model], who: usize, level: LockLevel) -> bool {
    let others = |all: &[Model], is: fn(&Model) -> bool| {
        all.iter().enumerate().any(|(index, model)| index != who && is(model))
    };
    if all[who].level >= level {
        return true;
    }
    if all[who].level == None {
        if others(all, |other| other.pending || other.level == Exclusive) {
            return false;
        }
        all[who].level = Shared;
    }
    if level == Reserved {
        if others(all, |other| other.reserved || other.hold) {
            return false;
        }
        all[who] = Model { level, reserved: true, ..all[who] };
    }
    if level == Exclusive {
        if all[who].level == Reserved {
            all[who] = Model { level: Pending, pending: true, ..all[who] };
        }
        if others(all, |other| other.level >= Shared) {
            return false;
        }
        all[who].level = Exclusive;
    }
    true
}

fn raise(actor: &mut Actor, before: LockLevel, level: LockLevel) -> bool {
    match (actor, level) {
        (_, level) if before >= level => true,
        (Actor::Dash(file), level) => !busy(file.lock(level)),
        (Actor::Stock(stock), Shared) => stock.try_lock_shared(),
        (Actor::Stock(stock), Reserved) => stock.try_lock_reserved(),
        (Actor::Stock(stock), _) => stock.try_lock_exclusive(),
    }
}

/// One step of one connection, in the model and in truth.
fn step(actors: &mut [Actor], all: &mut [Model], who: usize, choice: u8) {
    let before = all[who].level;
    let is_stock = matches!(actors[who], Actor::Stock(_));
    match (choice, &mut actors[who]) {
        (0..=2, actor) => {
            let level = [Shared, Reserved, Exclusive][usize::from(choice)];
            // A stock connection asks for one level after the other, as SQLite does.
            let skips =
                (before == None && level > Shared) || (before == Shared && level > Reserved);
            if !(is_stock && skips) {
                assert_eq!(raise(actor, before, level), grant(all, who, level), "{level:?}");
            }
        }
        (3, Actor::Dash(file)) => {
            file.unlock(Shared).unwrap();
            let level = before.min(Shared);
            all[who] = Model { level, hold: all[who].hold, ..Model::default() };
        }
        (4, Actor::Dash(file)) => {
            file.unlock(None).unwrap();
            all[who] = Model { hold: all[who].hold, ..Model::default() };
        }
        (_, Actor::Stock(stock)) => {
            stock.unlock();
            all[who] = Model::default();
        }
        (5 | 6, Actor::Dash(file)) => {
            let other = all.iter().enumerate().any(|(index, one)| index != who && one.reserved);
            let free = all[who].hold || !other;
            assert_eq!(!busy(file.hold_reserved()), free, "the hold");
            all[who].hold |= free;
        }
        (_, Actor::Dash(file)) => {
            file.release_hold().unwrap();
            all[who].hold = false;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn levels_are_granted_by_sqlites_rules(
        steps in prop::collection::vec((0..5usize, 0..8u8), 0..60),
    ) {
        let machine = Machine::new(1);
        let mut actors: Vec<_> = (0..3).map(|_| Actor::Dash(connection(&machine))).collect();
        actors.extend((0..2).map(|_| Actor::Stock(machine.open_stock("/db").unwrap())));
        let mut all = [Model::default(); 5];
        for (who, choice) in steps {
            step(&mut actors, &mut all, who, choice);
            for (index, actor) in actors.iter().enumerate() {
                let others = |is: fn(&Model) -> bool| {
                    all.iter().enumerate().any(|(other, model)| other != index && is(model))
                };
                match actor {
                    Actor::Dash(file) => {
                        prop_assert_eq!(file.level(), all[index].level);
                        let others = others(|one| one.reserved || one.hold);
                        let reserved = all[index].level > Shared || others;
                        prop_assert_eq!(file.is_reserved().unwrap(), reserved);
                    }
                    Actor::Stock(stock) => {
                        let reserved = others(|one| one.reserved || one.hold);
                        prop_assert_eq!(stock.is_reserved_elsewhere(), reserved);
                    }
                }
            }
        }
    }
}

/// A database that SQLite made, and a connection of dash to it.
fn real() -> (tempfile::TempDir, DatabaseFile<<Real as Storage>::File>, Stock) {
    let folder = tempfile::tempdir().unwrap();
    let mut stock = Stock::open(STOCK, &folder.path().join("db"));
    stock.run("CREATE TABLE t(x)").unwrap();
    let directory = Real.open_directory(folder.path()).unwrap();
    let file = directory.open("db".as_ref(), OpenMode::ReadWrite).unwrap();
    (folder, DatabaseFile::new(Arc::new(file), "db"), stock)
}

#[test]
fn real_sqlite_meets_our_levels() {
    let (_folder, mut ours, mut stock) = real();
    let mut meets = |ours: &DatabaseFile<_>, reads: bool, begins: bool, commits: bool| {
        let level = ours.level();
        assert_eq!(stock.can("SELECT count(*) FROM t"), reads, "reading at {level:?}");
        let begun = stock.can("BEGIN IMMEDIATE");
        assert_eq!(begun, begins, "writing at {level:?}");
        if begun {
            stock.run("INSERT INTO t VALUES (1)").unwrap();
            assert_eq!(stock.can("COMMIT"), commits, "committing at {level:?}");
            if !commits {
                stock.run("ROLLBACK").unwrap();
            }
        }
    };
    meets(&ours, true, true, true);
    ours.lock(Shared).unwrap();
    meets(&ours, true, true, false);
    ours.lock(Reserved).unwrap();
    meets(&ours, true, false, false);
    ours.lock(Exclusive).unwrap();
    meets(&ours, false, false, false);
    ours.unlock(Shared).unwrap();
    meets(&ours, true, true, false);
    ours.hold_reserved().unwrap();
    meets(&ours, true, false, false);
    ours.lock(Exclusive).unwrap();
    meets(&ours, false, false, false);
    ours.unlock(None).unwrap();
    meets(&ours, true, false, false);
    ours.release_hold().unwrap();
    meets(&ours, true, true, true);
}

#[test]
fn we_meet_the_levels_of_real_sqlite() {
    let (_folder, mut ours, mut stock) = real();
    stock.run("BEGIN").unwrap();
    stock.run("SELECT count(*) FROM t").unwrap();
    assert!(!ours.is_reserved().unwrap());
    assert!(busy(ours.lock(Exclusive)), "it reads");
    ours.unlock(None).unwrap();
    stock.run("INSERT INTO t VALUES (1)").unwrap();
    assert!(ours.is_reserved().unwrap() && busy(ours.hold_reserved()), "it writes");
    ours.lock(Shared).unwrap();
    assert!(busy(ours.lock(Reserved)));
    assert!(!stock.can("COMMIT"), "we read, and it holds PENDING");
    ours.unlock(None).unwrap();
    assert!(busy(ours.lock(Shared)), "its PENDING keeps us out");
    stock.run("COMMIT").unwrap();
    ours.lock(Exclusive).unwrap();
}

#[test]
#[ignore = "a role of other tests"]
fn stock_sqlite() {
    play(STOCK);
}
