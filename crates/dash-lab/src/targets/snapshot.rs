//! Whether a commit waits for a reader that holds a snapshot: commits with such a reader and
//! without one in turns, in one thread, so that nothing but a lock could make a difference.

use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::bench::Bench;
use super::data::{Inserter, with_rows};
use crate::failure::{Explain, Result};
use crate::interleave::THROTTLED_MAX;
use crate::numbers::{count, nanos};
use crate::progress::{Progress, Unit};
use crate::report::{Section, Target};
use crate::row::Row;
use crate::sample::Sample;
use crate::sides::{DURABLE, SINGLE, WAL};
use crate::throttle::Throttle;
use crate::volume::Volume;

const ROUNDS: usize = 20;
const BLOCK: usize = 50;

/// Makes the section.
pub fn measure(bench: &Bench) -> Result<Section> {
    let mut section = Section::new(
        "snapshot",
        "time of the commit after a reader took its snapshot / time of one without a reader",
        DURABLE,
    );
    let (volumes, missing) = bench.volumes.timed()?;
    for volume in volumes {
        for engine in [SINGLE, WAL] {
            on(bench, volume, engine, &mut section)?;
        }
    }
    if let Some(missing) = missing {
        section.note(missing);
    }
    Ok(section)
}

fn on(bench: &Bench, volume: &Volume, engine: &'static Row, section: &mut Section) -> Result<()> {
    let folder = volume.folder("snapshot")?;
    let path = folder.path().join(engine.word);
    let writer = with_rows(engine, &path, 1000)?;
    let reader = engine.open(&path)?;
    let mut insert = Inserter::into(&writer, "log")?;
    (0..100).try_for_each(|_| insert.step())?;
    let (mut with, mut without) = (Sample::new()?, Sample::new()?);
    let rounds = bench.many(ROUNDS);
    let mut progress = Progress::new(
        &format!("snapshot, {} on {}", engine.name, volume.label),
        count(rounds),
        Unit::Count,
    );
    let throttle = Throttle::new(volume, THROTTLED_MAX)?;
    while with.blocks.len() < rounds {
        let mut times = (Vec::new(), Vec::new());
        for _ in 0..BLOCK {
            take_snapshot(&reader)?;
            times.0.push(timed(&mut insert)?);
            reader.execute_batch("COMMIT").explain("ending a snapshot")?;
            times.1.push(timed(&mut insert)?);
        }
        if throttle.was_on(&progress)? {
            continue;
        }
        with.add(&times.0);
        without.add(&times.1);
        progress.step(1)?;
    }
    let label = format!("{}: {}", volume.label, engine.name);
    let ratio = with.ratio_to(&without, |block| block.p50);
    if engine == SINGLE {
        section.target(format!("{label}: with / without, p50"), ratio, "x", Target::AtMost(1.1));
    } else {
        section.figure(format!("{label}: with / without, p50"), ratio, "x");
    }
    section.figure(
        format!("{label}: with / without, mean"),
        with.ratio_to(&without, |block| block.mean),
        "x",
    );
    section.note(format!("{label}: with: {}", with.describe()));
    section.note(format!("{label}: without: {}", without.describe()));
    section.note(format!("{label}: {}", further_commits(&writer, &reader)?));
    Ok(())
}

fn take_snapshot(reader: &Connection) -> Result<()> {
    reader.execute_batch("BEGIN").explain("BEGIN")?;
    reader
        .query_row("SELECT count(*) FROM log WHERE id < 10", [], |_| Ok(()))
        .explain("taking a snapshot")
}

fn timed(insert: &mut Inserter<'_>) -> Result<u64> {
    let begun = Instant::now();
    insert.step()?;
    Ok(nanos(begun.elapsed()))
}

/// How many commits pass one snapshot that stays.
fn further_commits(writer: &Connection, reader: &Connection) -> Result<String> {
    writer.busy_timeout(Duration::from_millis(50)).explain("busy_timeout")?;
    take_snapshot(reader)?;
    let mut insert = Inserter::into(writer, "log")?;
    let passed = (0..100).take_while(|_| insert.step().is_ok()).count();
    reader.execute_batch("COMMIT").explain("ending a snapshot")?;
    Ok(match passed {
        100 => "a hundred commits pass a snapshot that stays".to_owned(),
        _ => format!("a snapshot that stays lets {passed} commit(s) pass; the next waits for it"),
    })
}
