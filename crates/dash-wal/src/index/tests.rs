//! The wal-index among connections of dash, and between them and stock ones.

mod header;
mod locks;
mod pages;
mod stock;
mod writers;

use super::{Index, WORDS};
use crate::options::Stock;
use crate::testing::{open, root};
use dash_engine::error::{Error, Operation};
use dash_simulated::{Effect, Fault, File, Machine, OperationKind, Simulated};
use dash_storage::real::Real;
use dash_storage::{Directory, File as _, LockKind, OpenMode, SharedMemory, Storage};
use std::ffi::OsStr;
use std::sync::atomic::Ordering::SeqCst;

/// A connection's index and its description of the coordination file.
struct Connection {
    index: Index<Simulated>,
    coordination: File,
}

/// As a connection attaches beside others of dash.
fn attached<S: Storage>(
    storage: &S,
    directory: &S::Directory,
    database: &S::File,
) -> Result<Index<S>, Error> {
    attached_beside(storage, directory, database, Stock::Read)
}

/// As [`attached`], where stock SQLite may do that.
fn attached_beside<S: Storage>(
    storage: &S,
    directory: &S::Directory,
    database: &S::File,
    stock: Stock,
) -> Result<Index<S>, Error> {
    let mut index = Index::open(storage, directory, OsStr::new("db-shm"), database, true)?;
    index.let_in(stock);
    index.readmit().map(|()| index)
}

impl Connection {
    fn open(machine: &Machine) -> Result<Self, Error> {
        Self::open_beside(machine, Stock::Read)
    }

    fn open_beside(machine: &Machine, stock: Stock) -> Result<Self, Error> {
        let database = open(machine, "db");
        let coordination = open(machine, "db-dash");
        let index = attached_beside(&machine.process(), &root(machine), &database, stock)?;
        Ok(Self { index, coordination })
    }

    fn lock(&mut self, slots: std::ops::Range<usize>, kind: LockKind) -> bool {
        !busy(self.index.lock(slots, kind, &self.coordination))
    }

    fn unlock(&mut self, slots: std::ops::Range<usize>) {
        self.index.unlock(slots, &self.coordination).unwrap();
    }

    fn word(&self, region: usize, word: usize) -> &std::sync::atomic::AtomicU64 {
        self.index.regions[region].as_ref().unwrap().word(word)
    }
}

fn busy<T>(result: Result<T, Error>) -> bool {
    match result {
        Ok(_) => false,
        Err(Error::Busy) => true,
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_region_is_shared_and_stays_where_it_is() {
    let machine = Machine::new(1);
    let mut a = Connection::open(&machine).unwrap();
    let mut b = Connection::open(&machine).unwrap();
    let first = a.index.map_region(0, true).unwrap().unwrap();
    for region in [3, 1, 2, 9] {
        a.index.map_region(region, true).unwrap().unwrap();
    }
    assert_eq!(a.index.map_region(0, false).unwrap(), Some(first));
    for region in [0, 9] {
        assert!(b.index.map_region(region, false).unwrap().is_some());
        a.word(region, WORDS - 1).store(40 + region as u64, SeqCst);
        assert_eq!(b.word(region, WORDS - 1).load(SeqCst), 40 + region as u64);
    }
    assert_eq!(a.word(0, 0).as_ptr().cast(), first.as_ptr());
    assert_eq!(machine.file_view("/db-shm").unwrap().len(), 10 * 32_768);
}

#[test]
fn a_region_stays_where_it_is_in_real_memory() {
    let folder = tempfile::tempdir().unwrap();
    let directory = Real.open_directory(folder.path()).unwrap();
    let mode = OpenMode::Create { permissions: 0o644 };
    let database = directory.open(OsStr::new("db"), mode).unwrap();
    let open = || attached(&Real, &directory, &database).unwrap();
    let (mut a, mut b) = (open(), open());
    let places: Vec<_> = (0..9).map(|region| a.map_region(region, true).unwrap()).collect();
    for (region, place) in places.into_iter().enumerate() {
        assert!(place.is_some() && a.map_region(region, false).unwrap() == place);
        assert!(b.map_region(region, false).unwrap().is_some());
        let word =
            |index: &Index<Real>| index.regions[region].as_ref().unwrap().word(4095).as_ptr();
        assert!(word(&a) != word(&b));
        // Two mappings of the same memory.
        let store = |value| a.regions[region].as_ref().unwrap().word(4095).store(value, SeqCst);
        store(region as u64 + 1);
        assert_eq!(b.regions[region].as_ref().unwrap().word(4095).load(SeqCst), region as u64 + 1);
    }
    assert_eq!(a.map_region(9, false).unwrap(), None);
}

#[test]
fn connections_that_open_at_once_need_not_try_again() {
    for _ in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let directory = Real.open_directory(folder.path()).unwrap();
        let mode = OpenMode::Create { permissions: 0o644 };
        let database = directory.open(OsStr::new("db"), mode).unwrap();
        let open = || attached(&Real, &directory, &database);
        std::thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
            let all: Vec<_> = all.into_iter().map(|one| one.join().unwrap()).collect();
            assert!(all.iter().all(Result::is_ok));
        });
    }
}

