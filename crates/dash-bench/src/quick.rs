//! `dash bench --quick`: the first look, for somebody who has read nothing.

use crate::failure::Result;
use crate::measure;
use crate::options::Options;
use crate::out::say;
use crate::present::Output;
use crate::rows::Row;
use crate::session::Bench;
use crate::table::Table;
use crate::workload::Name;

/// Workload, its rows, seconds.
const TABLES: [(Name, &[Row], u64); 3] = [
    (
        Name::Insert,
        &[
            Row::Delete,
            Row::Persist,
            Row::WalGrowing,
            Row::WalRecycled,
            Row::WalNormal,
            Row::DashSingle,
            Row::Limit,
        ],
        16,
    ),
    (Name::Cycles, &[Row::Delete, Row::Wal, Row::DashSingle], 8),
    (Name::Reads, &[Row::Delete, Row::Wal, Row::DashSingle], 4),
];

/// Runs the command.
pub fn run(options: &Options, output: &Output) -> Result<bool> {
    let bench = Bench::start(&options.dir)?;
    let place = options.place(&bench.places)?;
    let head = bench.head(place)?;
    let mut tables = Vec::new();
    for (name, rows, patience) in TABLES {
        let mut options = options.clone();
        options.choice.workload = name;
        options.rows = rows.to_vec();
        options.patience = patience;
        tables.push(measure::run(&options, place, crate::session::command())?);
    }
    output.put(&head, &tables)?;
    if output.is_text() {
        say!("");
        tables.iter().filter_map(sentence).for_each(|sentence| say!("{sentence}"));
        say!(
            "Other workloads, sizes, many connections: dash bench --help. On another disk: --dir PATH."
        );
    }
    Ok(true)
}

/// What the table says about dash, whoever wins.
fn sentence(table: &Table) -> Option<String> {
    let dash = table.line(Row::DashSingle)?;
    let others: Vec<_> = [Row::Delete, Row::Persist, Row::WalGrowing, Row::WalRecycled, Row::Wal]
        .into_iter()
        .filter_map(|row| table.line(row))
        .filter(|line| line.rate.median > 0.0)
        .map(|line| {
            let times = dash.rate.median / line.rate.median;
            match times >= 1.0 {
                true => format!("{times:.1} times as fast as {}", line.name),
                false => format!("{:.1} times slower than {}", 1.0 / times, line.name),
            }
        })
        .collect();
    let what = table.about.split([':', ',']).next().unwrap_or_default();
    Some(format!("{what}: dash is {}.", others.join(", ")))
}
