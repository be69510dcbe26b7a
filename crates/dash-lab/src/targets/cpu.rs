//! Processor time of a commit: what dash's own work costs beside stock WAL's, whatever the disk.

use super::bench::Bench;
use crate::failure::Result;
use crate::measure;
use crate::options::{Choice, Options, Where};
use crate::report::{Section, Target};
use crate::row::Row;
use crate::sides::{DELETE, DURABLE, SINGLE, WAL_GROWING, WAL_RECYCLED};
use crate::workload::Name;

const ROUNDS: usize = 40;
const SIDES: [&Row; 4] = [WAL_RECYCLED, WAL_GROWING, DELETE, SINGLE];

/// Makes the section.
pub fn measure(bench: &Bench) -> Result<Section> {
    let what = "processor time per autocommit operation on 100-byte rows, this process's and the kernel's for it, alternating blocks";
    let mut section = Section::new("cpu", what, DURABLE);
    let volume = bench.volumes.l().or_else(|_| bench.volumes.v())?;
    for (name, word) in [(Name::Insert, "insert"), (Name::Update, "update")] {
        let mut options = Options::of(Choice::of(name, 1), &SIDES, Where::Memory);
        options.rounds = Some(bench.many(ROUNDS));
        let table = measure::run(&options, volume, String::new())?;
        let cpu = |row| table.line(row).and_then(|line| line.cpu_us).unwrap_or_default();
        let dash = cpu(SINGLE);
        section.target(
            format!("{word} on {}: dash - stock WAL recycled", volume.label),
            dash - cpu(WAL_RECYCLED),
            "us",
            Target::AtMost(15.0),
        );
        for side in SIDES {
            section.figure(format!("{word} on {}: {}", volume.label, side.name), cpu(side), "us");
        }
    }
    section.note("the medians of all blocks; on a loop device the work of its own kernel threads is not in them");
    Ok(section)
}
