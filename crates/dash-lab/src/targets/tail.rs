//! The slowest commits: random updates of an indexed column, so that a commit changes about three
//! pages and stock WAL, at its default settings, stops for a checkpoint every few hundred commits.

use rusqlite::{Connection, params};

use super::bench::Bench;
use super::data::{Dice, ROWS, with_rows};
use crate::failure::{Explain, Result};
use crate::interleave::{self, Lane};
use crate::report::{Section, Target};
use crate::row::Row;
use crate::sides::{DURABLE, SINGLE, WAL};
use crate::volume::Volume;

const ROUNDS: usize = 15;
const BLOCK: usize = 2000;
const SIDES: [&Row; 2] = [SINGLE, WAL];

/// Makes the section.
pub fn measure(bench: &Bench) -> Result<Section> {
    let what = format!(
        "random autocommit updates of an indexed column, {ROWS} rows of 100 bytes; stock WAL at its default wal_autocheckpoint (1000)"
    );
    let mut section = Section::new("tail", what, DURABLE);
    let (volumes, missing) = bench.volumes.timed()?;
    for volume in volumes {
        on(bench, volume, &mut section)?;
    }
    if let Some(missing) = missing {
        section.note(missing);
    }
    Ok(section)
}

fn on(bench: &Bench, volume: &Volume, section: &mut Section) -> Result<()> {
    let folder = volume.folder("tail")?;
    let mut connections = Vec::new();
    for engine in SIDES {
        let db = with_rows(engine, &folder.path().join(engine.word), ROWS)?;
        db.execute_batch(
            "ALTER TABLE t ADD COLUMN n INTEGER; UPDATE t SET n = id; CREATE INDEX by_n ON t (n)",
        )
        .explain("making an index")?;
        connections.push(db);
    }
    let mut lanes = Vec::new();
    for (engine, db) in SIDES.iter().zip(&connections) {
        lanes.push(lane(engine.name, db)?);
    }
    let label = volume.label;
    let samples = interleave::run(
        &format!("tail on {label}"),
        Some(volume),
        &mut lanes,
        bench.many(ROUNDS),
        BLOCK,
    )?;
    if let [dash, wal] = &samples[..] {
        let ratio = dash.at(99.9) / wal.at(99.9).max(f64::MIN_POSITIVE);
        section.target(
            format!("{label}: dash / stock WAL, p99.9 of all"),
            ratio,
            "x",
            Target::AtMost(0.25),
        );
        section.figure(
            format!("{label}: dash / stock WAL, p99.9, median of rounds"),
            dash.ratio_to(wal, |block| block.p999),
            "x",
        );
        section.figure(
            format!("{label}: dash / stock WAL, mean"),
            dash.ratio_to(wal, |block| block.mean),
            "x",
        );
    }
    for (lane, sample) in lanes.iter().zip(&samples) {
        section.note(format!("{label}: {}: {}", lane.name, sample.describe()));
    }
    Ok(())
}

fn lane<'a>(name: &str, db: &'a Connection) -> Result<Lane<'a>> {
    let mut update =
        db.prepare("UPDATE t SET n = ?1 WHERE id = ?2").explain("preparing an update")?;
    let mut dice = Dice::new(11);
    let mut step = move || {
        let values = params![dice.roll(1 << 30), dice.roll(ROWS)];
        update.execute(values).map(drop).explain("updating")
    };
    (0..100).try_for_each(|_| step())?;
    Ok(Lane::new(name, step))
}
