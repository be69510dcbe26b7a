//! Open, update one row, close: what a short-lived program does, nobody else having the database
//! open.

use std::path::{Path, PathBuf};

use super::bench::Bench;
use super::data::with_rows;
use crate::failure::{Explain, Result};
use crate::interleave::{self, Lane};
use crate::numbers::{count, per};
use crate::report::{Section, Target};
use crate::row::Row;
use crate::sample::Sample;
use crate::sides::{DELETE, DURABLE, FLOOR, SINGLE, WAL};
use crate::volume::Volume;

const ROUNDS: usize = 30;
const BLOCK: usize = 20;
const COUNTED: usize = 200;
const TABLE: i64 = 1000;
/// The last one makes nothing durable: it is what SQLite itself costs, which no engine can go
/// below.
const SIDES: [&Row; 4] = [SINGLE, WAL, DELETE, FLOOR];

/// Makes the section.
pub fn measure(bench: &Bench) -> Result<Section> {
    let mut section = Section::new(
        "cycles",
        "open, one autocommit update, close; table of 1,000 rows, alternating blocks of 20",
        DURABLE,
    );
    let (volumes, missing) = bench.volumes.timed()?;
    for volume in volumes {
        on(bench, volume, &mut section)?;
    }
    if let Some(missing) = missing {
        section.note(missing);
    } else {
        on(bench, bench.volumes.l()?, &mut section)?;
        counted(bench, bench.volumes.l()?, &mut section)?;
    }
    Ok(section)
}

/// Flushes and bytes of a cycle, exact.
fn counted(bench: &Bench, volume: &Volume, section: &mut Section) -> Result<()> {
    let folder = volume.folder("cycles")?;
    let cycles = count(bench.many(COUNTED));
    for engine in SIDES {
        let mut step = prepare(engine, folder.path().join(engine.word))?;
        volume.settle()?;
        let before = volume.counts()?;
        (0..cycles).try_for_each(|_| step())?;
        let counted = volume.counts()?.since(before);
        section.note(format!(
            "L: {}: {:.2} flushes, {:.2} writes, {:.1} KiB a cycle",
            engine.name,
            per(counted.flushes, cycles),
            per(counted.writes, cycles),
            per(counted.bytes, cycles) / 1024.0
        ));
    }
    Ok(())
}

/// A database, closed, and the cycle on it.
fn prepare(engine: &'static Row, path: PathBuf) -> Result<impl FnMut() -> Result<()>> {
    let db = with_rows(engine, &path, TABLE)?;
    db.close().map_err(|(_, error)| error).explain("closing")?;
    let mut turn = 0;
    let mut step = move || {
        turn += 1;
        cycle(engine, &path, turn)
    };
    (0..5).try_for_each(|_| step())?;
    Ok(step)
}

fn on(bench: &Bench, volume: &Volume, section: &mut Section) -> Result<()> {
    let folder = volume.folder("cycles")?;
    let mut lanes = Vec::new();
    for engine in SIDES {
        let step = prepare(engine, folder.path().join(engine.word))?;
        lanes.push(Lane::new(engine.name, step));
    }
    let label = volume.label;
    let samples = interleave::run(
        &format!("cycles on {label}"),
        Some(volume),
        &mut lanes,
        bench.many(ROUNDS),
        BLOCK,
    )?;
    if let [dash, wal, delete, _] = &samples[..] {
        for (other, sample, limit) in [("stock WAL", wal, 0.35), ("stock DELETE", delete, 0.5)] {
            let title = format!("{label}: dash / {other}, mean");
            let ratio = dash.ratio_to(sample, |block| block.mean);
            if volume.in_memory {
                section.figure(title, ratio, "x");
            } else {
                section.target(title, ratio, "x", Target::AtMost(limit));
            }
            section.figure(
                format!("{label}: dash / {other}, p50"),
                dash.ratio_to(sample, |block| block.p50),
                "x",
            );
        }
    }
    if let [dash, .., floor] = &samples[..] {
        let mean = |sample: &Sample| sample.typical(|block| block.mean);
        section.figure(format!("{label}: dash, mean"), mean(dash), "us");
        section.figure(
            format!("{label}: the floor (stock OFF, synchronous=OFF), mean"),
            mean(floor),
            "us",
        );
        section.figure(
            format!("{label}: share of dash's cycle that is SQLite's own"),
            floor.ratio_to(dash, |block| block.mean),
            "x",
        );
    }
    for (lane, sample) in lanes.iter().zip(&samples) {
        section.note(format!("{label}: {}: {}", lane.name, sample.describe()));
    }
    Ok(())
}

fn cycle(engine: &'static Row, path: &Path, turn: i64) -> Result<()> {
    let db = engine.start(path)?;
    db.execute("UPDATE t SET body = ?1 WHERE id = ?2", (format!("{turn:0100}"), turn % TABLE + 1))
        .explain("updating")?;
    db.close().map_err(|(_, error)| error).explain("closing")
}
