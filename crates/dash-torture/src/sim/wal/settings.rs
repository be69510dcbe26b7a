//! What a program of kind `wal` draws from its seed, and how its connections are opened.

use rusqlite::{Connection, Result};

use crate::random::{Dice, mix};
use crate::sim::explore::{Checked, Explorer, wrong};
use crate::sim::sql::{failed, vfs};
use crate::sim::stock::Level;
use crate::sim::subject::{WalMode, World};

/// How a database is locked, and where the wal-index is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locking {
    /// Transaction by transaction.
    Normal,
    /// By one connection for itself, once it has the shared memory,
    Shared,
    /// and before it would have had it: the wal-index is its own.
    Heap,
}

/// How far one may rely on a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// It survives everything.
    Durable,
    /// It survives as long as the power is on.
    Visible,
}

/// The variant of which one process has the database at a time.
const ALONE: &str = "alone";
/// The variant beside which stock SQLite writes.
const BESIDE: &str = "beside";
/// The variant beside which it checkpoints, too.
const CHECKPOINTED: &str = "checkpointed";

/// The settings of a program.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What the engine promises.
    pub claims: WalMode,
    /// Bytes of a page.
    page: usize,
    vacuum: u64,
    /// In which process each connection is.
    pub places: Vec<usize>,
    /// How it is locked.
    pub locking: Locking,
    /// `PRAGMA wal_autocheckpoint`.
    auto_checkpoint: u64,
    /// `PRAGMA journal_size_limit`.
    size_limit: i64,
    /// Whether `-wal` stays when the last one closes.
    pub keeps_log: bool,
    /// `PRAGMA cache_size`: with a few pages SQLite writes before the commit.
    cache: u64,
    /// Whether nobody, or hardly anybody, flushes.
    pub is_lazy: bool,
    /// Whether stock SQLite takes part.
    pub has_neighbours: bool,
    /// Whether flushes fail.
    pub has_faults: bool,
    /// Whether SQLite is an older version, which leaves frames without checksums.
    pub is_older: bool,
    /// `psow=0`: the last frame of a commit is written again, to the end of a sector.
    pads: bool,
    /// `PRAGMA dash_barrier`, if it is set.
    barrier: Option<&'static str>,
    /// `PRAGMA dash_durability`.
    durability: &'static str,
    /// Whether statements carry commits, on simulated storage.
    carries: bool,
    /// Whether one process has it.
    pub is_alone: bool,
}

impl Settings {
    /// Those of a case.
    pub fn draw(explorer: &Explorer, claims: WalMode) -> Self {
        let seed = mix(explorer.plan.seed ^ 0x7761_6c00);
        let mut dice = Dice::new(seed, 6000);
        let places = [vec![0], vec![0, 0], vec![0, 1], vec![0, 0, 1], vec![0, 1, 2]];
        let places = dice.pick(&places).unwrap_or_default();
        let alone = places.len() == 1;
        let lockings = [Locking::Normal, Locking::Shared, Locking::Shared, Locking::Heap];
        let locking = if alone { lockings[dice.index(4)] } else { Locking::Normal };
        let is_beside = [BESIDE, CHECKPOINTED].contains(&explorer.setup.variant);
        let has_neighbours = locking == Locking::Normal && (dice.one_in(3) || is_beside);
        // One process has it, and its index is no connection's own.
        let is_alone = explorer.setup.variant == ALONE;
        let locking = if is_alone && locking == Locking::Heap { Locking::Shared } else { locking };
        let places = if is_alone { vec![0; places.len()] } else { places };
        let keeps_stock_writers_out = claims.keeps_stock_writers_out && !is_beside;
        let claims = WalMode { keeps_stock_writers_out, ..claims };
        let kinds = ["host", "host", "host", "host", "full", "device", "none"];
        let durability = kinds[dice.index(kinds.len())];
        Self {
            claims,
            page: explorer.setup.page,
            vacuum: dice.below(3),
            places,
            locking,
            auto_checkpoint: [0, 1, 3, 10, 10, 1000][dice.index(6)],
            size_limit: [-1, -1, 0, 9000][dice.index(4)],
            keeps_log: dice.one_in(4),
            cache: [4, 8, 8, 2000][dice.index(4)],
            is_lazy: dice.one_in(5),
            has_neighbours,
            has_faults: claims.failed_flushes && !has_neighbours && dice.one_in(4),
            // What a killed one leaves stock SQLite sees, and may lose: it always takes part here.
            is_older: claims.pragmas
                && !is_beside
                && locking != Locking::Heap
                && dice.one_in(if has_neighbours { 2 } else { 6 }),
            barrier: (claims.pragmas && dice.one_in(8)).then_some("wal"),
            durability: if claims.pragmas { durability } else { "host" },
            // A stock program that removes -wal would leave a question to a person.
            // The extension refuses both at once.
            carries: claims.pragmas && !has_neighbours && !is_alone && dice.one_in(3),
            is_alone,
            pads: claims.pragmas && dice.one_in(4),
        }
    }

