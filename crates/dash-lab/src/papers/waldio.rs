//! WALDIO (USENIX ATC 2015, the slides): throughput and I/O volume of inserts, updates and deletes
//! of 100 bytes. Mode wal is after it; stock SQLite's modes are the baselines of both.
//!
//! The slides' words are quoted with the slide's title. Most of their bars have no figure.

use super::comparison::Comparison;
use super::runner::Runner;
use crate::failure::Result;
use crate::options::Choice;
use crate::row::Row;
use crate::sides::{DASH_WAL, DELETE, PERSIST, SINGLE, TRUNCATE, WAL, WAL_GROWING};
use crate::table::{Cost, Table};
use crate::workload::Name;

const ROWS: [&Row; 7] = [DELETE, TRUNCATE, PERSIST, WAL, WAL_GROWING, DASH_WAL, SINGLE];
const WORKS: [(Name, &str); 3] =
    [(Name::Insert, "insert"), (Name::Update, "update"), (Name::Delete, "delete")];
/// Connections that commit at the same time.
const MANY: [usize; 2] = [4, 16];
/// The slide "Performance comparison": inserts, times stock WAL's.
const PERFORMANCE: [(&str, f64); 3] = [
    ("no flush, groups of 4 (WALDIO-NS+GS4; not durable on most devices)", 7.4),
    ("persistent direct I/O (WALDIO-PD)", 5.0),
    ("full flush (WALDIO-FS)", 2.2),
];
/// The slide "Journaling of journal anomaly (PERSIST mode)": KiB of an insert of 2 bytes.
const PERSIST_KIB: f64 = 40.0;
/// The slide "EXT4 journaling (ordered mode)": KiB of a commit of the journal, at least.
const JOURNAL_KIB: f64 = 12.0;
/// The slide "Summary": "the total IO volume decreases to 1/6 against WAL".
const VOLUME: f64 = 1.0 / 6.0;

/// Everything.
pub fn compare(runner: &Runner<'_>) -> Result<Vec<Comparison>> {
    let counts = all(|choice| runner.counts(choice, &ROWS))?;
    let mut made = vec![throughput(runner)?, groups(runner)?, volume(&counts), requests(&counts)];
    made.push(match runner.journal_is_told_apart() {
        Ok(()) => journal(&all(|choice| runner.journal_counts(choice, &ROWS))?),
        Err(reason) => {
            let mut missing = journal(&[]);
            missing.note(format!("not measured here: {reason}"));
            missing
        }
    });
    Ok(made)
}

/// A table of each kind of operation.
fn all(measure: impl Fn(Choice) -> Result<Table>) -> Result<Vec<(&'static str, Table)>> {
    let each = |(name, word)| Ok((word, measure(Choice::of(name, 1))?));
    WORKS.into_iter().map(each).collect()
}

fn throughput(runner: &Runner<'_>) -> Result<Comparison> {
    let mut made = Comparison::new(
        "WALDIO, slide \"Performance comparison\": throughput of 100-byte operations",
        "times the other's throughput",
    );
    for (how, times) in PERFORMANCE {
        made.add(format!("insert: WALDIO, {how} / stock WAL"), Some(times), None);
    }
    for (word, table) in all(|choice| runner.journaled_times(choice, &ROWS))? {
        let rate = |row: &Row| table.line(row).map(|line| line.rate.median);
        let mut add = |one: &Row, other: &Row| {
            let here = rate(one).zip(rate(other)).map(|(one, other)| one / other);
            made.add(format!("{word}: {} / {}", one.name, other.name), None, here);
        };
        [DELETE, TRUNCATE, PERSIST, WAL_GROWING].into_iter().for_each(|row| add(row, WAL));
        [WAL, WAL_GROWING, DELETE].into_iter().for_each(|other| add(DASH_WAL, other));
        add(SINGLE, WAL);
    }
    made.note("the slide says 7.4x, 5.0x and 2.2x, and 4,332 inserts/s for the first; which ratio is which bar's is read off the slide's order");
    made.note("on a journaling file system, as in the paper; dash WAL flushes for every commit, which is the slides' type \"full sync\": compare it with 2.2x");
    Ok(made)
}

