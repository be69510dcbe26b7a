//! How long it takes to be back after a writer was killed: open to the first row read, and on to
//! the first commit.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::copy;
use crate::failure::{Explain, Result};
use crate::options::Choice;
use crate::progress::{Progress, Unit};
use crate::row::Row;
use crate::sides::FLOOR;
use crate::volume::Volume;
use crate::workers::Killable;

/// Pages in stock WAL's log when its writer is killed.
const PAGES: usize = 500;
/// Commits before that, of engines without a log.
const COMMITS: usize = 40;
/// At any moment of so many commits' time.
const MOMENTS: [u64; 7] = [200, 1100, 430, 3700, 90, 2300, 760];

/// Milliseconds.
pub struct Times {
    /// Of open and first read.
    pub average: f64,
    /// The shortest of them.
    pub shortest: f64,
    /// The longest.
    pub longest: f64,
    /// On average, with the first commit.
    pub with_commit: f64,
}

/// Kills so many writers.
pub fn times(
    volume: &Volume,
    choice: Choice,
    engine: &'static Row,
    trials: usize,
) -> Result<Times> {
    let folder = volume.folder("papers")?;
    let base = folder.path().join("base.db");
    let settings = choice.settings()?;
    let db = FLOOR.open(&base)?;
    settings.workload()?.build(&db)?;
    db.close().map_err(|(_, error)| error).explain("closing the base")?;
    let commits = match engine.sqlite().is_some_and(|sqlite| sqlite.is_wal()) {
        true => PAGES / settings.operations,
        false => COMMITS,
    };
    let what = format!("recovery, {}", engine.name);
    let mut progress = Progress::new(&what, crate::numbers::count(trials), Unit::Count);
    let (mut reads, mut both) = (Vec::new(), Vec::new());
    for trial in 0..trials {
        let home = folder.path().join(trial.to_string());
        std::fs::create_dir(&home).explain("making a folder")?;
        let path = home.join("app.db");
        copy::copy(&base, &path)?;
        let mut writer = Killable::start(&settings, engine, &path)?;
        writer.steps(commits)?;
        let moment = MOMENTS[trial % MOMENTS.len()];
        writer.kill_within(Duration::from_micros(moment))?;
        let (read, commit) = recover(engine, &path)?;
        reads.push(read);
        both.push(commit);
        std::fs::remove_dir_all(&home).explain("removing a folder")?;
        progress.step(1)?;
    }
    let average = |times: &[f64]| {
        times.iter().sum::<f64>() / crate::numbers::float(crate::numbers::count(times.len()).max(1))
    };
    Ok(Times {
        average: average(&reads),
        shortest: reads.iter().copied().fold(f64::INFINITY, f64::min),
        longest: reads.iter().copied().fold(0.0, f64::max),
        with_commit: average(&both),
    })
}

fn recover(engine: &'static Row, path: &Path) -> Result<(f64, f64)> {
    let begun = Instant::now();
    let db = engine.start(path)?;
    let body: String = db
        .query_row("SELECT body FROM t0 WHERE id = 1", [], |row| row.get(0))
        .explain("the first read after a kill")?;
    std::hint::black_box(body);
    let read = begun.elapsed();
    db.execute("UPDATE t0 SET body = 'recovered' WHERE id = 2", [])
        .explain("the first commit after a kill")?;
    let commit = begun.elapsed();
    db.close().map_err(|(_, error)| error).explain("closing")?;
    Ok((read.as_secs_f64() * 1e3, commit.as_secs_f64() * 1e3))
}
