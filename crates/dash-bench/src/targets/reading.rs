//! Time of an autocommit point read, dash beside stock WAL and DELETE.

use super::Bench;
use super::data::{LARGE_CACHE, PointReader, ROWS, SMALL_CACHE, with_rows};
use crate::engine::{Engine, READS_ONLY};
use crate::failure::{Explain, Result};
use crate::lanes::{self, Lane};
use crate::report::{Row, Target};

const ROUNDS: usize = 40;
/// Blocks this short are timed as one.
const BLOCK: usize = 2000;
const SIDES: [Engine; 3] = [Engine::Single, Engine::Wal, Engine::Delete];

/// Makes the row.
pub fn measure(bench: &Bench) -> Result<Row> {
    let what = format!(
        "autocommit point read by rowid, prepared, {ROWS} rows of 100 bytes, alternating blocks of {BLOCK}"
    );
    let mut row = Row::new("reading", what, READS_ONLY);
    let folder = bench.places.v()?.folder("reading")?;
    let mut connections = Vec::new();
    for engine in SIDES {
        connections.push(with_rows(engine, &folder.path().join(engine.word()), ROWS)?);
    }
    for (cache, title) in [(LARGE_CACHE, "table in SQLite's cache"), (SMALL_CACHE, "cache of 2 MB")]
    {
        let mut lanes = Vec::new();
        for (engine, db) in SIDES.iter().zip(&connections) {
            db.execute_batch(cache).explain("setting the cache")?;
            let mut read = PointReader::new(db)?;
            for _ in 0..ROWS {
                read.step_in_order()?;
            }
            // One step of a lane is a whole block: a clock read costs as much as a tenth of a read.
            lanes.push(Lane::new(engine.name(), move || (0..BLOCK).try_for_each(|_| read.step())));
        }
        let samples =
            lanes::run(&format!("reading, {title}"), None, &mut lanes, bench.many(ROUNDS), 1)?;
        if let [dash, wal, delete] = &samples[..] {
            row.target(
                format!("{title}: dash / stock WAL"),
                dash.ratio_to(wal, |block| block.mean),
                "x",
                Target::AtMost(1.0),
            );
            row.figure(
                format!("{title}: dash / stock DELETE"),
                dash.ratio_to(delete, |block| block.mean),
                "x",
            );
        }
        for (engine, sample) in SIDES.iter().zip(&samples) {
            let micros = sample.typical(|block| block.mean)
                / crate::numbers::float(crate::numbers::count(BLOCK));
            row.figure(format!("{title}: {}", engine.name()), micros, "us");
        }
    }
    Ok(row)
}
