//! The dead-man switch and SQLite's bytes, with stock connections: modelled ones, and real SQLite
//! in a process of its own.

use super::super::slots::SLOTS;
use super::super::{Index, READ, WRITE};
use super::{Connection, Machine, OsStr, attached, attached_beside, busy, root};
use crate::testing::{STOCK, open};
use dash_engine::error::Error;
use dash_simulated::{OperationKind, StockDescriptor};
use dash_storage::LockKind::{Exclusive, Shared};
use dash_storage::real::Real;
use dash_storage::{Directory, File as _, OpenMode, Storage};
use dash_testing::stock::Stock;

const SWITCH: std::ops::Range<u64> = 128..129;

/// A stock process with the index open, which holds some left-overs.
fn stock(machine: &Machine) -> StockDescriptor {
    drop(open(machine, "db"));
    open(machine, "db-shm").write_at(&[0x55; 32_768], 0).unwrap();
    machine.open_stock("/db-shm").unwrap()
}

#[test]
fn an_index_that_stock_sqlite_has_is_kept() {
    let machine = Machine::new(1);
    let stock = stock(&machine);
    assert!(stock.lock(SWITCH, Shared));
    let a = Connection::open(&machine).unwrap();
    assert_eq!(stock.read_all(), [0x55; 32_768]);
    a.index.unmap(&root(&machine), &a.coordination, true).unwrap();
    assert!(machine.exists("/db-shm"));
    stock.unlock();
    let _b = Connection::open(&machine).unwrap();
    assert_eq!(stock.read_all(), []);
    assert!(stock.lock(SWITCH, Shared) && !stock.lock(SWITCH, Exclusive), "dash holds it");
}

#[test]
fn whoever_empties_it_is_not_waited_for() {
    let machine = Machine::new(1);
    let stock = stock(&machine);
    assert!(stock.lock(SWITCH, Exclusive));
    assert!(busy(Connection::open(&machine)));
    stock.unlock();
    drop(Connection::open(&machine).unwrap());
}

#[test]
fn whoever_dies_before_it_has_emptied_it_leaves_that_to_the_next_one() {
    let machine = Machine::new(1);
    let (stock, other) = (stock(&machine), machine.open_stock("/db-shm").unwrap());
    assert!(stock.lock(SWITCH, Exclusive));
    let mut stock = Some(stock);
    machine.watch(move |_, operation| {
        // Its lock is gone just before ours is asked for.
        if operation.kind == OperationKind::Lock && operation.range == Some(SWITCH) {
            stock.take();
        }
    });
    if let Err(error) = Connection::open(&machine) {
        assert!(matches!(error, Error::Busy), "{error}");
        assert!(!other.lock(SWITCH, Shared), "nobody has died");
    } else {
        assert_eq!(other.read_all(), [], "old content counts for nothing");
    }
}

#[test]
fn an_opener_meets_stock_writers_and_leaves_nothing_behind() {
    let machine = Machine::new(1);
    let stock = stock(&machine);
    for byte in 120..123 {
        assert!(stock.lock(SWITCH, Shared) && stock.lock(byte..byte + 1, Exclusive));
        assert!(busy(Connection::open(&machine)), "{byte}");
        stock.unlock();
        assert!(stock.lock(120..129, Exclusive), "no lock of the opener is left");
        stock.unlock();
    }
    assert!(stock.lock(SWITCH, Shared) && stock.lock(123..128, Exclusive));
    let mut a = Connection::open(&machine).unwrap();
    assert!(!a.lock(READ..READ + 1, Shared) && a.lock(WRITE..READ, Exclusive));
    assert!(!a.lock(READ..SLOTS, Exclusive));
}

/// A database in WAL mode on a real file system, with a stock connection to it in another process.
struct Folder {
    stock: Stock,
    folder: tempfile::TempDir,
}

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut stock = Stock::open(STOCK, &folder.path().join("db"));
        stock.run("PRAGMA journal_mode=WAL").unwrap();
        stock.run("CREATE TABLE t(x)").unwrap();
        Self { stock, folder }
    }

    fn directory(&self) -> <Real as Storage>::Directory {
        Real.open_directory(self.folder.path()).unwrap()
    }

    fn open(&self, name: &str) -> <Real as Storage>::File {
        let mode = OpenMode::Create { permissions: 0o644 };
        self.directory().open(OsStr::new(name), mode).unwrap()
    }

    fn attach(&self) -> Result<Index<Real>, Error> {
        attached(&Real, &self.directory(), &self.open("db"))
    }

    /// With writers let in.
    fn attach_beside(&self) -> Result<Index<Real>, Error> {
        attached_beside(&Real, &self.directory(), &self.open("db"), crate::options::Stock::Write)
    }
}

