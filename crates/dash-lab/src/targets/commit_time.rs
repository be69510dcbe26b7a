//! Time per commit in alternating blocks: dash beside the four ways stock SQLite commits.
//!
//! WAL has two regimes and both are measured: growing (the log is cut before each block, so every
//! commit makes it longer, as in the first thousand frames after every open) and recycled (the log
//! is long already, each block overwrites it from its start). No checkpoint falls into a block.
//! PERSIST and DELETE, which write most, have smaller blocks: a virtual disk has only so many
//! writes to give before it throttles. L, where a flush costs next to nothing, shows what is left
//! then.

use rusqlite::Connection;

use super::bench::Bench;
use super::data::{Inserter, with_empty_table};
use crate::failure::{Explain, Result};
use crate::interleave::{self, Lane};
use crate::report::{Section, Target};
use crate::row::{Regime, Row};
use crate::sides::{DELETE, DURABLE, PERSIST, SINGLE, WAL_GROWING, WAL_RECYCLED};
use crate::volume::Volume;

const ROUNDS: usize = 20;
const BLOCK: usize = 200;
/// Commits before the clock starts; more than a block, so that a recycled log is long enough.
const WARM: usize = 250;
/// PERSIST and DELETE run blocks of a fifth.
const DIVISOR: usize = 5;

/// How many times faster dash should be on J and on V.
const SIDES: [(&Row, [f64; 2]); 4] = [
    (PERSIST, [5.0, 3.0]),
    (DELETE, [0.0, 0.0]),
    (WAL_GROWING, [1.9, 1.1]),
    (WAL_RECYCLED, [0.8, 0.6]),
];

/// Makes the section.
pub fn measure(bench: &Bench) -> Result<Section> {
    let what = "autocommit inserts of 100 bytes, alternating blocks of 200; ratios: median over rounds of stock's time / dash single's";
    let mut section = Section::new("commit-time", what, DURABLE);
    let (volumes, missing) = bench.volumes.timed()?;
    for volume in volumes {
        on(bench, volume, &mut section)?;
    }
    match missing {
        Some(missing) => section.note(missing),
        None => on(bench, bench.volumes.l()?, &mut section)?,
    }
    Ok(section)
}

fn on(bench: &Bench, volume: &Volume, section: &mut Section) -> Result<()> {
    let folder = volume.folder("time")?;
    let open = |row: &Row| with_empty_table(row, &folder.path().join(row.word));
    let dash = open(SINGLE)?;
    let stock = SIDES.iter().map(|(row, _)| open(row)).collect::<Result<Vec<_>>>()?;
    let mut lanes = vec![lane(SINGLE, &dash)?];
    for ((row, _), db) in SIDES.iter().zip(&stock) {
        let divisor = if row.regime().is_some() { 1 } else { DIVISOR };
        lanes.push(lane(row, db)?.divided_by(divisor));
    }
    let label = volume.label;
    let samples = interleave::run(
        &format!("commit-time on {label}"),
        Some(volume),
        &mut lanes,
        bench.many(ROUNDS),
        BLOCK,
    )?;
    let Some((dash, stock)) = samples.split_first() else { return Ok(()) };
    for ((row, wanted), sample) in SIDES.iter().zip(stock) {
        let name = row.name;
        let wanted = wanted[usize::from(label == "V")];
        let ratio = sample.ratio_to(dash, |block| block.mean);
        let title = format!("{label}: {name} / dash, mean");
        if wanted > 0.0 && label != "L" {
            section.target(title, ratio, "x", Target::AtLeast(wanted));
        } else {
            section.figure(title, ratio, "x");
        }
        section.figure(
            format!("{label}: {name} / dash, p50"),
            sample.ratio_to(dash, |block| block.p50),
            "x",
        );
    }
    for (lane, sample) in lanes.iter().zip(&samples) {
        section.note(format!("{label}: {}: {}", lane.name, sample.describe()));
    }
    Ok(())
}

fn lane<'a>(row: &Row, db: &'a Connection) -> Result<Lane<'a>> {
    let checkpoint = row.regime().map(Regime::checkpoint);
    if checkpoint.is_some() {
        db.execute_batch("PRAGMA wal_autocheckpoint=0").explain("wal_autocheckpoint")?;
    }
    let mut insert = Inserter::new(db)?;
    (0..WARM).try_for_each(|_| insert.step())?;
    Ok(Lane::new(row.name, move || insert.step()).before(move || match checkpoint {
        Some(sql) => db.query_row(sql, [], |_| Ok(())).explain(sql),
        None => Ok(()),
    }))
}
