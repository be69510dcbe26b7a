//! System calls of a point read and of an insert, counted by strace.

use super::bench::Bench;
use super::data::{ROWS, with_rows};
use crate::failure::Result;
use crate::numbers::count;
use crate::progress::{Progress, Unit};
use crate::report::{Section, Target};
use crate::row::Row;
use crate::sides::{DASH_WAL, DELETE, DURABLE, SINGLE, WAL};
use crate::strace;
use crate::work::Job;

const OPERATIONS: usize = 2000;

const CASES: [(Job, &str, &Row, f64); 10] = [
    (Job::Read, "point read, table in SQLite's cache", SINGLE, 2.0),
    (Job::Read, "point read, table in SQLite's cache", WAL, 0.0),
    (Job::ReadSmallCache, "point read, cache of 2 MB", SINGLE, 0.0),
    (Job::ReadSmallCache, "point read, cache of 2 MB", WAL, 0.0),
    (Job::ReadSmallCache, "point read, cache of 2 MB", DELETE, 0.0),
    (Job::Insert, "insert", SINGLE, 13.0),
    (Job::Insert, "insert", WAL, 0.0),
    (Job::Read, "point read, table in SQLite's cache", DASH_WAL, 0.0),
    (Job::ReadSmallCache, "point read, cache of 2 MB", DASH_WAL, 0.0),
    (Job::Insert, "insert", DASH_WAL, 14.0),
];

/// Makes the section.
pub fn measure(bench: &Bench) -> Result<Section> {
    let what = format!(
        "system calls per autocommit operation, {ROWS} rows of 100 bytes (strace -c, n and 2 n operations)"
    );
    let mut section = Section::new("calls", what, DURABLE);
    let volume = bench.volumes.v()?;
    let folder = volume.folder("calls")?;
    let operations = count(bench.many(OPERATIONS));
    let mut progress = Progress::new("calls", count(4 + CASES.len()), Unit::Count);
    for engine in [SINGLE, WAL, DASH_WAL, DELETE] {
        drop(with_rows(engine, &folder.path().join(engine.word), ROWS)?);
        progress.step(1)?;
    }
    let mut reads = Vec::new();
    for (job, what, engine, wanted) in CASES {
        let path = folder.path().join(engine.word);
        let words = ["work", job.word(), engine.word].map(Into::into);
        let counted = strace::count(&[&words[..], &[path.into()]].concat(), operations)?;
        let title = format!("{what}, {}", engine.name);
        section.note(format!("{title}: {}", counted.names));
        if job != Job::Insert {
            reads.push((job, engine, counted.total));
        }
        if wanted > 0.0 {
            section.target(title.clone(), counted.typical, "calls", Target::AtMost(wanted));
            section.figure(format!("{title}, mean (page splits, growth)"), counted.total, "calls");
        } else {
            section.figure(title, counted.total, "calls");
        }
        progress.step(1)?;
    }
    for (job, what) in [(Job::Read, CASES[0].1), (Job::ReadSmallCache, CASES[2].1)] {
        let of = |row: &Row| reads.iter().find(|read| read.0 == job && read.1 == row);
        if let (Some(dash), Some(stock)) = (of(DASH_WAL), of(WAL)) {
            // What a page split or a checkpoint adds is in neither; half a call of noise is.
            let label = format!("{what}, dash WAL - stock WAL");
            section.target(label, dash.2 - stock.2, "calls", Target::AtMost(0.01));
        }
    }
    Ok(section)
}
