//! The rows of a table: engines, stock WAL in its two regimes apart, the limit, and other engines
//! that are built in by feature.

use clap::ValueEnum;

use crate::engine::{Durability, Engine, KEEPS};

/// A row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Row {
    /// dash, one flush per commit.
    DashSingle,
    /// dash, the paper's protocol for an exclusive connection.
    DashExclusive,
    /// dash, the paper's protocol.
    DashPaper,
    /// dash, kept open for a second after its last close.
    DashLinger,
    /// dash's VFS as a shim alone, `journal_mode=delete`.
    DashPlain,
    /// Stock WAL, log cut before every block: every commit makes it longer.
    WalGrowing,
    /// Stock WAL, log overwritten from its start in every block, checkpoints off the clock.
    WalRecycled,
    /// Stock WAL as it comes, checkpoints among the commits.
    Wal,
    /// Stock WAL, `synchronous=NORMAL`.
    WalNormal,
    /// Stock `journal_mode=PERSIST`.
    Persist,
    /// Stock `journal_mode=TRUNCATE`.
    Truncate,
    /// Stock `journal_mode=DELETE`, SQLite's default.
    Delete,
    /// Stock `journal_mode=MEMORY`.
    Memory,
    /// Stock `journal_mode=OFF`.
    Off,
    /// Stock `journal_mode=OFF`, `synchronous=OFF`.
    Floor,
    /// The `sqlite-vfs` crate's way through, `journal_mode=DELETE`.
    Shim,
    /// One 4 KiB direct overwrite and a flush per commit.
    Limit,
    /// redb, one durable put per commit.
    #[cfg(feature = "redb")]
    Redb,
    /// fjall, one durable put per commit.
    #[cfg(feature = "fjall")]
    Fjall,
    /// LMDB, one durable put per commit.
    #[cfg(feature = "heed")]
    Lmdb,
}

/// Where stock WAL's log is when a block begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Regime {
    /// Empty.
    Growing,
    /// Long, and overwritten from its start.
    Recycled,
}

impl Regime {
    /// What brings it there.
    pub fn checkpoint(self) -> &'static str {
        match self {
            Self::Growing => "PRAGMA wal_checkpoint(TRUNCATE)",
            Self::Recycled => "PRAGMA wal_checkpoint(RESTART)",
        }
    }
}

const LIMIT: Durability = Durability {
    word: "no database at all",
    sentence: "4 KiB direct overwrite in a file made before, and a flush: no commit on this disk can be faster",
};

impl Row {
    /// The engine under it, where it is SQLite.
    pub fn engine(self) -> Option<Engine> {
        Some(match self {
            Self::DashSingle => Engine::Single,
            Self::DashExclusive => Engine::Exclusive,
            Self::DashPaper => Engine::Paper,
            Self::DashLinger => Engine::Linger,
            Self::DashPlain => Engine::Plain,
            Self::WalGrowing | Self::WalRecycled | Self::Wal => Engine::Wal,
            Self::WalNormal => Engine::WalNormal,
            Self::Persist => Engine::Persist,
            Self::Truncate => Engine::Truncate,
            Self::Delete => Engine::Delete,
            Self::Memory => Engine::Memory,
            Self::Off => Engine::Off,
            Self::Floor => Engine::Floor,
            Self::Shim => Engine::Shim,
            _ => return None,
        })
    }

    /// The regime it is kept in.
    pub fn regime(self) -> Option<Regime> {
        match self {
            Self::WalGrowing => Some(Regime::Growing),
            Self::WalRecycled => Some(Regime::Recycled),
            _ => None,
        }
    }

    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::WalGrowing => "stock WAL growing",
            Self::WalRecycled => "stock WAL recycled",
            Self::Limit => "the limit of the disk",
            #[cfg(feature = "redb")]
            Self::Redb => "redb",
            #[cfg(feature = "fjall")]
            Self::Fjall => "fjall",
            #[cfg(feature = "heed")]
            Self::Lmdb => "LMDB (heed)",
            _ => self.engine().map_or("", Engine::name),
        }
    }

    /// The name that clap knows it by.
    pub fn word(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// What its commits survive.
    pub fn durability(self) -> Durability {
        match self {
            Self::Limit => LIMIT,
            _ => self.engine().map_or(KEEPS, Engine::durability),
        }
    }

    /// Whether it is another store than SQLite, which can only put.
    pub fn is_store(self) -> bool {
        self.engine().is_none() && self != Self::Limit
    }
}
