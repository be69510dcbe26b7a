//! A database in WAL mode on a simulated machine, the real SQLite on top, and what a power loss or
//! a kill may leave of it.
//!
//! Each commit inserts the next number into one table and counts in another one, so that what is
//! found is told by one number, and half a commit is seen.

mod content;
mod db;
mod fate;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dash_simulated::{Machine, OperationKind};
use dash_torture::sim::subject::{Setup, Sizes, World};
use dash_torture::sim::{Saved, Stock, open_sqlite};

use crate::subject::Simulation;
use content::payload;
pub use content::{content, said};
pub use db::Db;
use fate::inode;
pub use fate::{Fate, Left, changes, is_fenced, losses, overwrite, remove};

/// Bytes of a page.
pub const PAGE: usize = 1024;

/// The database.
pub const DB: &str = "/app.db";

/// Where the log lies in memory.
pub const LOG: &str = "/pmem/app.db-dashlog";

/// A machine, and what has been committed there.
#[derive(Clone)]
pub struct Tale {
    pub machine: Machine,
    variant: &'static str,
    told: Arc<Told>,
}

#[derive(Default)]
struct Told {
    /// The newest commit that must survive.
    acknowledged: AtomicI64,
    /// The newest one that was tried.
    tried: AtomicI64,
    /// What was wrong inside a call.
    wrong: Mutex<Option<String>>,
    /// What was looked at already.
    seen: Mutex<HashSet<(u64, i64)>>,
}

impl Tale {
    /// A machine with an empty database at rest, durable, in WAL mode.
    pub fn new() -> Self {
        Self::on(Machine::new(1))
    }

    /// The same, on a machine with settings of its own.
    pub fn on(machine: Machine) -> Self {
        break_as_asked();
        Self { machine, variant: "log", told: Arc::default() }.filled()
    }

    /// The same, with a log in byte-addressable memory.
    pub fn in_memory() -> Self {
        break_as_asked();
        let machine = Machine::new(1);
        machine.set_byte_addressable_folder("pmem");
        Self { machine, variant: "memory", told: Arc::default() }.filled()
    }

    /// The same, with `-wal` in the memory of one process.
    pub fn alone() -> Self {
        Self::of("alone")
    }

    /// A machine with such a database, beside which stock SQLite writes.
    pub fn beside() -> Self {
        Self::of("beside")
    }

    /// One of this variant of the engine.
    pub fn of(variant: &'static str) -> Self {
        break_as_asked();
        Self { machine: Machine::new(1), variant, told: Arc::default() }.filled()
    }

    fn filled(self) -> Self {
        let tale = self;
        let first = tale.open();
        first.ok("CREATE TABLE t(k INTEGER PRIMARY KEY, v BLOB); CREATE TABLE u(n)");
        first.ok("INSERT INTO u VALUES(0); CREATE TABLE big(v)");
        first.close();
        tale.machine.write_back();
        tale
    }

    /// The same machine, for whoever has `-wal` in memory.
    #[must_use]
    pub fn alone_on(tale: &Self) -> Self {
        Self { variant: "alone", ..tale.clone() }
    }

    /// The same machine, for whoever is not told where the log is.
    #[must_use]
    pub fn untold(&self) -> Self {
        Self { variant: "log", ..self.clone() }
    }

    /// One whose log is in use: two commits.
    pub fn begun() -> (Self, Db) {
        Self::new().used()
    }

    /// The same, in memory.
    pub fn begun_in_memory() -> (Self, Db) {
        Self::in_memory().used()
    }

    /// The same, with `-wal` in memory.
    pub fn begun_alone() -> (Self, Db) {
        Self::alone().used()
    }

    /// One whose log is in use, beside which stock SQLite writes.
    pub fn begun_beside() -> (Self, Db) {
        Self::beside().used()
    }

    fn used(self) -> (Self, Db) {
        let tale = self;
        let db = tale.open();
        db.put();
        db.put();
        assert!(tale.flushes("-dashlog") > 0, "the log is in use");
        (tale, db)
    }

    /// Goes on on another machine.
    #[must_use]
    pub fn after(&self, machine: Machine) -> Self {
        let told = Told {
            acknowledged: self.acknowledged().into(),
            tried: self.tried().into(),
            ..Told::default()
        };
        Self { machine, variant: self.variant, told: Arc::new(told) }
    }

    /// The same machine, on which so many commits were seen, and others were not.
    #[must_use]
    pub fn with(&self, commits: i64) -> Self {
        let tale = self.after(self.machine.clone());
        tale.told.tried.store(commits, SeqCst);
        tale
    }

