//! Opening a cleanly closed small database: until the first row has been read.

use std::path::Path;
use std::time::Instant;

use super::bench::Bench;
use super::data::with_rows;
use crate::failure::{Explain, Result};
use crate::interleave::THROTTLED_MAX;
use crate::numbers::{count, nanos};
use crate::progress::{Progress, Unit};
use crate::report::{Section, Target};
use crate::row::Row;
use crate::sample::Sample;
use crate::sides::{DELETE, READS_ONLY, SINGLE, WAL};
use crate::throttle::Throttle;
use crate::volume::Volume;

const ROUNDS: usize = 30;
const BLOCK: usize = 20;
const SIDES: [&Row; 3] = [SINGLE, DELETE, WAL];

/// Makes the section.
pub fn measure(bench: &Bench) -> Result<Section> {
    let mut section = Section::new(
        "opening",
        "open + first read of a cleanly closed database of 1,000 rows; closing apart",
        READS_ONLY,
    );
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
    let folder = volume.folder("opening")?;
    for engine in SIDES {
        let db = with_rows(engine, &folder.path().join(engine.word), 1000)?;
        db.execute("INSERT INTO log (body) VALUES ('a second commit')", []).explain("inserting")?;
        db.close().map_err(|(_, error)| error).explain("closing")?;
    }
    let rounds = bench.many(ROUNDS);
    let mut progress =
        Progress::new(&format!("opening on {}", volume.label), count(rounds), Unit::Count);
    let mut opened = SIDES.iter().map(|_| Sample::new()).collect::<Result<Vec<_>>>()?;
    let mut closed = SIDES.iter().map(|_| Sample::new()).collect::<Result<Vec<_>>>()?;
    let throttle = Throttle::new(volume, THROTTLED_MAX)?;
    while opened[0].blocks.len() < rounds {
        let mut blocks = Vec::new();
        for engine in SIDES {
            let path = folder.path().join(engine.word);
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
    let label = volume.label;
    if let [dash, delete, wal] = &opened[..] {
        let p50 = |sample: &Sample| sample.typical(|block| block.p50);
        section.target(
            format!("{label}: dash - stock DELETE, p50"),
            (p50(dash) - p50(delete)) / 1000.0,
            "ms",
            Target::AtMost(0.3),
        );
        section.figure(
            format!("{label}: dash - stock WAL, p50"),
            (p50(dash) - p50(wal)) / 1000.0,
            "ms",
        );
    }
    for ((engine, open), close) in SIDES.iter().zip(&opened).zip(&closed) {
        section.note(format!("{label}: {}: open + read: {}", engine.name, open.describe()));
        section.note(format!("{label}: {}: close: {}", engine.name, close.describe()));
    }
    Ok(())
}

fn cycle(engine: &'static Row, path: &Path) -> Result<(u64, u64)> {
    let begun = Instant::now();
    let db = engine.connect(path)?;
    let body: String = db
        .query_row("SELECT body FROM t WHERE id = 500", [], |row| row.get(0))
        .explain("reading")?;
    std::hint::black_box(body);
    let opened = nanos(begun.elapsed());
    let begun = Instant::now();
    db.close().map_err(|(_, error)| error).explain("closing")?;
    Ok((opened, nanos(begun.elapsed())))
}
