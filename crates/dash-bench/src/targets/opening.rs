//! Opening a cleanly closed small database: until the first row has been read.

use std::path::Path;
use std::time::Instant;

use super::Bench;
use super::data::with_rows;
use crate::engine::{Engine, READS_ONLY};
use crate::failure::{Explain, Result};
use crate::lanes::THROTTLED_MAX;
use crate::numbers::{count, nanos};
use crate::place::Place;
use crate::progress::{Progress, Unit};
use crate::report::{Row, Target};
use crate::sample::Sample;
use crate::throttle::Throttle;

const ROUNDS: usize = 30;
const BLOCK: usize = 20;
const SIDES: [Engine; 3] = [Engine::Single, Engine::Delete, Engine::Wal];

/// Makes the row.
pub fn measure(bench: &Bench) -> Result<Row> {
    let mut row = Row::new(
        "opening",
        "open + first read of a cleanly closed database of 1,000 rows; closing apart",
        READS_ONLY,
    );
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
    let folder = place.folder("opening")?;
    for engine in SIDES {
        let db = with_rows(engine, &folder.path().join(engine.word()), 1000)?;
        db.execute("INSERT INTO log (body) VALUES ('a second commit')", []).explain("inserting")?;
        db.close().map_err(|(_, error)| error).explain("closing")?;
    }
    let rounds = bench.many(ROUNDS);
    let mut progress =
        Progress::new(&format!("opening on {}", place.label), count(rounds), Unit::Count);
    let mut opened = SIDES.iter().map(|_| Sample::new()).collect::<Result<Vec<_>>>()?;
    let mut closed = SIDES.iter().map(|_| Sample::new()).collect::<Result<Vec<_>>>()?;
    let throttle = Throttle::new(place, THROTTLED_MAX)?;
    while opened[0].blocks.len() < rounds {
        let mut blocks = Vec::new();
        for engine in SIDES {
            let path = folder.path().join(engine.word());
            let times = (0..BLOCK).map(|_| cycle(engine, &path)).collect::<Result<Vec<_>>>()?;
            blocks.push(times.into_iter().unzip::<u64, u64, Vec<_>, Vec<_>>());
        }
        if throttle.was_on(&progress)? {
            continue;
        }
        for (at, (opens, closes)) in blocks.iter().enumerate() {
            opened[at].add(opens);
            closed[at].add(closes);
        }
        progress.step(1)?;
    }
    let label = place.label;
    if let [dash, delete, wal] = &opened[..] {
        let p50 = |sample: &Sample| sample.typical(|block| block.p50);
        row.target(
            format!("{label}: dash - stock DELETE, p50"),
            (p50(dash) - p50(delete)) / 1000.0,
            "ms",
            Target::AtMost(0.3),
        );
        row.figure(
            format!("{label}: dash - stock WAL, p50"),
            (p50(dash) - p50(wal)) / 1000.0,
            "ms",
        );
    }
    for ((engine, open), close) in SIDES.iter().zip(&opened).zip(&closed) {
        row.note(format!("{label}: {}: open + read: {}", engine.name(), open.describe()));
        row.note(format!("{label}: {}: close: {}", engine.name(), close.describe()));
    }
    Ok(())
}

fn cycle(engine: Engine, path: &Path) -> Result<(u64, u64)> {
    let begun = Instant::now();
    let db = engine.connect(path).explain("opening")?;
    let body: String = db
        .query_row("SELECT body FROM t WHERE id = 500", [], |row| row.get(0))
        .explain("reading")?;
    std::hint::black_box(body);
    let opened = nanos(begun.elapsed());
    let begun = Instant::now();
    db.close().map_err(|(_, error)| error).explain("closing")?;
    Ok((opened, nanos(begun.elapsed())))
}
