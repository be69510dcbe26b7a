//! SSL, Statement Logging (VLDB 2017), Tables 3, 4, 6 and 7. Its ratio to stock WAL stands beside
//! those of dash's modes shadow and statement. In the latter page differences are the log, not
//! statements, and it is on the same disk; for one in memory see `targets --only statement`.

use super::comparison::Comparison;
use super::runner::Runner;
use crate::failure::Result;
use crate::options::Choice;
use crate::recovery;
use crate::row::Row;
use crate::sides::{SINGLE, STATEMENT, WAL};
use crate::table::Table;
use crate::workload::Name;

const ROWS: [&Row; 3] = [WAL, SINGLE, STATEMENT];
/// Those of dash, and what they are called in a table.
const OURS: [(&Row, &str); 2] = [(SINGLE, "dash single"), (STATEMENT, "dash statement")];

/// A trace of the paper: pages written by WAL and by SSL on flash (SQLite's and the file system's),
/// update transactions, and latency of WAL and of SSL with PCM, in ms.
struct Trace {
    name: &'static str,
    pages: [f64; 2],
    transactions: f64,
    latency: [f64; 2],
    recovery: f64,
}

const TRACES: [Trace; 3] = [
    Trace {
        name: "androbench",
        pages: [7700.0 + 619.0, 3374.0 + 1107.0],
        transactions: 3077.0,
        latency: [37.0, 0.04],
        recovery: 0.34,
    },
    Trace {
        name: "facebook",
        pages: [5365.0 + 2124.0, 3046.0 + 3198.0],
        transactions: 1194.0,
        latency: [27.8, 5.9],
        recovery: 0.35,
    },
    Trace {
        name: "twitter",
        pages: [19606.0 + 4069.0, 9663.0 + 2559.0],
        transactions: 7907.0,
        latency: [90.8, 5.3],
        recovery: 0.26,
    },
];

/// Everything.
pub fn compare(runner: &Runner<'_>) -> Result<Vec<Comparison>> {
    let mut all = traces(runner)?;
    all.push(table_6(runner)?);
    all.push(table_7(runner)?);
    Ok(all)
}

fn trace(runner: &Runner<'_>, name: &str) -> Option<Choice> {
    if name == "androbench" {
        return Some(Choice::of(Name::Androbench, 1));
    }
    let folder = runner.traces?.join(name);
    folder.is_dir().then(|| Choice { replay: Some(folder), ..Choice::of(Name::Replay, 1) })
}

/// Pages of 4 KiB per transaction that wrote, at the device.
fn pages(table: &Table, row: &Row) -> Option<f64> {
    let cost = table.line(row)?.cost?;
    Some((cost.kib + cost.later_kib) / 4.0)
}

fn traces(runner: &Runner<'_>) -> Result<Vec<Comparison>> {
    let mut volume =
        Comparison::new("SSL, Table 3: pages written", "4 KiB pages per transaction that writes");
    let mut latency =
        Comparison::new("SSL, Table 4: latency of a transaction", "times stock WAL's");
    for paper in TRACES {
        let name = paper.name;
        let theirs = paper.pages.map(|pages| pages / paper.transactions);
        let found = trace(runner, name);
        let measured = found
            .map(|choice| Ok((runner.counts(choice.clone(), &ROWS)?, runner.times(choice, &ROWS)?)))
            .transpose()?;
        let (counts, times) = measured.unzip();
        let here = |row| counts.as_ref().and_then(|table| pages(table, row));
        volume.add(format!("{name}: stock WAL"), Some(theirs[0]), here(WAL));
        volume.add(format!("{name}: SSL on flash"), Some(theirs[1]), None);
        let mean = |row| Some(times.as_ref()?.line(row)?.latency.mean);
        latency.add(
            format!("{name}: SSL with PCM"),
            Some(paper.latency[1] / paper.latency[0]),
            None,
        );
        for (row, called) in OURS {
            volume.add(format!("{name}: {called}"), None, here(row));
            let ratio = mean(row).zip(mean(WAL)).map(|(dash, wal)| dash / wal);
            latency.add(format!("{name}: {called}"), None, ratio);
        }
    }
    volume.note("facebook and twitter here are other recordings of the same applications (--traces FOLDER), so compare the ratio to WAL; the paper's other three traces are not public");
    latency.note("SSL's log was in phase-change memory: no flush of a disk; numbers and latency of checkpoints (Table 4's other lines) have no counterpart in mode shadow, which has none; for mode statement with its log in memory see `targets --only statement`");
    Ok(vec![volume, latency])
}

fn table_6(runner: &Runner<'_>) -> Result<Comparison> {
    let mut made = Comparison::new(
        "SSL, Table 6: transactions without locality",
        "latency, times stock WAL's",
    );
    for (name, word, paper) in [
        (Name::RandomA, "Random-A (1 update)", 1.3 / 16.6),
        (Name::RandomB, "Random-B (2,000 updates)", 7743.0 / 9092.0),
    ] {
        let table = runner.times(Choice::of(name, 1), &ROWS)?;
        let mean = |row| table.line(row).map(|line| line.latency.mean);
        made.add(format!("{word}: SSL"), Some(paper), None);
        for (row, called) in OURS {
            let ratio = mean(row).zip(mean(WAL)).map(|(dash, wal)| dash / wal);
            made.add(format!("{word}: {called}"), None, ratio);
        }
    }
    made.note("the table is ours, with the paper's sizes: 60,000 rows of 220 bytes");
    Ok(made)
}

fn table_7(runner: &Runner<'_>) -> Result<Comparison> {
    let mut made = Comparison::new("SSL, Table 7: recovery", "times stock WAL's");
    for paper in TRACES {
        made.add(format!("{}: SSL", paper.name), Some(paper.recovery / 0.1), None);
    }
    let times = |engine| {
        let trials = runner.many(20);
        recovery::times(runner.volume()?, Choice::of(Name::Update, 3), engine, trials)
    };
    let wal = times(WAL)?;
    made.note(format!(
        "the paper: WAL 0.1 s on every trace; here: stock WAL {:.2} ms, open to the first row read",
        wal.average
    ));
    for (row, called) in OURS {
        let dash = times(row)?;
        let label = format!("updates in three tables: {called}");
        made.add(label, None, Some(dash.average / wal.average));
        made.note(format!("{called}: {:.2} ms", dash.average));
    }
    Ok(made)
}
