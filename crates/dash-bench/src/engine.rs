//! How each side opens a database, and what a commit that returned survives there.

use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;
use rusqlite::{Connection, OpenFlags};

use crate::extension::escape;
use crate::failure::{Explain, Failure, Result};
use crate::shim;

/// What a table of [`crate::targets`] says about every row that commits.
pub const DURABLE: &str = "every commit flushed before it returns (synchronous=FULL on every side)";
/// What it says of rows that only read.
pub const READS_ONLY: &str = "nothing is written";

/// How long a connection waits for another one.
const BUSY_TIMEOUT: Duration = Duration::from_secs(20);

/// Who keeps the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// dash, `dash_commit=single`.
    Single,
    /// dash, `dash_commit=exclusive`.
    Exclusive,
    /// dash, `dash_commit=paper`.
    Paper,
    /// dash, `dash_commit=single`, `dash_linger=1000`.
    Linger,
    /// dash as a shim alone: `journal_mode=delete` through its VFS.
    Plain,
    /// Stock SQLite, `journal_mode=WAL`.
    Wal,
    /// The same with `synchronous=NORMAL`.
    WalNormal,
    /// Stock SQLite, `journal_mode=PERSIST`.
    Persist,
    /// Stock SQLite, `journal_mode=TRUNCATE`.
    Truncate,
    /// Stock SQLite, `journal_mode=DELETE`.
    Delete,
    /// Stock SQLite, `journal_mode=MEMORY`.
    Memory,
    /// Stock SQLite, `journal_mode=OFF`.
    Off,
    /// The same with `synchronous=OFF`: what SQLite itself costs.
    Floor,
    /// The `sqlite-vfs` crate passing through to files, `journal_mode=DELETE`.
    Shim,
}

/// What a commit that returned survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Durability {
    /// For a column, under the heading "after power loss".
    pub word: &'static str,
    /// The whole of it.
    pub sentence: &'static str,
}

/// Nothing is lost.
pub const KEEPS: Durability = Durability {
    word: "keeps every commit",
    sentence: "a commit that returned survives process kill, kernel crash and power loss",
};
/// As DELETE does it.
const LAST: Durability = Durability {
    word: "may lose the last",
    sentence: "power loss may take the last commit back: the journal's deletion is not flushed (synchronous=EXTRA flushes it)",
};
/// As WAL does it with `synchronous=NORMAL`.
const RECENT: Durability = Durability {
    word: "may lose recent ones",
    sentence: "survives process kill; power loss takes the commits since the last checkpoint; the database stays whole",
};
/// Flushed, not atomic.
const TORN: Durability = Durability {
    word: "may be destroyed",
    sentence: "flushed when it returns, but a crash in the middle of a commit destroys the database",
};
/// Nothing at all.
const NONE: Durability = Durability {
    word: "likely destroyed",
    sentence: "nothing is flushed and nothing is atomic: what SQLite's own work costs, no engine can be faster",
};