    /// A level of `synchronous`; OFF only beside a connection that was promised something.
    pub fn level(&self, is_promised: bool, dice: &mut Dice) -> Level {
        // What makes a commit durable then is no call of SQLite's on `-wal`.
        if self.always_flushes() && dice.one_in(2) {
            return Level::Normal;
        }
        let most = if self.is_lazy { 8 } else { 1 };
        match dice.below(8 + most) {
            0..8 => [Level::Full, Level::Extra][usize::from(dice.one_in(8))],
            8 | 9 if self.claims.beside_off && is_promised && dice.one_in(2) => Level::Off,
            _ => Level::Normal,
        }
    }

    fn always_flushes(&self) -> bool {
        matches!(self.durability, "full" | "device")
    }

    /// What a commit of a connection at this level is worth.
    pub fn promise(&self, level: Level) -> Promise {
        match self.durability {
            _ if self.always_flushes() => Promise::Durable,
            "none" => Promise::Visible,
            _ => stock_promise(level),
        }
    }

    /// Whether a whole checkpoint of such a connection makes durable what was committed.
    pub fn checkpoint_flushes(&self, level: Level) -> bool {
        self.durability != "none" && (level > Level::Off || self.claims.beside_off)
    }

    /// Opens the database through the engine, in WAL mode.
    pub fn open(&self, world: World, level: Level) -> Checked<Connection> {
        let db = vfs::open(world).map_err(|error| failed("opening", &error))?;
        let mode = self.prepare(&db, level).map_err(|error| failed("opening", &error))?;
        match mode.as_str() {
            "wal" => Ok(db),
            _ => wrong!("opening: the journal mode stays {mode}"),
        }
    }

    fn prepare(&self, db: &Connection, level: Level) -> Result<String> {
        db.set_prepared_statement_cache_capacity(0);
        db.busy_timeout(std::time::Duration::ZERO)?;
        let Self { page, vacuum, cache, .. } = self;
        if self.locking == Locking::Heap {
            db.execute_batch("PRAGMA locking_mode=EXCLUSIVE")?;
        }
        if self.claims.pragmas {
            let (durability, keeps) = (self.durability, u8::from(self.keeps_log));
            let (older, carries) = (u8::from(self.is_older), u8::from(self.carries));
            let pads = u8::from(self.pads);
            db.execute_batch(&format!(
                "PRAGMA dash_durability={durability}; PRAGMA keeps_log={keeps};
                 PRAGMA older={older}; PRAGMA carries={carries}; PRAGMA pads={pads}"
            ))?;
            if let Some(barrier) = self.barrier {
                db.execute_batch(&format!("PRAGMA dash_barrier={barrier}"))?;
            }
        }
        // Entering the mode is a transaction with a journal.
        db.execute_batch(&format!(
            "PRAGMA temp_store=MEMORY; PRAGMA cache_size={cache}; PRAGMA synchronous=EXTRA"
        ))?;
        let pages: i64 = db.query_row("PRAGMA page_count", [], |row| row.get(0))?;
        if pages == 0 {
            db.execute_batch(&format!("PRAGMA page_size={page}; PRAGMA auto_vacuum={vacuum}"))?;
        }
        let mode = enter(db)?;
        self.set(db, level)?;
        if self.locking == Locking::Shared {
            if self.is_alone {
                // Else the index of a database that was just made is the connection's own.
                db.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
            }
            db.execute_batch("PRAGMA locking_mode=EXCLUSIVE; SELECT count(*) FROM sqlite_schema")?;
        }
        Ok(mode)
    }

    /// Sets what can be set at any time.
    pub fn set(&self, db: &Connection, level: Level) -> Result<()> {
        let Self { auto_checkpoint, size_limit, .. } = self;
        db.execute_batch(&format!(
            "PRAGMA synchronous={level:?}; PRAGMA wal_autocheckpoint={auto_checkpoint};
             PRAGMA journal_size_limit={size_limit}"
        ))
    }
}

/// What a commit of stock SQLite is worth.
pub fn stock_promise(level: Level) -> Promise {
    if level >= Level::Full { Promise::Durable } else { Promise::Visible }
}

/// Enters WAL mode; answers the mode that it is in then.
pub fn enter(db: &Connection) -> Result<String> {
    db.query_row("PRAGMA journal_mode=WAL", [], |row| row.get(0))
}
