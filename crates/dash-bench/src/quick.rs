//! `sqlite-dash bench --quick`: the first look, for somebody who has read nothing.

use crate::failure::Result;
use crate::header::Header;
use crate::measure;
use crate::numbers::{count, float};
use crate::options::Options;
use crate::out::say;
use crate::present::Output;
use crate::row::Row;
use crate::rows::named;
use crate::session::Bench;
use crate::table::Table;
use crate::workload::Name;

const DELETE: &Row = named("delete");
const PERSIST: &Row = named("persist");
const GROWING: &Row = named("wal-growing");
const RECYCLED: &Row = named("wal-recycled");
const WAL: &Row = named("wal");
const NORMAL: &Row = named("wal-normal");
const SINGLE: &Row = named("dash-single");
const DASH_WAL: &Row = named("dash-wal");
const LIMIT: &Row = named("limit");

/// Workload, what a person calls it, its rows, seconds.
const TABLES: [(Name, &str, &[&Row], u64); 3] = [
    (
        Name::Insert,
        "A commit",
        &[DELETE, PERSIST, GROWING, RECYCLED, NORMAL, SINGLE, DASH_WAL, LIMIT],
        20,
    ),
    (Name::Cycles, "Open, commit, close", &[DELETE, WAL, SINGLE, DASH_WAL], 8),
    (Name::Reads, "A point read", &[DELETE, WAL, SINGLE, DASH_WAL], 4),
];

/// A transaction that takes so many microseconds is one of a slow disk.
const SLOW: f64 = 3_000.0;
/// More rounds than there is time for: patience ends it.
const ROUNDS: usize = 300;

/// Runs the command.
pub fn run(options: &Options, output: &Output) -> Result<bool> {
    let bench = Bench::start(&options.dir)?;
    let volume = options.volume(&bench.volumes)?;
    let header = bench.header(volume)?;
    let mut tables = Vec::new();
    for (name, _, rows, patience) in TABLES {
        let mut options = options.clone();
        options.choice.workload = name;
        options.rows = rows.to_vec();
        options.rounds = Some(ROUNDS);
        options.patience = patience;
        if name != Name::Reads {
            options.block = block(&header, rows.len(), patience);
        }
        tables.push(measure::run(&options, volume, crate::session::command())?);
    }
    output.put(&header, &tables);
    if output.is_text() {
        say!("");
        for ((_, what, ..), table) in TABLES.iter().zip(&tables) {
            let both = [SINGLE, DASH_WAL].map(|row| sentence(what, row, table));
            both.into_iter().flatten().for_each(|sentence| say!("{sentence}"));
        }
        say!(
            "Other workloads, sizes, many connections: sqlite-dash bench --help. On another disk: --dir PATH."
        );
    }
    Ok(true)
}

/// Smaller blocks where a flush takes long, so that there is time for some rounds; else the usual
/// ones.
fn block(header: &Header, rows: usize, patience: u64) -> Option<usize> {
    // Some five flushes a transaction, eight rounds with what precedes them.
    let transaction = header.flush_p50_us * 5.0;
    let round = float(patience) * 1e6 / 8.0 / float(count(rows));
    (transaction > SLOW)
        .then(|| (0..200).take_while(|n| float(*n) * transaction < round).count().max(2))
}

/// What the table says about a row of dash, whoever wins.
fn sentence(what: &str, row: &Row, table: &Table) -> Option<String> {
    let dash = table.line(row)?;
    let others: Vec<_> = [DELETE, PERSIST, GROWING, RECYCLED, WAL]
        .into_iter()
        .filter_map(|row| table.line(row))
        .filter(|line| line.rate.median > 0.0)
        .map(|line| {
            let times = dash.rate.median / line.rate.median;
            let how = match times {
                times if times >= 1.05 => format!("{times:.1} times as fast as"),
                times if times > 0.95 => "as fast as".to_owned(),
                times => format!("{:.1} times slower than", 1.0 / times),
            };
            format!("{how} {}", line.name)
        })
        .collect();
    Some(format!("{what} by {}: {}.", row.name, others.join(", ")))
}