impl Engine {
    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Single => "dash single",
            Self::Exclusive => "dash exclusive",
            Self::Paper => "dash paper",
            Self::Linger => "dash lingering",
            Self::Plain => "dash as shim, DELETE",
            Self::Wal => "stock WAL",
            Self::WalNormal => "stock WAL NORMAL",
            Self::Persist => "stock PERSIST",
            Self::Truncate => "stock TRUNCATE",
            Self::Delete => "stock DELETE",
            Self::Memory => "stock MEMORY",
            Self::Off => "stock OFF",
            Self::Floor => "stock OFF, no flush",
            Self::Shim => "sqlite-vfs, DELETE",
        }
    }

    /// The name that clap knows it by, and files are called after.
    pub fn word(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// What its commits survive.
    pub fn durability(self) -> Durability {
        match self {
            Self::Single
            | Self::Exclusive
            | Self::Paper
            | Self::Linger
            | Self::Wal
            | Self::Persist
            | Self::Truncate => KEEPS,
            Self::Delete | Self::Plain | Self::Shim => LAST,
            Self::WalNormal => RECENT,
            Self::Memory | Self::Off => TORN,
            Self::Floor => NONE,
        }
    }

    /// Whether it is dash's shadow mode.
    pub fn is_dash(self) -> bool {
        matches!(self, Self::Single | Self::Exclusive | Self::Paper | Self::Linger)
    }

    /// Whether it is stock SQLite's WAL.
    pub fn is_wal(self) -> bool {
        matches!(self, Self::Wal | Self::WalNormal)
    }

    /// What the answer to `PRAGMA journal_mode` must be.
    fn journal_mode(self) -> &'static str {
        match self {
            Self::Single | Self::Exclusive | Self::Paper | Self::Linger => "shadow",
            Self::Plain | Self::Delete | Self::Shim => "delete",
            Self::Wal | Self::WalNormal => "wal",
            Self::Persist => "persist",
            Self::Truncate => "truncate",
            Self::Memory => "memory",
            Self::Off | Self::Floor => "off",
        }
    }

    fn synchronous(self) -> &'static str {
        match self {
            Self::WalNormal => "NORMAL",
            Self::Floor => "OFF",
            _ => "FULL",
        }
    }

    /// Opens, and nothing more: what an application does at its start where the mode is in the
    /// file.
    pub fn connect(self, path: &Path) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let with_uri = flags | OpenFlags::SQLITE_OPEN_URI;
        let file = || escape(path);
        match self {
            Self::Single | Self::Exclusive | Self::Paper => {
                let uri = format!("file:{}?vfs=dash&dash_commit={}", file(), self.word());
                Connection::open_with_flags(uri, with_uri)
            }
            Self::Linger => Connection::open_with_flags(
                format!("file:{}?vfs=dash&dash_linger=1000", file()),
                with_uri,
            ),
            Self::Plain => Connection::open_with_flags(
                format!("file:{}?vfs=dash&journal_mode=delete", file()),
                with_uri,
            ),
            Self::Shim => Connection::open_with_flags_and_vfs(path, flags, shim::NAME),
            _ => Connection::open_with_flags(path, flags),
        }
    }

    /// [`Self::connect`], and the settings that the file does not keep: what an application does at
    /// each start.
    pub fn start(self, path: &Path) -> rusqlite::Result<Connection> {
        let db = self.connect(path)?;
        if !(self.is_dash() || matches!(self, Self::Wal | Self::Delete | Self::Plain | Self::Shim))
        {
            db.pragma_update_and_check(None, "journal_mode", self.journal_mode(), |_| Ok(()))?;
            db.pragma_update(None, "synchronous", self.synchronous())?;
        }
        Ok(db)
    }

    /// Opens a database, puts it into the journal mode, and makes sure that it is.
    pub fn open(self, path: &Path) -> Result<Connection> {
        let what = || format!("opening {} by {}", path.display(), self.name());
        if self == Self::Shim {
            shim::register()?;
        }
        let db = self.connect(path).explain(what())?;
        db.busy_timeout(BUSY_TIMEOUT).explain(what())?;
        let wanted = self.journal_mode();
        let ask = if self.is_dash() {
            "PRAGMA journal_mode".to_owned()
        } else {
            format!("PRAGMA journal_mode={wanted}")
        };
        let mode: String = db.query_row(&ask, [], |row| row.get(0)).explain(what())?;
        if mode != wanted {
            return Err(Failure::new(format!("{}: journal mode {mode}, not {wanted}", what())));
        }
        // Foreign keys are off in SQLite as it is shipped, but on in the build that is linked here.
        let settings =
            format!("PRAGMA synchronous={}; PRAGMA foreign_keys=OFF", self.synchronous());
        db.execute_batch(&settings).explain(what())?;
        Ok(db)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extension::Extension;

    #[test]
    fn every_engine_opens_in_its_own_journal_mode_and_keeps_a_row() {
        let _extension = Extension::load().expect("libdash.so is built beside the tests");
        let folder = tempfile::tempdir().expect("a folder");
        for engine in Engine::value_variants() {
            let path = folder.path().join(engine.word());
            let db = engine.open(&path).expect("opens");
            db.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (7)").expect("writes");
            drop(db);
            let db = engine.start(&path).expect("opens again");
            let x: i64 = db.query_row("SELECT x FROM t", [], |row| row.get(0)).expect("reads");
            assert_eq!(x, 7, "{}", engine.name());
        }
    }
}