#[test]
fn real_sqlite_reads_beside_dash_and_does_not_write() {
    let mut there = Folder::new();
    let index = there.attach().unwrap();
    let coordination = there.open("db-dash");
    assert_eq!(there.stock.run("SELECT count(*) FROM t").unwrap(), "Integer(0)");
    assert!(!there.stock.can("INSERT INTO t VALUES (1)"));
    assert!(!there.stock.can("BEGIN IMMEDIATE"));
    let checkpoint = there.stock.run("PRAGMA wal_checkpoint(PASSIVE)");
    assert_eq!(checkpoint.unwrap(), "Integer(1)", "busy");
    index.unmap(&there.directory(), &coordination, true).unwrap();
    assert!(there.stock.can("INSERT INTO t VALUES (1)"));
    assert_eq!(there.stock.run("PRAGMA wal_checkpoint(PASSIVE)").unwrap(), "Integer(0)");
}

#[test]
fn real_sqlite_writes_beside_dash_that_lets_it_and_checkpoints_where_no_session_lasts() {
    let mut there = Folder::new();
    let mut index = there.attach_beside().unwrap();
    index.map_region(0, false).unwrap();
    let coordination = there.open("db-dash");
    let checkpoint =
        |there: &mut Folder| there.stock.run("PRAGMA wal_checkpoint(RESTART)").unwrap();
    for _ in 0..3 {
        assert!(there.stock.can("INSERT INTO t VALUES (1)"));
        assert_eq!(checkpoint(&mut there), "Integer(0)");
        index.guard().unwrap();
        assert!(there.stock.can("INSERT INTO t VALUES (1)"));
        assert_eq!(checkpoint(&mut there), "Integer(1)", "busy");
        let before = index.header().unwrap();
        assert!(there.stock.can("INSERT INTO t VALUES (1)"));
        let after = index.header().unwrap();
        assert!(after.salts == before.salts && after.mx_frame > before.mx_frame, "it appends");
        index.lock(WRITE..WRITE + 1, Exclusive, &coordination).unwrap();
        assert!(!there.stock.can("BEGIN IMMEDIATE"));
        index.unlock(WRITE..WRITE + 1, &coordination).unwrap();
        index.unguard().unwrap();
        assert_eq!(checkpoint(&mut there), "Integer(0)");
    }
    assert_eq!(there.stock.run("SELECT count(*) FROM t").unwrap(), "Integer(9)");
    there.stock.run("BEGIN IMMEDIATE").unwrap();
    let mut other = there.attach_beside().unwrap();
    assert!(busy(other.lock(WRITE..WRITE + 1, Exclusive, &coordination)));
    there.stock.run("ROLLBACK").unwrap();
    other.lock(WRITE..WRITE + 1, Exclusive, &coordination).unwrap();
    index.unmap(&there.directory(), &coordination, true).unwrap();
}

#[test]
fn dash_meets_the_locks_of_real_sqlite() {
    let mut there = Folder::new();
    there.stock.run("BEGIN IMMEDIATE").unwrap();
    assert!(busy(there.attach()), "it writes");
    there.stock.run("ROLLBACK").unwrap();
    let mut index = there.attach().unwrap();
    let coordination = there.open("db-dash");
    let taken = |index: &mut Index<Real>| {
        let mut one = |slot: usize| {
            let taken = busy(index.lock(slot..slot + 1, Exclusive, &coordination));
            index.unlock(slot..slot + 1, &coordination).unwrap();
            taken
        };
        (0..SLOTS).filter(|&slot| one(slot)).collect::<Vec<_>>()
    };
    there.stock.run("BEGIN").unwrap();
    there.stock.run("SELECT count(*) FROM t").unwrap();
    let marks = taken(&mut index);
    assert!(marks.len() == 1 && marks[0] > READ, "one read mark: {marks:?}");
    assert!(busy(index.lock(READ..SLOTS, Exclusive, &coordination)));
    there.stock.run("COMMIT").unwrap();
    assert_eq!(taken(&mut index), []);
    index.lock(0..SLOTS, Exclusive, &coordination).unwrap();
}
