//! Open, update one row, close: what a short-lived program does, nobody else having the database
//! open.

use std::path::{Path, PathBuf};

use super::Bench;
use super::data::with_rows;
use crate::engine::{DURABLE, Engine};
use crate::failure::{Explain, Result};
use crate::lanes::{self, Lane};
use crate::numbers::{count, per};
use crate::place::Place;
use crate::report::{Row, Target};
use crate::sample::Sample;

const ROUNDS: usize = 30;
const BLOCK: usize = 20;
const COUNTED: usize = 200;
const TABLE: i64 = 1000;
/// The last one makes nothing durable: it is what SQLite itself costs, which no engine can go
/// below.
const SIDES: [Engine; 5] =
    [Engine::Single, Engine::Wal, Engine::Delete, Engine::Linger, Engine::Floor];

/// Makes the row.
pub fn measure(bench: &Bench) -> Result<Row> {
    let mut row = Row::new(
        "cycles",
        "open, one autocommit update, close; table of 1,000 rows, alternating blocks of 20",
        DURABLE,
    );
    let (places, missing) = bench.places.timed()?;
    for place in places {
        on(bench, place, &mut row)?;
    }
    if let Some(missing) = missing {
        row.note(missing);
    } else {
        on(bench, bench.places.l()?, &mut row)?;
        counted(bench, bench.places.l()?, &mut row)?;
    }
    Ok(row)
}

/// Flushes and bytes of a cycle, exact.
fn counted(bench: &Bench, place: &Place, row: &mut Row) -> Result<()> {
    let folder = place.folder("cycles")?;
    let cycles = count(bench.many(COUNTED));
    for engine in SIDES {
        let mut step = prepare(engine, folder.path().join(engine.word()))?;
        place.settle()?;
        let before = place.counts()?;
        (0..cycles).try_for_each(|_| step())?;
        let counted = place.counts()?.since(before);
        row.note(format!(
            "L: {}: {:.2} flushes, {:.2} writes, {:.1} KiB a cycle",
            engine.name(),
            per(counted.flushes, cycles),
            per(counted.writes, cycles),
            per(counted.bytes, cycles) / 1024.0
        ));
    }
    Ok(())
}

/// A database, closed, and the cycle on it.
fn prepare(engine: Engine, path: PathBuf) -> Result<impl FnMut() -> Result<()>> {
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

fn on(bench: &Bench, place: &Place, row: &mut Row) -> Result<()> {
    let folder = place.folder("cycles")?;
    let mut lanes = Vec::new();
    for engine in SIDES {
        let step = prepare(engine, folder.path().join(engine.word()))?;
        lanes.push(Lane::new(engine.name(), step));
    }
    let label = place.label;
    let samples = lanes::run(
        &format!("cycles on {label}"),
        Some(place),
        &mut lanes,
        bench.many(ROUNDS),
        BLOCK,
    )?;
    if let [dash, wal, delete, linger, _] = &samples[..] {
        row.figure(
            format!("{label}: dash lingering / stock DELETE, mean"),
            linger.ratio_to(delete, |block| block.mean),
            "x",
        );
        for (other, sample, limit) in [("stock WAL", wal, 0.35), ("stock DELETE", delete, 0.5)] {
            let title = format!("{label}: dash / {other}, mean");
            let ratio = dash.ratio_to(sample, |block| block.mean);
            if place.in_memory {
                row.figure(title, ratio, "x");
            } else {
                row.target(title, ratio, "x", Target::AtMost(limit));
            }
            row.figure(
                format!("{label}: dash / {other}, p50"),
                dash.ratio_to(sample, |block| block.p50),
                "x",
            );
        }
    }
    if let [dash, .., floor] = &samples[..] {
        let mean = |sample: &Sample| sample.typical(|block| block.mean);
        row.figure(format!("{label}: dash, mean"), mean(dash), "us");
        row.figure(
            format!("{label}: the floor (stock OFF, synchronous=OFF), mean"),
            mean(floor),
            "us",
        );
        row.figure(
            format!("{label}: share of dash's cycle that is SQLite's own"),
            floor.ratio_to(dash, |block| block.mean),
            "x",
        );
    }
    for (lane, sample) in lanes.iter().zip(&samples) {
        row.note(format!("{label}: {}: {}", lane.name, sample.describe()));
    }
    Ok(())
}

fn cycle(engine: Engine, path: &Path, turn: i64) -> Result<()> {
    let db = engine.start(path).explain("opening")?;
    db.execute("UPDATE t SET body = ?1 WHERE id = ?2", (format!("{turn:0100}"), turn % TABLE + 1))
        .explain("updating")?;
    db.close().map_err(|(_, error)| error).explain("closing")
}
