//! What can be measured: one entry of [`ROWS`] each, in the order of a table. A new engine is an
//! entry, and a file if it needs one.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::durability::{KEEPS, LAST, LIMIT, NONE, RECENT, TORN};
use crate::row::{Kind, Regime, Row, Usual};
use crate::sqlite::Sqlite;

/// All of them.
pub const ROWS: &[Row] = &[
    Row {
        word: "delete",
        name: "stock DELETE",
        about: "Stock `journal_mode=DELETE`, SQLite's default",
        kind: Kind::Sqlite(Sqlite::stock("delete", "FULL")),
        durability: LAST,
        usual: &[Usual::Commits, Usual::Lives, Usual::Reads],
        note: "",
    },
    Row {
        word: "truncate",
        name: "stock TRUNCATE",
        about: "Stock `journal_mode=TRUNCATE`",
        kind: Kind::Sqlite(Sqlite::stock("truncate", "FULL")),
        durability: KEEPS,
        usual: &[Usual::Commits, Usual::Lives],
        note: "",
    },
    Row {
        word: "persist",
        name: "stock PERSIST",
        about: "Stock `journal_mode=PERSIST`",
        kind: Kind::Sqlite(Sqlite::stock("persist", "FULL")),
        durability: KEEPS,
        usual: &[Usual::Commits, Usual::Lives],
        note: "",
    },
    Row {
        word: "memory",
        name: "stock MEMORY",
        about: "Stock `journal_mode=MEMORY`",
        kind: Kind::Sqlite(Sqlite::stock("memory", "FULL")),
        durability: TORN,
        usual: &[Usual::Commits],
        note: "",
    },
    Row {
        word: "off",
        name: "stock OFF",
        about: "Stock `journal_mode=OFF`",
        kind: Kind::Sqlite(Sqlite::stock("off", "FULL")),
        durability: TORN,
        usual: &[Usual::Commits],
        note: "",
    },
    Row {
        word: "wal-growing",
        name: "stock WAL growing",
        about: "Stock WAL, log cut before every block: every commit makes it longer",
        kind: Kind::Regime(Sqlite::stock("wal", "FULL"), Regime::Growing),
        durability: KEEPS,
        usual: &[Usual::Commits],
        note: REGIMES,
    },
    Row {
        word: "wal-recycled",
        name: "stock WAL recycled",
        about: "Stock WAL, log overwritten from its start in every block, checkpoints off the clock",
        kind: Kind::Regime(Sqlite::stock("wal", "FULL"), Regime::Recycled),
        durability: KEEPS,
        usual: &[Usual::Commits],
        note: REGIMES,
    },
    Row {
        word: "wal",
        name: "stock WAL",
        about: "Stock WAL as it comes, checkpoints among the commits",
        kind: Kind::Sqlite(Sqlite::stock("wal", "FULL")),
        durability: KEEPS,
        usual: &[Usual::Lives, Usual::Reads],
        note: "",
    },
    Row {
        word: "wal-normal",
        name: "stock WAL NORMAL",
        about: "Stock WAL, `synchronous=NORMAL`",
        kind: Kind::Sqlite(Sqlite::stock("wal", "NORMAL")),
        durability: RECENT,
        usual: &[Usual::Commits, Usual::Lives],
        note: "",
    },
    Row {
        word: "dash-single",
        name: "dash single",
        about: "dash, one flush per commit",
        kind: Kind::Sqlite(Sqlite::dash("shadow", "vfs=dash&dash_commit=single", 2)),
        durability: KEEPS,
        usual: &[Usual::Commits, Usual::Lives, Usual::Reads],
        note: "",
    },
    Row {
        word: "dash-exclusive",
        name: "dash exclusive",
        about: "dash, the paper's protocol for an exclusive connection",
        kind: Kind::Sqlite(Sqlite::dash("shadow", "vfs=dash&dash_commit=exclusive", 2)),
        durability: KEEPS,
        usual: &[Usual::Commits, Usual::Lives],
        note: "",
    },
    Row {
        word: "dash-paper",
        name: "dash paper",
        about: "dash, the paper's protocol",
        kind: Kind::Sqlite(Sqlite::dash("shadow", "vfs=dash&dash_commit=paper", 2)),
        durability: KEEPS,
        usual: &[Usual::Commits, Usual::Lives],
        note: "",
    },
    Row {
        word: "dash-wal",
        name: "dash WAL",
        about: "dash in WAL mode: commits become durable in its log",
        kind: Kind::Sqlite(Sqlite::dash("wal", "vfs=dash&journal_mode=wal", 1)),
        durability: KEEPS,
        usual: &[Usual::Commits, Usual::Lives, Usual::Reads],
        note: DASH_WAL,
    },
    Row {
        word: "dash-wal-barrier",
        name: "dash WAL, -wal flushed",
        about: "The same with `dash_barrier=wal`: checkpoints flush `-wal`, and don't rely on the log",
        kind: Kind::Sqlite(Sqlite::dash("wal", "vfs=dash&journal_mode=wal&dash_barrier=wal", 1)),
        durability: KEEPS,
        usual: &[],
        note: DASH_WAL,
    },
    Row {
        word: "dash-statement",
        name: "dash statement",
        about: "The same, and each commit's statements are recorded beside it",
        kind: Kind::Sqlite(Sqlite::dash("statement", "vfs=dash&journal_mode=statement", 1)),
        durability: KEEPS,
        usual: &[],
        note: "",
    },
    Row {
        word: "dash-plain",
        name: "dash as shim, DELETE",
        about: "dash's VFS as a shim alone, `journal_mode=delete`",
        kind: Kind::Sqlite(Sqlite::dash("delete", "vfs=dash&journal_mode=delete", 1)),
        durability: LAST,
        usual: &[Usual::Reads],
        note: "",
    },
    Row {
        word: "floor",
        name: "stock OFF, no flush",
        about: "Stock `journal_mode=OFF`, `synchronous=OFF`: what SQLite itself costs",
        kind: Kind::Sqlite(Sqlite::stock("off", "OFF")),
        durability: NONE,
        usual: &[Usual::Cycles],
        note: "",
    },
    Row {
        word: "limit",
        name: "the limit of the disk",
        about: "One 4 KiB direct overwrite and a flush per commit",
        kind: Kind::Limit,
        durability: LIMIT,
        usual: &[Usual::Commits],
        note: "",
    },
    #[cfg(feature = "redb")]
    Row {
        word: "redb",
        name: "redb",
        about: "redb, one durable put per commit",
        kind: Kind::Store(crate::stores::redb::open),
        durability: KEEPS,
        usual: &[],
        note: "",
    },
    #[cfg(feature = "fjall")]
    Row {
        word: "fjall",
        name: "fjall",
        about: "fjall, one durable put per commit",
        kind: Kind::Store(crate::stores::fjall::open),
        durability: KEEPS,
        usual: &[],
        note: "",
    },
    #[cfg(feature = "heed")]
    Row {
        word: "lmdb",
        name: "LMDB (heed)",
        about: "LMDB, one durable put per commit",
        kind: Kind::Store(crate::stores::lmdb::open),
        durability: KEEPS,
        usual: &[],
        note: "",
    },
    // As a new engine would come in.
    #[cfg(test)]
    Row {
        word: "toy",
        name: "toy",
        about: "Stock SQLite under another name",
        kind: Kind::Sqlite(Sqlite::stock("delete", "FULL")),
        durability: LAST,
        usual: &[],
        note: "",
    },
];