/// The slides group commits of one thread and so return before they are durable; dash groups those
/// of connections that wait for each other's flush.
fn groups(runner: &Runner<'_>) -> Result<Comparison> {
    let mut made = Comparison::new(
        "WALDIO, slide \"Group synchronization\": inserts by several threads",
        "times stock WAL's throughput; flushes",
    );
    for many in MANY {
        let table = runner.threads(Choice::of(Name::Insert, 1), many, &[WAL, DASH_WAL])?;
        let line = |row| table.line(row);
        let rate = |row| line(row).map(|line| line.rate.median);
        let here = rate(DASH_WAL).zip(rate(WAL)).map(|(dash, stock)| dash / stock);
        made.add(format!("{many} threads: dash WAL / stock WAL"), None, here);
        for row in [WAL, DASH_WAL] {
            let flushes = line(row).and_then(|line| line.cost).map(|cost| cost.flushes);
            made.add(format!("{many} threads: {}: flushes a commit", row.name), None, flushes);
        }
    }
    made.note("the slide: frames are kept for 2 ms, up to 16 KiB, and written together, so a commit returns before it is on the device; in dash it returns when it is durable, and a flush is shared by connections that wait at the same time");
    made.note("each connection makes so many commits; both must finish them");
    Ok(made)
}

fn kib(cost: Cost) -> f64 {
    cost.kib + cost.later_kib
}

fn cost(table: &Table, row: &Row) -> Option<Cost> {
    table.line(row).and_then(|line| line.cost)
}

fn volume(counts: &[(&'static str, Table)]) -> Comparison {
    let mut made = Comparison::new(
        "WALDIO, slide \"IO volume at SQLite operation\": 100-byte operations",
        "KiB per transaction; share of another's",
    );
    made.add("insert: WALDIO: share of stock WAL's", Some(VOLUME), None);
    for (word, table) in counts {
        let written = |row: &Row| cost(table, row).map(kib);
        for row in ROWS {
            let paper = (*word == "insert" && row == PERSIST).then_some(PERSIST_KIB);
            made.add(format!("{word}: {}: KiB", row.name), paper, written(row));
        }
        let returned = cost(table, DASH_WAL).map(|cost| cost.kib);
        made.add(format!("{word}: dash WAL: KiB until COMMIT returned"), None, returned);
        for other in [WAL, WAL_GROWING, DELETE] {
            let here = written(DASH_WAL).zip(written(other)).map(|(dash, other)| dash / other);
            made.add(format!("{word}: dash WAL: share of {}'s", other.name), None, here);
        }
    }
    made.note("1/6 is of the slide \"Summary\"; 40 KiB is of \"Journaling of journal anomaly (PERSIST mode)\", for a row of 2 bytes; the bars have no figures");
    made.note("dash WAL leaves -wal to the page cache, and all of it is counted: after each block of commits what is kept back is written by force; in one long run most of that is overwritten before it is written (`dash-lab targets --only wal-counts`)");
    made.note("checkpoints are among the commits of stock WAL and of dash WAL; those of stock WAL growing are not counted");
    made
}

fn requests(counts: &[(&'static str, Table)]) -> Comparison {
    let mut made = Comparison::new(
        "WALDIO, slides \"IO accesses in SQLite for an insert\" and \"IO trace\": requests",
        "per transaction",
    );
    for (word, table) in counts {
        for row in ROWS {
            let found = cost(table, row);
            let flushes = found.map(|cost| cost.flushes);
            let writes = found.and_then(|cost| Some(cost.writes? - cost.flushes));
            made.add(format!("{word}: {}: writes", row.name), None, writes);
            made.add(format!("{word}: {}: flushes", row.name), None, flushes);
        }
    }
    made.note("the slides show writes as dots over time, and no counts");
    made
}

fn journal(counts: &[(&'static str, Table)]) -> Comparison {
    let mut made = Comparison::new(
        "WALDIO, slide \"IO volume at SQLite operation\": the part of the file system's journal",
        "KiB per transaction",
    );
    for (word, table) in counts {
        for row in ROWS {
            let paper = (*word == "insert" && row == WAL_GROWING).then_some(JOURNAL_KIB);
            let here = cost(table, row).and_then(|cost| cost.journal_kib);
            made.add(format!("{word}: {}: journal", row.name), paper, here);
            let rest = cost(table, row).and_then(|cost| Some(kib(cost) - cost.journal_kib?));
            made.add(format!("{word}: {}: files and metadata", row.name), None, rest);
        }
    }
    made.note("12 KiB is what a commit of the journal takes at least, of the slide \"EXT4 journaling (ordered mode)\"; the slide \"IO trace\" shows the journal beside each insert of WAL, and none beside WALDIO's");
    made.note("the journal has a device of its own here, which counts it");
    made
}
