//! WALDIO (USENIX ATC 2015): throughput and I/O volume of 10,000 inserts of 100 bytes. dash has no
//! engine of that kind yet; its shadow stands beside the same baseline.

use super::Runner;
use super::comparison::Comparison;
use crate::failure::Result;
use crate::options::Choice;
use crate::row::Row;
use crate::sides::{DELETE, PERSIST, SINGLE, TRUNCATE, WAL};
use crate::workload::Name;

const ROWS: [&Row; 5] = [WAL, DELETE, TRUNCATE, PERSIST, SINGLE];

/// Everything.
pub fn compare(runner: &Runner<'_>) -> Result<Vec<Comparison>> {
    let mut throughput = Comparison::new(
        "WALDIO: throughput of 100-byte operations",
        "times stock WAL's throughput",
    );
    throughput.add(
        "insert: WALDIO, no flush, groups of 4 (not durable on most devices)",
        Some(7.4),
        None,
    );
    throughput.add("insert: WALDIO, persistent direct I/O", Some(5.0), None);
    throughput.add("insert: WALDIO, full flush", Some(2.2), None);
    let mut volume =
        Comparison::new("WALDIO: I/O volume of 100-byte operations", "times stock WAL's volume");
    volume.add("insert: WALDIO", Some(1.0 / 6.0), None);
    for (name, word) in
        [(Name::Insert, "insert"), (Name::Update, "update"), (Name::Delete, "delete")]
    {
        let times = runner.times(Choice::of(name, 1), &ROWS)?;
        let counts = runner.counts(Choice::of(name, 1), &ROWS)?;
        for row in ROWS.into_iter().skip(1) {
            let rate = |row| times.line(row).map(|line| line.rate.median);
            let kib = |row| {
                let cost = counts.line(row)?.cost?;
                Some(cost.kib + cost.later_kib)
            };
            let ratio = |one: Option<f64>, other: Option<f64>| Some(one? / other?);
            let what = format!("{word}: {}", row.name);
            throughput.add(what.clone(), None, ratio(rate(row), rate(WAL)));
            volume.add(what, None, ratio(kib(row), kib(WAL)));
        }
    }
    throughput.note(
        "which of the slide's ratios belongs to which of its bars is read off the slide's order",
    );
    volume.note("the paper's WAL commits through the file system's journal each time, because its log grows; here the log is recycled after the first thousand pages");
    Ok(vec![throughput, volume])
}
