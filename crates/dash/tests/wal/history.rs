//! Random histories of statements over three connections, and one that may only read, beside stock
//! SQLite's: each answer, each error, and the size of each file after each step. A failure names
//! its seed; `DASH_SUITE_SEED=n` runs that one alone, and `DASH_SUITE_HISTORIES=n` more of them
//! than usual.

use dash_testing::random::Random;

use crate::beside_stock::{KINDS, Side, checkpoint, control, same, say};
use crate::common::*;

/// Histories that are run when nothing else is asked for.
const HISTORIES: u64 = 8;
const STEPS: usize = 150;

fn statement(random: &mut Random) -> String {
    let (a, b, c) = (random.below(400), 2 + random.below(20), random.below(9000));
    match random.below(20) {
        0..=3 => format!("INSERT INTO t VALUES (zeroblob({c}))"),
        4 => format!("UPDATE t SET x = printf('%0{c}d', rowid) WHERE rowid % {b} = 1"),
        5 => format!("DELETE FROM t WHERE rowid % {b} = {}", a % b),
        6 => format!("INSERT INTO t SELECT x FROM t WHERE rowid % {b} = 0 LIMIT 20"),
        7 => format!("CREATE TABLE IF NOT EXISTS u{b}(x); INSERT INTO u{b} VALUES ({a})"),
        8 => format!("DROP TABLE IF EXISTS u{b}; SELECT count(*) FROM sqlite_schema"),
        9 | 10 => random.one_of(&["BEGIN", "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"]).into(),
        11 => random.one_of(&["ROLLBACK", "SAVEPOINT a", "ROLLBACK TO a", "RELEASE a"]).into(),
        12..=14 => "COMMIT".into(),
        15 => format!("PRAGMA journal_size_limit={}", [-1, 0, 30_000][a % 3]),
        16 => format!("PRAGMA wal_autocheckpoint={}", [0, 1, 10, 1000][a % 4]),
        17 => random.one_of(&SETTINGS).into(),
        _ => "SELECT count(*), sum(length(x)), sum(rowid) FROM t".into(),
    }
}

/// Without mapped pages: stock SQLite lengthens a mapped database before a checkpoint, and cuts it
/// where that is complete.
const SETTINGS: [&str; 9] = [
    "PRAGMA cache_size=5",
    "PRAGMA cache_size=-2000",
    "PRAGMA synchronous=OFF",
    "PRAGMA synchronous=NORMAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA incremental_vacuum(3)",
    "PRAGMA locking_mode=EXCLUSIVE",
    "PRAGMA locking_mode=NORMAL",
    "VACUUM",
];

/// Three, and a reader.
fn open(side: &Side, who: usize) -> Connection {
    match who {
        3 => side.try_open("app.db", "&mode=ro").expect("opens"),
        _ => side.open("app.db"),
    }
}

const READS: [&str; 6] = [
    "BEGIN",
    "COMMIT",
    "SELECT count(*), sum(length(x)), sum(rowid) FROM t",
    "SELECT count(*) FROM t",
    "PRAGMA mmap_size=1000000",
    "PRAGMA journal_mode=WAL",
];

/// One step: what was done by whom, what it answered, and how long the files are.
fn step(side: &Side, random: &mut Random, connections: &mut [Connection; 4]) -> String {
    let who = random.below(4);
    let (done, answer) = match random.below(32) {
        0 => {
            *connections = [(); 4].map(|()| Connection::open_in_memory().expect("opens"));
            let closed = format!("{:?}", side.sizes("app.db"));
            *connections = std::array::from_fn(|who| open(side, who));
            ("closes all, and opens them again".into(), closed)
        }
        1..=2 => {
            connections[who] = open(side, who);
            ("opens".into(), String::new())
        }
        _ if who == 3 => {
            let sql = random.one_of(&READS);
            (sql.into(), say(&connections[who], sql))
        }
        3..=5 => {
            let (name, kind) = KINDS[random.below(KINDS.len())];
            let answer = checkpoint(&connections[who], Some("main"), kind);
            (name.to_owned(), format!("{answer:?}"))
        }
        6..=7 => {
            let on = i64::from(random.below(2) == 0);
            let op = rusqlite::ffi::SQLITE_FCNTL_PERSIST_WAL;
            (format!("keeps the log: {on}"), format!("{:?}", control(&connections[who], op, on)))
        }
        _ => {
            let sql = statement(random);
            let answer = say(&connections[who], &sql);
            (sql, answer)
        }
    };
    format!("{who}: {done}: {answer} {:?}", side.sizes("app.db"))
}

#[test]
fn any_history_gives_what_stock_gives() {
    let asked = |name| std::env::var(name).ok().map(|text| text.parse().expect("a number"));
    let seeds = match asked("DASH_SUITE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..asked("DASH_SUITE_HISTORIES").unwrap_or(HISTORIES),
    };
    for seed in seeds {
        same(&[], |side| {
            let mut random = Random(seed);
            let mut connections = std::array::from_fn(|who| open(side, who));
            let mut said = vec![format!("seed {seed}")];
            for _ in 0..STEPS {
                said.push(step(side, &mut random, &mut connections));
            }
            for db in connections {
                said.push(say(&db, "PRAGMA integrity_check; SELECT count(*) FROM t"));
            }
            said
        });
    }
}
