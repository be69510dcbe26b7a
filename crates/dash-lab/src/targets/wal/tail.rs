//! The slowest commits of one thread, checkpoints among them, beside stock WAL's.

use super::super::bench::Bench;
use super::doubt::doubt;
use crate::failure::Result;
use crate::measure;
use crate::options::{Choice, Options, Where};
use crate::report::{Section, Target};
use crate::row::Row;
use crate::sides::{DASH_WAL, DURABLE, WAL};
use crate::workload::Name;

const ROWS: [&Row; 2] = [WAL, DASH_WAL];
const ROUNDS: usize = 15;
const BLOCK: usize = 2000;
const LIMIT: f64 = 1.2;

/// Makes the section.
pub fn measure(bench: &Bench) -> Result<Section> {
    let what = format!(
        "autocommit inserts of 100 bytes, alternating blocks of {BLOCK}, wal_autocheckpoint as it comes"
    );
    let mut section = Section::new("wal-tail", what, DURABLE);
    let (volumes, missing) = bench.volumes.timed()?;
    for volume in volumes {
        let mut options = Options::of(Choice::of(Name::Insert, 1), &ROWS, Where::Dir);
        (options.rounds, options.block) = (Some(bench.many(ROUNDS)), Some(BLOCK));
        let table = measure::run(&options, volume, String::new())?;
        let label = volume.label;
        doubt(&mut section, label, &table);
        let of = |row| table.line(row).map(|line| line.latency);
        let (Some(dash), Some(stock)) = (of(DASH_WAL), of(WAL)) else { continue };
        section.target(
            format!("{label}: dash / stock WAL, p99.9"),
            dash.p999 / stock.p999.max(f64::MIN_POSITIVE),
            "x",
            Target::AtMost(LIMIT),
        );
        for (name, latency) in [("dash WAL", dash), ("stock WAL", stock)] {
            section.note(format!(
                "{label}: {name}: p50 {:.0}, p99 {:.0}, p99.9 {:.0}, max {:.0} us; n {}",
                latency.p50, latency.p99, latency.p999, latency.max, latency.count
            ));
        }
        table.notes.iter().for_each(|note| section.note(format!("{label}: {note}")));
    }
    if let Some(missing) = missing {
        section.fail(missing);
    }
    Ok(section)
}
