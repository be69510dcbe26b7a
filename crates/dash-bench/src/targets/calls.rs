//! System calls of a point read and of an insert, counted by strace.

use super::Bench;
use super::data::{ROWS, with_rows};
use crate::engine::{DURABLE, Engine};
use crate::failure::Result;
use crate::progress::{Progress, Unit};
use crate::report::{Row, Target};
use crate::strace;
use crate::work::Job;

const OPERATIONS: usize = 2000;

const CASES: [(Job, &str, Engine, f64); 7] = [
    (Job::Read, "point read, table in SQLite's cache", Engine::Single, 2.0),
    (Job::Read, "point read, table in SQLite's cache", Engine::Wal, 0.0),
    (Job::ReadSmallCache, "point read, cache of 2 MB", Engine::Single, 0.0),
    (Job::ReadSmallCache, "point read, cache of 2 MB", Engine::Wal, 0.0),
    (Job::ReadSmallCache, "point read, cache of 2 MB", Engine::Delete, 0.0),
    (Job::Insert, "insert", Engine::Single, 13.0),
    (Job::Insert, "insert", Engine::Wal, 0.0),
];

/// Makes the row.
pub fn measure(bench: &Bench) -> Result<Row> {
    let what = format!(
        "system calls per autocommit operation, {ROWS} rows of 100 bytes (strace -c, n and 2 n operations)"
    );
    let mut row = Row::new("calls", what, DURABLE);
    let place = bench.places.v()?;
    let folder = place.folder("calls")?;
    let operations = crate::numbers::count(bench.many(OPERATIONS));
    let mut progress = Progress::new("calls", 10, Unit::Count);
    for engine in [Engine::Single, Engine::Wal, Engine::Delete] {
        drop(with_rows(engine, &folder.path().join(engine.word()), ROWS)?);
        progress.step(1)?;
    }
    for (job, what, engine, wanted) in CASES {
        let path = folder.path().join(engine.word());
        let words = ["work", job.word(), &engine.word()].map(Into::into);
        let counted = strace::count(&[&words[..], &[path.into()]].concat(), operations)?;
        let title = format!("{what}, {}", engine.name());
        row.note(format!("{title}: {}", counted.names));
        if wanted > 0.0 {
            row.target(title.clone(), counted.typical, "calls", Target::AtMost(wanted));
            row.figure(format!("{title}, mean (page splits, growth)"), counted.total, "calls");
        } else {
            row.figure(title, counted.total, "calls");
        }
        progress.step(1)?;
    }
    Ok(row)
}