    /// A connection in a new process.
    pub fn open(&self) -> Db {
        self.try_open().unwrap()
    }

    pub fn try_open(&self) -> Result<Db, String> {
        self.open_in(self.process(), "")
    }

    /// A connection in a new process, which has not read anything.
    pub fn opened_only(&self) -> rusqlite::Connection {
        open_sqlite(self.process()).unwrap()
    }

    /// One with `psow=0`: a commit that is flushed ends with frames that pad a sector.
    pub fn open_padding(&self) -> Db {
        self.open_in(self.process(), "PRAGMA pads=1").unwrap()
    }

    /// One that has the database for itself before it reads anything: SQLite shares no wal-index.
    pub fn open_exclusive(&self) -> Db {
        self.open_in(self.process(), "PRAGMA locking_mode=EXCLUSIVE").unwrap()
    }

    /// A process opens the database, and is killed before the operation of these kinds with this
    /// number, from 0; whether it came so far.
    pub fn open_killed(&self, at: usize, kinds: &'static [OperationKind]) -> bool {
        let world = self.process();
        let (victim, mut left) = (world.process.clone(), Some(at));
        let saved = Arc::new(Mutex::new(None));
        let kept = Arc::clone(&saved);
        self.machine.watch(move |machine, operation| {
            if kinds.contains(&operation.kind)
                && let Some(number) = left
            {
                left = number.checked_sub(1);
                if left.is_none() {
                    *kept.lock().unwrap() = Some(Saved::take(machine, DB));
                    machine.kill(&victim);
                }
            }
        });
        drop(self.open_in(world, ""));
        self.machine.watch(|_, _| {});
        let saved = saved.lock().unwrap().take();
        saved.map(Saved::restore).is_some()
    }

    /// A new process, in which nothing is open.
    fn process(&self) -> World {
        let setup = Setup { variant: self.variant, page: PAGE, sizes: Sizes::Tiny, secure: false };
        World::new(self.machine.process(), &Simulation, setup)
    }

    fn open_in(&self, world: World, first: &str) -> Result<Db, String> {
        let process = world.process.clone();
        let db = open_sqlite(world.clone()).map_err(|error| said(&error))?;
        let lazy = AtomicBool::new(false);
        let db = Db { db, process, world, tale: self.clone(), lazy };
        db.db.busy_timeout(Duration::ZERO).unwrap();
        db.db.set_prepared_statement_cache_capacity(0);
        db.run(first)?;
        db.run(&format!(
            "PRAGMA page_size={PAGE}; PRAGMA temp_store=MEMORY; PRAGMA cache_size=8; PRAGMA synchronous=EXTRA"
        ))?;
        let mode = db.value::<String>("PRAGMA journal_mode=WAL")?;
        assert_eq!(mode, "wal");
        db.run("PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0")?;
        Ok(db)
    }

    pub fn acknowledged(&self) -> i64 {
        self.told.acknowledged.load(SeqCst)
    }

    /// All that was committed must survive from here on.
    pub fn all_counts(&self) {
        self.told.acknowledged.store(self.tried(), SeqCst);
    }

    pub fn tried(&self) -> i64 {
        self.told.tried.load(SeqCst)
    }

    /// The inode of a file beside the database; 0: there is none.
    pub fn inode(&self, ending: &str) -> u64 {
        inode(&self.machine, ending)
    }

    /// How often a file was flushed, with success.
    pub fn flushes(&self, ending: &str) -> usize {
        let wanted = self.inode(ending);
        use OperationKind::{Fence, Flush, WriteDurable};
        let flush = |kind| matches!(kind, Flush | WriteDurable | Fence);
        let entries = self.machine.journal().entries;
        let of = entries.iter().filter(|entry| entry.operation.inode == wanted);
        of.filter(|entry| flush(entry.operation.kind) && entry.error.is_none()).count()
    }

    /// How often a file was written.
    pub fn writes(&self, ending: &str) -> usize {
        let wanted = self.inode(ending);
        let entries = self.machine.journal().entries;
        let of = entries.iter().filter(|entry| entry.operation.inode == wanted);
        of.filter(|entry| entry.operation.kind == OperationKind::Write).count()
    }

    /// Whatever is lost now, what was acknowledged survives.
    pub fn survives_all(&self) {
        if let Err(what) = self.look(&self.machine, 8) {
            panic!("{what}");
        }
    }

