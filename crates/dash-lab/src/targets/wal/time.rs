//! One thread: what a commit takes, beside the two regimes of stock WAL and what no commit can go
//! below, which is a write with a flush and SQLite's own work. In alternating blocks.

use super::super::bench::Bench;
use super::doubt::doubt;
use crate::failure::Result;
use crate::measure;
use crate::options::{Choice, Options, Where};
use crate::report::{Section, Target};
use crate::row::Row;
use crate::sides::{DASH_WAL, DURABLE, LIMIT, NORMAL, WAL_GROWING, WAL_RECYCLED};
use crate::volume::Volume;
use crate::workload::Name;

const ROWS: [&Row; 5] = [WAL_RECYCLED, WAL_GROWING, NORMAL, DASH_WAL, LIMIT];
const ROUNDS: usize = 40;
/// What dash may add to the limit and to SQLite's work, in microseconds.
const ADDED: f64 = 30.0;
const RECYCLED: f64 = 0.95;
/// Times as fast as a growing log, on the disk itself and on a journaled loop device.
const GROWING: [(&str, f64); 2] = [("V", 1.8), ("J", 2.8)];

/// Makes the section.
pub fn measure(bench: &Bench) -> Result<Section> {
    let what = "autocommit inserts of 100 bytes, alternating blocks of 200; p50 of all";
    let mut section = Section::new("wal-time", what, DURABLE);
    let (volumes, missing) = bench.volumes.timed()?;
    for volume in volumes {
        on(bench, volume, &mut section)?;
    }
    if let Some(missing) = missing {
        section.fail(missing);
    }
    Ok(section)
}

fn on(bench: &Bench, volume: &Volume, section: &mut Section) -> Result<()> {
    let mut options = Options::of(Choice::of(Name::Insert, 1), &ROWS, Where::Dir);
    options.rounds = Some(bench.many(ROUNDS));
    let table = measure::run(&options, volume, String::new())?;
    let p50 = |row| table.line(row).map_or(0.0, |line| line.latency.p50);
    let label = volume.label;
    doubt(section, label, &table);
    let (dash, limit, normal) = (p50(DASH_WAL), p50(LIMIT), p50(NORMAL));
    section.target(
        format!("{label}: dash - limit - WAL NORMAL, p50"),
        dash - limit - normal,
        "us",
        Target::AtMost(ADDED),
    );
    let times = |row| p50(row) / dash.max(f64::MIN_POSITIVE);
    section.target(
        format!("{label}: stock WAL recycled / dash, p50"),
        times(WAL_RECYCLED),
        "x",
        Target::AtLeast(RECYCLED),
    );
    let title = format!("{label}: stock WAL growing / dash, p50");
    match GROWING.iter().find(|(volume, _)| *volume == label) {
        Some((_, wanted)) => {
            section.target(title, times(WAL_GROWING), "x", Target::AtLeast(*wanted))
        }
        None => section.figure(title, times(WAL_GROWING), "x"),
    }
    for row in ROWS {
        section.figure(format!("{label}: {}, p50", row.name), p50(row), "us");
    }
    section.note(format!("{label}: {} rounds", table.rounds));
    table.notes.iter().for_each(|note| section.note(format!("{label}: {note}")));
    Ok(())
}