const REGIMES: &str = "stock WAL growing: the log is cut before each block, as after every open; recycled: it is overwritten from its start; checkpoints are off the clock in both, and among the commits in the row `wal`";

const DASH_WAL: &str =
    "dash WAL: checkpoints are among the commits, as they come, and their bytes are counted";

/// The row of this word; as a constant, a wrong word does not compile.
///
/// # Panics
///
/// If there is none.
pub const fn named(word: &str) -> &'static Row {
    let mut at = 0;
    while at < ROWS.len() {
        if same(ROWS[at].word.as_bytes(), word.as_bytes()) {
            return &ROWS[at];
        }
        at += 1;
    }
    panic!("no row has this word")
}

const fn same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

/// For the command line.
pub fn parser() -> impl TypedValueParser<Value = &'static Row> {
    let values = ROWS.iter().map(|row| PossibleValue::new(row.word).help(row.about));
    PossibleValuesParser::new(values).map(|word| named(&word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extension::Extension;

    #[test]
    fn every_engine_opens_in_its_own_journal_mode_and_keeps_a_row() {
        let _extension = Extension::load().expect("libdash.so is built beside the tests");
        let folder = tempfile::tempdir().expect("a folder");
        for row in ROWS.iter().filter(|row| row.sqlite().is_some()) {
            let path = folder.path().join(row.word);
            let db = row.open(&path).expect("opens");
            db.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (7)").expect("writes");
            drop(db);
            let db = row.start(&path).expect("opens again");
            let x: i64 = db.query_row("SELECT x FROM t", [], |row| row.get(0)).expect("reads");
            assert_eq!(x, 7, "{row:?}");
        }
    }

    #[test]
    fn every_store_that_is_built_in_takes_values() {
        let folder = tempfile::tempdir().expect("a folder");
        for row in ROWS {
            let Kind::Store(open) = row.kind else { continue };
            let folder = folder.path().join(row.word);
            std::fs::create_dir(&folder).expect("a folder of its own");
            let mut store = open(&folder).expect("opens");
            (0..3).try_for_each(|key| store.put(key, &[7; 100])).expect("puts");
        }
    }

    #[test]
    fn words_and_names_tell_rows_apart() {
        for row in ROWS {
            assert_eq!(ROWS.iter().filter(|other| other.word == row.word).count(), 1, "{row:?}");
            assert_eq!(ROWS.iter().filter(|other| other.name == row.name).count(), 1, "{row:?}");
        }
    }
}
