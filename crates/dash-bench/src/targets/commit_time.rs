//! Time per commit in alternating blocks: dash beside the four ways stock SQLite commits.
//!
//! WAL has two regimes and both are measured: growing (the log is cut before each block, so every
//! commit makes it longer, as in the first thousand frames after every open) and recycled (the log
//! is long already, each block overwrites it from its start). No checkpoint falls into a block.
//! PERSIST and DELETE, which write most, have smaller blocks: a virtual disk has only so many
//! writes to give before it throttles. L, where a flush costs next to nothing, shows what is left
//! then.

use rusqlite::Connection;

use super::Bench;
use super::data::{Inserter, with_empty_table};
use crate::engine::{DURABLE, Engine};
use crate::failure::{Explain, Result};
use crate::lanes::{self, Lane};
use crate::place::Place;
use crate::report::{Row, Target};

const ROUNDS: usize = 20;
const BLOCK: usize = 200;
/// Commits before the clock starts; more than a block, so that a recycled log is long enough.
const WARM: usize = 250;
/// PERSIST and DELETE run blocks of a fifth.
const DIVISOR: usize = 5;

/// Side, name, and how many times faster dash should be on J and on V.
const SIDES: [(Engine, &str, [f64; 2]); 4] = [
    (Engine::Persist, "stock PERSIST", [5.0, 3.0]),
    (Engine::Delete, "stock DELETE", [0.0, 0.0]),
    (Engine::Wal, "stock WAL growing", [1.9, 1.1]),
    (Engine::Wal, "stock WAL recycled", [0.8, 0.6]),
];

/// Makes the row.
pub fn measure(bench: &Bench) -> Result<Row> {
    let what = "autocommit inserts of 100 bytes, alternating blocks of 200; ratios: median over rounds of stock's time / dash single's";
    let mut row = Row::new("commit-time", what, DURABLE);
    let (places, missing) = bench.places.timed()?;
    for place in places {
        on(bench, place, &mut row)?;
    }
    match missing {
        Some(missing) => row.note(missing),
        None => on(bench, bench.places.l()?, &mut row)?,
    }
    Ok(row)
}

fn on(bench: &Bench, place: &Place, row: &mut Row) -> Result<()> {
    let folder = place.folder("time")?;
    let open =
        |engine, name: &str| with_empty_table(engine, &folder.path().join(name.replace(' ', "-")));
    let dash = open(Engine::Single, "dash")?;
    let stock =
        SIDES.iter().map(|(engine, name, _)| open(*engine, name)).collect::<Result<Vec<_>>>()?;
    let mut lanes = vec![lane("dash single", &dash, None)?];
    for ((_, name, _), db) in SIDES.iter().zip(&stock) {
        let checkpoint = match *name {
            "stock WAL growing" => Some("PRAGMA wal_checkpoint(TRUNCATE)"),
            "stock WAL recycled" => Some("PRAGMA wal_checkpoint(RESTART)"),
            _ => None,
        };
        let divisor = if checkpoint.is_some() { 1 } else { DIVISOR };
        lanes.push(lane(name, db, checkpoint)?.divided_by(divisor));
    }
    let label = place.label;
    let samples = lanes::run(
        &format!("commit-time on {label}"),
        Some(place),
        &mut lanes,
        bench.many(ROUNDS),
        BLOCK,
    )?;
    let Some((dash, stock)) = samples.split_first() else { return Ok(()) };
    for ((_, name, wanted), sample) in SIDES.iter().zip(stock) {
        let wanted = wanted[usize::from(label == "V")];
        let ratio = sample.ratio_to(dash, |block| block.mean);
        let title = format!("{label}: {name} / dash, mean");
        if wanted > 0.0 && label != "L" {
            row.target(title, ratio, "x", Target::AtLeast(wanted));
        } else {
            row.figure(title, ratio, "x");
        }
        row.figure(
            format!("{label}: {name} / dash, p50"),
            sample.ratio_to(dash, |block| block.p50),
            "x",
        );
    }
    for (lane, sample) in lanes.iter().zip(&samples) {
        row.note(format!("{label}: {}: {}", lane.name, sample.describe()));
    }
    Ok(())
}

fn lane<'a>(name: &str, db: &'a Connection, checkpoint: Option<&'static str>) -> Result<Lane<'a>> {
    if checkpoint.is_some() {
        db.execute_batch("PRAGMA wal_autocheckpoint=0").explain("wal_autocheckpoint")?;
    }
    let mut insert = Inserter::new(db)?;
    (0..WARM).try_for_each(|_| insert.step())?;
    Ok(Lane::new(name, move || insert.step()).before(move || match checkpoint {
        Some(sql) => db.query_row(sql, [], |_| Ok(())).explain(sql),
        None => Ok(()),
    }))
}
