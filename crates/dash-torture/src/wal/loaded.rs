//! What the loaded extension keeps beside a database in mode `wal`, and what programs say to it.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use dash_storage::real::Real;

use crate::engine::{Level, Loaded, Statements};

/// The files.
pub struct Files;

const STATEMENTS: Statements = Statements {
    settings: &[
        "PRAGMA wal_autocheckpoint = 5",
        "PRAGMA wal_autocheckpoint = 60",
        "PRAGMA wal_autocheckpoint = 60; PRAGMA journal_size_limit = 9000",
        "PRAGMA wal_autocheckpoint = 1000",
    ],
    maintenance: &[
        "PRAGMA wal_checkpoint(PASSIVE)",
        "PRAGMA wal_checkpoint(FULL)",
        "PRAGMA wal_checkpoint(RESTART)",
        "PRAGMA wal_checkpoint(TRUNCATE)",
        "PRAGMA dash_barrier = wal",
        "PRAGMA dash_barrier = log",
    ],
    levels: &[
        Level::durable("PRAGMA dash_durability = host; PRAGMA synchronous = EXTRA"),
        Level::durable("PRAGMA dash_durability = host; PRAGMA synchronous = FULL"),
        Level::lazy("PRAGMA dash_durability = host; PRAGMA synchronous = NORMAL"),
        Level::lazy("PRAGMA synchronous = FULL; PRAGMA dash_durability = none"),
        Level {
            needs_a_promise: true,
            ..Level::lazy("PRAGMA dash_durability = host; PRAGMA synchronous = OFF")
        },
        Level::durable("PRAGMA synchronous = NORMAL; PRAGMA dash_durability = full"),
        Level::durable("PRAGMA synchronous = FULL; PRAGMA dash_durability = device"),
    ],
};

/// Whether a rollback journal of stock SQLite is to be rolled back. One that is over may stay: it
/// goes when the name fence takes its name.
fn is_hot(database: &Path) -> bool {
    let mut name = database.as_os_str().to_owned();
    name.push("-journal");
    let mut first = [0];
    File::open(name).and_then(|mut file| file.read_exact(&mut first)).is_ok() && first != [0]
}

impl Loaded for Files {
    fn beside(&self) -> &'static [&'static str] {
        &["-dashlog", "-wal"]
    }

    fn may_be_left(&self) -> &'static [&'static str] {
        &["-wal", "-dashlog", "-journal"]
    }

    fn needs_recovery(&self, database: &Path) -> Result<bool, String> {
        let seen = dash_wal::inspect(&Real, database)
            .map_err(|error| format!("inspecting what was left: {error}"))?;
        let log = seen.log.transpose()?;
        Ok(seen.fence
            || is_hot(database)
            || seen.coordination.is_some()
            || seen.wal.is_some_and(|wal| wal.len > 0)
            || log.is_some_and(|log| log.chain.is_some()))
    }

    fn statements(&self) -> &'static Statements {
        &STATEMENTS
    }

    fn choice(&self) -> Option<&'static str> {
        None
    }

    // `-wal` stays as long as somebody reads it.
    fn rests_beside_readers(&self) -> bool {
        false
    }

    fn shows_failed_commits(&self) -> bool {
        true
    }

    // Its commits are in `-wal`, and in the log.
    fn commits_flush_the_database(&self) -> bool {
        false
    }

    // The log may have all of a lost `-wal`; only a person can tell, so it is refused.
    fn has_copy_of(&self, _ending: &str, _database: &Path) -> bool {
        false
    }

    // As stock SQLite, which needs shared memory beside a database in WAL mode.
    fn reads_without_writing(&self) -> bool {
        false
    }
}