    /// So it is before every step from here on, until [`Self::done`].
    pub fn watch(&self) {
        let tale = self.clone();
        self.machine.watch(move |machine, operation| {
            if changes(operation.kind) {
                tale.note(
                    tale.look(machine, 2)
                        .map_err(|what| format!("before {}: {what}", operation.kind)),
                );
            }
        });
    }

    /// A commit of stock SQLite, in FULL.
    pub fn put_stock(&self, stock: &Stock) -> Result<(), String> {
        self.put_stock_at(stock, "FULL")
    }

    /// A commit of stock SQLite, which promises nothing but in FULL.
    pub fn put_stock_at(&self, stock: &Stock, level: &str) -> Result<(), String> {
        let number = self.tried() + 1;
        let run = || {
            stock.db.execute_batch(&format!("PRAGMA synchronous={level}; BEGIN IMMEDIATE"))?;
            stock.db.execute("INSERT INTO t VALUES(?1, ?2)", (number, payload(number)))?;
            stock.db.execute_batch("UPDATE u SET n = n + 1; COMMIT")
        };
        self.told.tried.store(number, SeqCst);
        if let Err(error) = run() {
            self.told.tried.store(number - 1, SeqCst);
            return Err(said(&error));
        }
        if level == "FULL" {
            self.all_counts();
        }
        Ok(())
    }

    /// A connection of stock SQLite, which has read.
    pub fn open_stock(&self) -> Stock {
        let stock = Stock::open_sharing(self.machine.process()).unwrap();
        stock.db.execute_batch("PRAGMA wal_autocheckpoint=0").unwrap();
        content(&stock.db).unwrap();
        stock
    }

    /// Notes what is wrong inside a call.
    pub fn note(&self, result: Result<(), String>) {
        if let Err(what) = result {
            self.told.wrong.lock().unwrap().get_or_insert(what);
        }
    }

    /// Ends it: nothing was wrong meanwhile.
    pub fn done(&self) {
        self.machine.watch(|_, _| {});
        if let Some(what) = self.told.wrong.lock().unwrap().take() {
            panic!("{what}");
        }
    }

    fn look(&self, machine: &Machine, random: u64) -> Result<(), String> {
        for (fate, after) in losses(machine, random) {
            let state = (after.state_hash(), self.acknowledged());
            if self.told.seen.lock().unwrap().insert(state) {
                let found = self.survives(&after);
                found.map_err(|what| format!("{fate}: {what}"))?;
            }
        }
        Ok(())
    }

    /// What is found on a machine after an accident: by stock SQLite, if nothing keeps it out, and
    /// by the engine; that it is durable, and that it goes on.
    pub fn survives(&self, after: &Machine) -> Result<i64, String> {
        let (least, most) = (self.acknowledged(), self.tried());
        let allowed = |who: &str, found: i64| match (least..=most).contains(&found) {
            true => Ok(found),
            false => Err(format!("{who} finds {found} commits, not {least} to {most}")),
        };
        if !is_fenced(after) {
            let copy = after.killed();
            let stock = Stock::open_sharing(copy.process()).map_err(|error| said(&error))?;
            let found = content(&stock.db).map_err(|what| format!("stock SQLite: {what}"))?;
            allowed("stock SQLite", found)?;
            copy.kill(&stock.process);
        }
        let next = self.after(after.clone());
        let db = next.try_open()?;
        let found = allowed("the next opener", content(&db.db)?)?;
        let again = next.after(after.power_loss(&mut Fate::nothing()));
        let db_again = again.try_open()?;
        match content(&db_again.db)? {
            same if same == found => {}
            other => {
                return Err(format!("{found} commits were recovered, and {other} the next time"));
            }
        }
        db_again.kill();
        // Two more: the first may need no log.
        next.told.tried.store(found, SeqCst);
        for _ in 0..2 {
            db.try_put()?;
        }
        let last = next.after(after.power_loss(&mut Fate::nothing()));
        db.kill();
        let db = last.try_open()?;
        let then = content(&db.db)?;
        db.kill();
        match then == found + 2 {
            true => Ok(found),
            false => Err(format!("of {} commits after a recovery {then} survive", found + 2)),
        }
    }
}

/// `DASH_MUTATION` names a way to break the engine: to find the stories that see it.
fn break_as_asked() {
    use dash_wal::mutation::{Mutation, set};
    let Ok(wanted) = std::env::var("DASH_MUTATION") else { return };
    let named = |(mutation, _): &&(Mutation, &str)| format!("{mutation:?}") == wanted;
    let (mutation, _) = Mutation::ALL.iter().find(named).unwrap();
    set(Some(*mutation));
}