#[test]
fn a_region_that_is_missing_is_made_on_demand_only() {
    let machine = Machine::new(1);
    let mut a = Connection::open(&machine).unwrap();
    assert_eq!(a.index.map_region(0, false).unwrap(), None);
    assert_eq!(a.index.map_region(1, false).unwrap(), None);
    assert!(a.index.header().is_none());
    a.index.map_region(0, true).unwrap().unwrap();
    assert_eq!(a.index.map_region(1, false).unwrap(), None);
    assert_eq!(machine.file_view("/db-shm").unwrap().len(), 32_768);
}

#[test]
fn the_first_to_attach_empties_it_and_nobody_else() {
    let machine = Machine::new(1);
    open(&machine, "db-shm").write_at(&[0x55; 70_000], 0).unwrap();
    let mut a = Connection::open(&machine).unwrap();
    assert_eq!(a.index.map_region(0, false).unwrap(), None, "what was left is gone");
    a.index.map_region(0, true).unwrap();
    assert_eq!(a.word(0, 0).load(SeqCst), 0);
    a.word(0, 7).store(7, SeqCst);
    let mut b = Connection::open(&machine).unwrap();
    b.index.map_region(0, false).unwrap().unwrap();
    assert_eq!(b.word(0, 7).load(SeqCst), 7);
    drop(a);
    drop(Connection::open(&machine).unwrap());
    assert_eq!(b.word(0, 7).load(SeqCst), 7, "one is still there");
    drop(b);
    let mut c = Connection::open(&machine).unwrap();
    assert_eq!(c.index.map_region(0, false).unwrap(), None);
}

#[test]
fn a_new_index_has_the_rights_of_the_database() {
    let machine = Machine::new(1);
    let permissions =
        |name| root(&machine).metadata(OsStr::new(name)).unwrap().unwrap().permissions;
    let mode = OpenMode::CreateNew { permissions: 0o660 };
    drop(root(&machine).open(OsStr::new("db"), mode).unwrap());
    let a = Connection::open(&machine).unwrap();
    assert_eq!(permissions("db-shm"), 0o660);
    drop(a);
    // One whose maker was killed before it had them.
    root(&machine).unlink(OsStr::new("db-shm")).unwrap();
    let mode = OpenMode::CreateNew { permissions: 0o600 };
    drop(root(&machine).open(OsStr::new("db-shm"), mode).unwrap());
    let _b = Connection::open(&machine).unwrap();
    assert_eq!(permissions("db-shm"), 0o660);
}

