//! Runs statements again that carry commits whose frames a power loss took: by the host's own
//! SQLite, in a connection that nobody else sees, on pages that the engine of mode wal shows.
//!
//! To that SQLite the database is a file of its own in a rollback mode ([`pages`]): what a
//! statement does to pages does not depend on how they become durable, but where it frees pages
//! that were changed ([`BEGIN`]). What it writes goes to the engine commit by commit.
//!
//! A log may have been written by anybody, and SQL reaches further than pages do. So nothing is run
//! that does not provably replay: no `ATTACH`, no function, no trigger. Behind that there is a
//! second wall, which knows nothing of it: SQLite asks [`bounds`] about all that a statement does.
//!
//! The source is SQLite/SSL (VLDB 2017), section 5.

mod bounds;
mod pages;

use std::sync::{Arc, Mutex};

use dash_ffi::{Code, Error, HostVfs, OpenFlags, OwnConnection, Ran, Result, ToBind};
use dash_statement::{Event, Schema, Statement, Transaction, Value, decode, provable};
use dash_wal::{Error as EngineError, Execute, Pages, Runner};

pub use pages::open;

/// What the connection is set to: the pages are nobody else's, and nothing need be durable. A
/// statement that fails takes back what it did, for which there is a journal in memory. The size of
/// the cache, 2 MB, is not that which the database says (`default_cache_size`).
const SETTINGS: &str = "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=MEMORY; \
     PRAGMA synchronous=OFF; PRAGMA temp_store=MEMORY; PRAGMA foreign_keys=OFF; \
     PRAGMA cache_size=-2000";

/// In WAL mode SQLite writes all that was changed. In a rollback mode it leaves out what was freed
/// since, unless there is a savepoint that might want it back (`pager.c`, `sqlite3PagerDontWrite`).
const BEGIN: [&str; 2] = ["BEGIN", "SAVEPOINT \"dash runs statements again\""];

/// The SQLite of a host.
#[derive(Clone, Copy)]
pub struct Executor {
    host: HostVfs,
    runner: Runner,
}

impl std::fmt::Debug for Executor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.runner)
    }
}

impl Executor {
    /// That of this one.
    pub fn of(host: &HostVfs) -> Self {
        let version = u32::try_from(host.sqlite_version()).unwrap_or(0);
        let texts = host.sqlite_build();
        let build = texts.iter().flat_map(|text| text.bytes().chain([0]));
        Self { host: *host, runner: Runner { version, build: checksum(build) } }
    }
}

/// FNV-1a, 64 bits.
fn checksum(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl Execute for Executor {
    fn runner(&self) -> Runner {
        self.runner
    }

    fn execute(&self, pages: &Arc<Mutex<dyn Pages>>, commits: &[Vec<u8>]) -> dash_wal::Result<()> {
        let file = pages::File::new(Arc::clone(pages));
        let run = || {
            let running = file.running();
            let flags = OpenFlags::READWRITE;
            let mut db = self.host.connect(running.path(), flags, c"dash")?;
            db.run(SETTINGS)?;
            // None of them changes it.
            let schema = file.schema()?;
            db.confine(&bounds::of(file.extent(), commits))?;
            for commit in commits {
                run_again(&mut db, &judged(commit, &schema)?)?;
                file.commit()?;
            }
            Ok(())
        };
        run().map_err(|error: Error| file.cause().unwrap_or_else(|| failed(&error)))
    }
}

/// Nothing was let in: it can be tried again.
fn failed(error: &Error) -> EngineError {
    let forged = [Code::CORRUPT, Code::AUTH, Code::INTERRUPT, Code::TOOBIG];
    EngineError::CantOpen(match forged.contains(&error.code.primary()) {
        true => format!(
            "statements that carry commits (dash_commit=paper) are none that dash writes: {error}. The log is \
             forged or damaged, and nothing of it was let in: look who wrote it, restore a backup, or let `sqlite-dash recover --discard` \
             go on without them"
        ),
        false => format!(
            "statements that carry commits (dash_commit=paper) could not be run again: {error}. What sets up each \
             connection of this program (sqlite3_auto_extension) may be in the way: open it with another one, or let `sqlite-dash recover \
             --discard` go on without them"
        ),
    })
}

/// What a commit ran, if that provably comes to the same again.
fn judged(commit: &[u8], schema: &Schema) -> Result<Transaction> {
    let corrupt = |why: String| Error::new(Code::CORRUPT, why);
    let ran = decode(commit).map_err(|error| corrupt(error.to_string()))?.once();
    match provable(&ran, schema) {
        Ok(()) => Ok(ran),
        Err(reason) => Err(corrupt(reason.sentence().to_owned())),
    }
}

/// Runs a transaction, and commits it.
fn run_again(db: &mut OwnConnection, ran: &Transaction) -> Result<()> {
    BEGIN.iter().try_for_each(|sql| run(db, sql, &[]))?;
    for event in &ran.events {
        match event {
            Event::Statement(statement) => again(db, statement)?,
            // Nothing went back to one. Each would keep what pages held before in memory, and
            // change nothing that is written.
            Event::Control(..) => {}
        }
    }
    run(db, "COMMIT", &[])
}

fn again(db: &mut OwnConnection, statement: &Statement) -> Result<()> {
    let values: Vec<_> = statement.values.iter().flatten().map(to_bind).collect();
    run(db, &statement.sql, &values)
}

/// Runs one statement, which stays prepared.
fn run(db: &mut OwnConnection, sql: impl AsRef<[u8]>, values: &[ToBind<'_>]) -> Result<()> {
    match db.execute(sql.as_ref(), values) {
        Ran::Done => Ok(()),
        // The same SQLite could parse it the first time, and no limit of the program's is lower.
        Ran::Unprepared(error) if error.code.primary() == Code::ERROR => {
            Err(Error::new(Code::CORRUPT, error.to_string()))
        }
        // None of them failed the first time.
        Ran::Unprepared(error) | Ran::Failed(error) => Err(error),
    }
}

fn to_bind(value: &Value) -> ToBind<'_> {
    match value {
        Value::Null | Value::Pointer => ToBind::Null,
        Value::Integer(value) => ToBind::Integer(*value),
        Value::Real(bits) => ToBind::Real(f64::from_bits(*bits)),
        Value::Text(text) => ToBind::Text(text),
        Value::Blob(blob) => ToBind::Blob(blob),
        Value::Zeroblob(count) => ToBind::Zeros(*count),
    }
}
