//! Processor time of a commit: what dash's own work costs beside stock WAL's, whatever the disk.

use super::Bench;
use crate::engine::DURABLE;
use crate::failure::Result;
use crate::measure;
use crate::options::{Choice, Options, Where};
use crate::report::{Row, Target};
use crate::rows;
use crate::workload::Name;

const ROUNDS: usize = 40;
const SIDES: [rows::Row; 4] =
    [rows::Row::WalRecycled, rows::Row::WalGrowing, rows::Row::Delete, rows::Row::DashSingle];

/// Makes the row.
pub fn measure(bench: &Bench) -> Result<Row> {
    let what = "processor time per autocommit operation on 100-byte rows, this process's and the kernel's for it, alternating blocks";
    let mut row = Row::new("cpu", what, DURABLE);
    let place = bench.places.l().or_else(|_| bench.places.v())?;
    for (name, word) in [(Name::Insert, "insert"), (Name::Update, "update")] {
        let mut options = Options::of(Choice::of(name, 1), &SIDES, Where::Memory);
        options.rounds = Some(bench.many(ROUNDS));
        let table = measure::run(&options, place, String::new())?;
        let cpu = |row| table.line(row).and_then(|line| line.cpu_us).unwrap_or_default();
        let dash = cpu(rows::Row::DashSingle);
        row.target(
            format!("{word} on {}: dash - stock WAL recycled", place.label),
            dash - cpu(rows::Row::WalRecycled),
            "us",
            Target::AtMost(15.0),
        );
        for side in SIDES {
            row.figure(format!("{word} on {}: {}", place.label, side.name()), cpu(side), "us");
        }
    }
    row.note("the medians of all blocks; on a loop device the work of its own kernel threads is not in them");
    Ok(row)
}
