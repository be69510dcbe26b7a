//! What mode statement sets itself (SQLite/SSL, VLDB 2017, Tables 3 and 6), with its log on a block
//! device and in byte-addressable memory. A tmpfs stands in for that: what a commit costs there is
//! told, and nothing of it is durable.

mod counter;
mod recovery;

use std::path::{Path, PathBuf};

use dash_bench::durability::NONE;
use dash_bench::row::{Kind, Row};
use dash_bench::sqlite::Sqlite;

use super::bench::{Bench, Measure};
use crate::failure::{Explain, Result};
use crate::measure;
use crate::numbers::float;
use crate::options::{Choice, Options, Where};
use crate::report::{Section, Target};
use crate::sides::{DASH_WAL, NORMAL, STATEMENT, WAL};
use crate::table::Table;
use crate::volume::Volume;
use crate::workload::{Name, Step, Worker};
use counter::{counter, counters};

/// Every section of it.
pub const SECTIONS: [Measure; 3] = [
    ("statement-time", times),
    ("statement-counts", counts),
    ("statement-recovery", recovery::measure),
];

/// Where logs are in memory, and what is said of them.
const FOLDER: &str = "/dev/shm/dash-lab-logs";
const STAND_IN: &str = "stock rows as they are called; dash's log is in a tmpfs, which stands in for persistent memory: nothing is durable there";
const ROUNDS: usize = 40;

/// The log in memory; with the statements beside the differences, and without.
static MEMORY: Row = in_memory(
    "dash-statement-memory",
    "dash statement, log in tmpfs",
    "vfs=dash&journal_mode=statement&dash_log=/dev/shm/dash-lab-logs",
    "statement",
);
static MEMORY_WITHOUT_TEXT: Row = in_memory(
    "dash-wal-memory",
    "dash WAL, log in tmpfs",
    "vfs=dash&journal_mode=wal&dash_log=/dev/shm/dash-lab-logs",
    "wal",
);

/// `-wal` in memory.
static ALONE: Row = in_memory(
    "dash-statement-alone",
    "dash statement, -wal in memory",
    "vfs=dash&journal_mode=statement&dash_wal=memory&dash_log=/dev/shm/dash-lab-logs",
    "statement",
);

const fn in_memory(
    word: &'static str,
    name: &'static str,
    parameters: &'static str,
    mode: &'static str,
) -> Row {
    let kind = Kind::Sqlite(Sqlite::dash(mode, parameters, 1));
    Row { word, name, about: "", kind, durability: NONE, usual: &[], note: "" }
}

/// The folder of the logs; gone with this.
struct Logs;

impl Logs {
    fn make() -> Result<Self> {
        std::fs::create_dir_all(FOLDER).explain(format!("making {FOLDER}"))?;
        Ok(Self)
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(FOLDER));
    }
}

