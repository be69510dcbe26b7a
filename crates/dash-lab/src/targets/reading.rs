//! Time of an autocommit point read, dash beside stock WAL and DELETE.

use super::bench::Bench;
use super::data::{LARGE_CACHE, PointReader, ROWS, SMALL_CACHE, with_rows};
use crate::failure::{Explain, Result};
use crate::interleave::{self, Lane};
use crate::report::{Section, Target};
use crate::row::Row;
use crate::sides::{DASH_WAL, DELETE, READS_ONLY, SINGLE, WAL};

const ROUNDS: usize = 40;
/// Blocks this short are timed as one.
const BLOCK: usize = 2000;
const SIDES: [&Row; 4] = [SINGLE, WAL, DELETE, DASH_WAL];

/// Makes the section.
pub fn measure(bench: &Bench) -> Result<Section> {
    let what = format!(
        "autocommit point read by rowid, prepared, {ROWS} rows of 100 bytes, alternating blocks of {BLOCK}"
    );
    let mut section = Section::new("reading", what, READS_ONLY);
    let folder = bench.volumes.v()?.folder("reading")?;
    let mut connections = Vec::new();
    for engine in SIDES {
        connections.push(with_rows(engine, &folder.path().join(engine.word), ROWS)?);
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
            lanes.push(Lane::new(engine.name, move || (0..BLOCK).try_for_each(|_| read.step())));
        }
        let samples =
            interleave::run(&format!("reading, {title}"), None, &mut lanes, bench.many(ROUNDS), 1)?;
        if let [dash, wal, delete, dash_wal] = &samples[..] {
            section.target(
                format!("{title}: dash WAL / stock WAL"),
                dash_wal.ratio_to(wal, |block| block.mean),
                "x",
                Target::AtMost(1.03),
            );
            section.target(
                format!("{title}: dash / stock WAL"),
                dash.ratio_to(wal, |block| block.mean),
                "x",
                Target::AtMost(1.0),
            );
            section.figure(
                format!("{title}: dash / stock DELETE"),
                dash.ratio_to(delete, |block| block.mean),
                "x",
            );
        }
        for (engine, sample) in SIDES.iter().zip(&samples) {
            let micros = sample.typical(|block| block.mean)
                / crate::numbers::float(crate::numbers::count(BLOCK));
            section.figure(format!("{title}: {}", engine.name), micros, "us");
        }
    }
    Ok(section)
}
