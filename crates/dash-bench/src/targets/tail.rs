//! The slowest commits: random updates of an indexed column, so that a commit changes about three
//! pages and stock WAL, at its default settings, stops for a checkpoint every few hundred commits.

use rusqlite::{Connection, params};

use super::Bench;
use super::data::{Dice, ROWS, with_rows};
use crate::engine::{DURABLE, Engine};
use crate::failure::{Explain, Result};
use crate::lanes::{self, Lane};
use crate::place::Place;
use crate::report::{Row, Target};

const ROUNDS: usize = 15;
const BLOCK: usize = 2000;
const SIDES: [Engine; 2] = [Engine::Single, Engine::Wal];

/// Makes the row.
pub fn measure(bench: &Bench) -> Result<Row> {
    let what = format!(
        "random autocommit updates of an indexed column, {ROWS} rows of 100 bytes; stock WAL at its default wal_autocheckpoint (1000)"
    );
    let mut row = Row::new("tail", what, DURABLE);
    let (places, missing) = bench.places.timed()?;
    for place in places {
        on(bench, place, &mut row)?;
    }
    if let Some(missing) = missing {
        row.note(missing);
    }
    Ok(row)
}

fn on(bench: &Bench, place: &Place, row: &mut Row) -> Result<()> {
    let folder = place.folder("tail")?;
    let mut connections = Vec::new();
    for engine in SIDES {
        let db = with_rows(engine, &folder.path().join(engine.word()), ROWS)?;
        db.execute_batch(
            "ALTER TABLE t ADD COLUMN n INTEGER; UPDATE t SET n = id; CREATE INDEX by_n ON t (n)",
        )
        .explain("making an index")?;
        connections.push(db);
    }
    let mut lanes = Vec::new();
    for (engine, db) in SIDES.iter().zip(&connections) {
        lanes.push(lane(engine.name(), db)?);
    }
    let label = place.label;
    let samples = lanes::run(
        &format!("tail on {label}"),
        Some(place),
        &mut lanes,
        bench.many(ROUNDS),
        BLOCK,
    )?;
    if let [dash, wal] = &samples[..] {
        let ratio = dash.at(99.9) / wal.at(99.9).max(f64::MIN_POSITIVE);
        row.target(
            format!("{label}: dash / stock WAL, p99.9 of all"),
            ratio,
            "x",
            Target::AtMost(0.25),
        );
        row.figure(
            format!("{label}: dash / stock WAL, p99.9, median of rounds"),
            dash.ratio_to(wal, |block| block.p999),
            "x",
        );
        row.figure(
            format!("{label}: dash / stock WAL, mean"),
            dash.ratio_to(wal, |block| block.mean),
            "x",
        );
    }
    for (lane, sample) in lanes.iter().zip(&samples) {
        row.note(format!("{label}: {}: {}", lane.name, sample.describe()));
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