/// Times of one thread.
fn times(bench: &Bench) -> Result<Section> {
    let what = "alternating blocks, p50 of all, on V";
    let mut section = Section::new("statement-time", what, STAND_IN);
    let _logs = Logs::make()?;
    let volume = bench.volumes.v()?;
    let rows: [&'static Row; 5] = [NORMAL, &MEMORY, &ALONE, &MEMORY_WITHOUT_TEXT, WAL];
    for (name, word, most) in
        [(Name::Insert, "insert of 100 bytes", 1.12), (Name::Androbench, "AndroBench", 1.2)]
    {
        let table = run(bench, name, &rows, Where::Dir, volume)?;
        let p50 = |row: &Row| table.line(row).map_or(0.0, |line| line.latency.p50);
        let (dash, without) = (p50(&MEMORY), p50(&MEMORY_WITHOUT_TEXT));
        let times = |one: f64, other: f64| one / other.max(f64::MIN_POSITIVE);
        for (row, what) in [(&ALONE, "log in tmpfs, -wal in memory"), (&MEMORY, "log in tmpfs")] {
            section.target(
                format!("{word}: dash, {what} / stock WAL NORMAL, which flushes nothing"),
                times(p50(row), p50(NORMAL)),
                "x",
                Target::AtMost(most),
            );
            section.target(
                format!("{word}: stock WAL FULL on the disk / dash, {what}"),
                times(p50(WAL), p50(row)),
                "x",
                Target::AtLeast(5.0),
            );
        }
        section.target(
            format!("{word}: recording the statement"),
            dash - without,
            "us",
            Target::AtMost(5.0),
        );
        for row in rows {
            section.figure(format!("{word}: {}, p50", row.name), p50(row), "us");
        }
    }
    let table = run(bench, Name::RandomB, &[WAL, STATEMENT, DASH_WAL], Where::Dir, volume)?;
    let mean = |row| table.line(row).map_or(0.0, |line| line.latency.mean);
    section.target(
        "2,000 updates a transaction (Random-B), all durable: stock WAL FULL / dash statement, mean",
        mean(WAL) / mean(STATEMENT).max(f64::MIN_POSITIVE),
        "x",
        Target::AtLeast(0.95),
    );
    Ok(section)
}

fn run(
    bench: &Bench,
    name: Name,
    rows: &[&'static Row],
    on: Where,
    volume: &Volume,
) -> Result<Table> {
    let mut options = Options::of(Choice::of(name, 1), rows, on);
    options.rounds = Some(bench.many(ROUNDS));
    measure::run(&options, volume, String::new())
}

/// Bytes, which are exact.
fn counts(bench: &Bench) -> Result<Section> {
    let what = "AndroBench: 1,024 inserts, updates and deletes";
    let mut section = Section::new("statement-counts", what, STAND_IN);
    let _logs = Logs::make()?;
    let folder = tempfile::tempdir_in(bench.volumes.home()).explain("making a folder")?;
    for (row, text, label, most) in [
        (&MEMORY_WITHOUT_TEXT, "off", "tmpfs, without text", Some(192.0)),
        (&MEMORY, "slack", "tmpfs, with text in the slack", None),
        (&MEMORY, "full", "tmpfs, with all text", None),
        (STATEMENT, "slack", "the disk, with text in the slack", None),
    ] {
        let path = folder.path().join(format!("{}-{text}.db", row.word));
        let bytes = record_bytes(bench, row, &path, text)?;
        let label = format!("bytes of a record, log on {label}");
        match most {
            Some(most) => section.target(label, bytes, "B", Target::AtMost(most)),
            None => section.figure(label, bytes, "B"),
        }
    }
    let (stock, alone) =
        (page_writes(bench, WAL, folder.path())?, page_writes(bench, &ALONE, folder.path())?);
    section.target(
        "pages written, dash with -wal in memory / stock WAL FULL",
        alone / stock.max(f64::MIN_POSITIVE),
        "x",
        Target::AtMost(0.05),
    );
    section.figure("stock WAL FULL: pages written", stock, "pages");
    section.figure("dash, -wal in memory: pages written, the log not counted", alone, "pages");
    let volume = bench.volumes.l()?;
    let rows: [&'static Row; 3] = [WAL, &MEMORY, STATEMENT];
    let table = run(bench, Name::Androbench, &rows, Where::Memory, volume)?;
    let kib = |row: &Row| {
        let cost = table.line(row).and_then(|line| line.cost.as_ref());
        cost.map_or(0.0, |cost| cost.kib + cost.later_kib)
    };
    section.target(
        "KiB written to the disk, dash with its log in tmpfs / stock WAL FULL",
        kib(&MEMORY) / kib(WAL).max(f64::MIN_POSITIVE),
        "x",
        Target::AtMost(0.6),
    );
    for row in rows {
        section.figure(format!("{}: written to the disk a transaction", row.name), kib(row), "KiB");
    }
    Ok(section)
}

/// The mean length of the records of one run, padding among it.
fn record_bytes(bench: &Bench, row: &'static Row, path: &PathBuf, text: &str) -> Result<f64> {
    let workload = Choice::of(Name::Androbench, 1).settings()?.workload()?;
    let db = row.open(path)?;
    workload.build(&db)?;
    db.execute_batch(&format!("PRAGMA dash_statement_text={text}")).explain("choosing the text")?;
    let path: &Path = path;
    let worker = Worker { row, path, db: Some(&db), index: 0, of: 1 };
    let mut session = workload.session(&worker)?;
    let before = counters(&db)?;
    for _ in 0..bench.many(3 * 1024) {
        if session.step()? == Step::End {
            break;
        }
    }
    let after = counters(&db)?;
    let [bytes, records] = [after[0] - before[0], after[1] - before[1]];
    Ok(float(bytes.unsigned_abs()) / float(records.unsigned_abs()).max(1.0))
}

/// Pages of 4 KiB that a run, and the checkpoint behind it, write into the database and the file of
/// `-wal`.
fn page_writes(bench: &Bench, row: &'static Row, folder: &Path) -> Result<f64> {
    let path = folder.join(format!("{}-pages.db", row.word));
    let workload = Choice::of(Name::Androbench, 1).settings()?.workload()?;
    let db = row.open(&path)?;
    workload.build(&db)?;
    db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").explain("emptying -wal")?;
    let worker = Worker { row, path: &path, db: Some(&db), index: 0, of: 1 };
    let mut session = workload.session(&worker)?;
    let is_dash = row.word == ALONE.word;
    let bytes = || {
        if is_dash {
            counter(&db, "wal_file_bytes").and_then(|wal| Ok(wal + counter(&db, "database_bytes")?))
        } else {
            written()
        }
    };
    let before = bytes()?;
    for _ in 0..bench.many(3 * 1024) {
        if session.step()? == Step::End {
            break;
        }
    }
    drop(session);
    db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").explain("the last checkpoint")?;
    Ok(float((bytes()? - before).unsigned_abs()) / 4096.0)
}

/// Bytes that this process has given to calls that write, as the kernel counts them.
fn written() -> Result<i64> {
    let text = std::fs::read_to_string("/proc/self/io").explain("reading /proc/self/io")?;
    let line = text.lines().find_map(|line| line.strip_prefix("wchar: "));
    Ok(line.and_then(|number| number.trim().parse().ok()).unwrap_or(0))
}