#[test]
fn one_that_somebody_else_is_making_is_waited_for() {
    let machine = Machine::new(1);
    let make = |name: &str, permissions| {
        let mode = OpenMode::CreateNew { permissions };
        root(&machine).open(OsStr::new(name), mode).unwrap()
    };
    let database = make("db", 0o664);
    let open = || {
        let (process, name) = (machine.process(), OsStr::new("db-shm"));
        machine.fail(Fault::new(Effect::Error(13)).on(OperationKind::Open));
        Index::<Simulated>::open(&process, &root(&machine), name, &database, true)
    };
    drop(make("db-shm", 0o600));
    assert!(open().is_ok(), "its maker's alone, and then everybody's");
    root(&machine).unlink(OsStr::new("db-shm")).unwrap();
    drop(make("db-shm", 0o640));
    let denied = open().err().unwrap();
    assert!(matches!(denied, Error::Io { operation: Operation::Open, .. }), "{denied}");
}

#[test]
fn one_that_somebody_else_has_just_made_is_joined() {
    let machine = Machine::new(1);
    let database = open(&machine, "db");
    let mut opened = 0;
    machine.watch(move |machine, operation| {
        opened += u32::from(operation.kind == OperationKind::Open);
        if opened == 2 {
            opened += 1;
            drop(open(machine, "db-shm"));
        }
    });
    let name = OsStr::new("db-shm");
    let index = Index::open(&machine.process(), &root(&machine), name, &database, true);
    let made = root(&machine).metadata(name).unwrap().unwrap();
    assert_eq!(index.ok().unwrap().file().unwrap().id(), made.id);
}

#[test]
fn a_deleted_index_goes_with_the_last_one_only() {
    let machine = Machine::new(1);
    let (a, b) = (Connection::open(&machine).unwrap(), Connection::open(&machine).unwrap());
    a.index.unmap(&root(&machine), &a.coordination, true).unwrap();
    assert!(machine.exists("/db-shm"), "another one is attached");
    b.index.unmap(&root(&machine), &b.coordination, false).unwrap();
    assert!(machine.exists("/db-shm"), "nobody asked for it");
    let c = Connection::open(&machine).unwrap();
    c.index.unmap(&root(&machine), &c.coordination, true).unwrap();
    assert!(!machine.exists("/db-shm"));
}

#[test]
fn a_name_that_stands_for_another_file_is_left() {
    let machine = Machine::new(1);
    let a = Connection::open(&machine).unwrap();
    root(&machine).rename(OsStr::new("db-shm"), OsStr::new("moved")).unwrap();
    drop(open(&machine, "db-shm"));
    a.index.unmap(&root(&machine), &a.coordination, true).unwrap();
    assert!(machine.exists("/db-shm") && machine.exists("/moved"));
}

#[test]
fn an_index_that_loses_its_name_meanwhile_is_opened_again() {
    let machine = Machine::new(1);
    drop(open(&machine, "db-shm"));
    let mut done = false;
    machine.watch(move |machine, operation| {
        // It is open, and about to be attached to: the last connection goes.
        if operation.kind == OperationKind::LockConflict && !done {
            root(machine).unlink(OsStr::new("db-shm")).unwrap();
            done = true;
        }
    });
    let a = Connection::open(&machine).unwrap();
    let named = root(&machine).metadata(OsStr::new("db-shm")).unwrap().unwrap();
    assert_eq!(named.id, a.index.file().unwrap().id());
}

/// A header that stock SQLite refuses; taking it away takes no other one.
#[test]
fn a_forbidden_header_is_none_and_goes_without_a_trace() {
    let machine = Machine::new(1);
    let mut a = Connection::open(&machine).unwrap();
    a.index.forbid().unwrap();
    assert!(a.index.header().is_none());
    assert_ne!(a.word(0, 0).load(SeqCst), 0);
    a.index.allow().unwrap();
    assert!((0..12).all(|word| a.word(0, word).load(SeqCst) == 0));
    a.word(0, 1).store(7, SeqCst);
    a.index.allow().unwrap();
    assert_eq!(a.word(0, 1).load(SeqCst), 7);
}
