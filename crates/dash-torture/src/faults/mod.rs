//! Ring `faults`: every call of storage made to fail, in every way that it can, under every
//! operation.
//!
//! | part | what fails | where |
//! |---|---|---|
//! | `calls` | the calls of the storage trait, also flushes that lose their pages | the engine, simulated storage |
//! | `sql` | system calls: EIO, ENOSPC, EDQUOT, EINTR, short counts, once and for ever | stock SQLite, the loaded extension, a real file system |
//! | `rest` | the same, while the database comes to rest | a process that has it open, or ends |
//! | `memory` | SQLite's allocations | stock SQLite, the loaded extension |
//! | others | what only an engine has: its blocks, the memory that its connections share | in the engine's folder |
//!
//! Each case ends in success or in an error of SQLite with a fitting code and a message; never in a
//! panic; and when all is well again the database is sound.

mod calls;
mod memory;
pub(crate) mod numbered;
pub(crate) mod part;
mod rest;
pub(crate) mod sql;

use std::time::Instant;

use crate::again::{Again, Assignment};
use crate::engine::Engine;
use crate::engines::ENGINES;
use crate::sim::subject::Subject;
use crate::{Options, Summary, Watch};
use part::GoOn;

/// Plays the part of a worker.
pub(crate) fn worker(role: &str, assignment: &Assignment) -> Option<Result<(), String>> {
    match role {
        sql::crashed::ROLE => Some(sql::crashed::worker(assignment)),
        memory::ROLE => Some(memory::worker(assignment)),
        rest::ROLE => Some(rest::worker(assignment)),
        _ => {
            let parts = ENGINES.iter().flat_map(|engine| engine.parts());
            let mut workers = parts.filter(|part| part.name == role).filter_map(|part| part.worker);
            workers.next().map(|worker| worker(assignment))
        }
    }
}

type Run = Box<dyn Fn(&Options, &Again, &mut Summary, &mut GoOn<'_>)>;

/// All that the ring tries: names, and what runs each.
fn all() -> Vec<(String, Run)> {
    ENGINES.iter().flat_map(|engine| of(*engine)).collect()
}

/// All that it tries of an engine.
fn of(engine: &'static dyn Engine) -> Vec<(String, Run)> {
    let mut all: Vec<(&str, Run)> = Vec::new();
    if engine.subject().sessions().is_some() {
        all.push((
            "calls",
            Box::new(move |options, _, summary, go_on| {
                calls::run(engine.subject(), options, summary, go_on);
            }),
        ));
    }
    if engine.loaded().is_some() {
        all.push((
            "sql",
            Box::new(move |options, again, summary, go_on| {
                sql::run(engine, options, again, summary, go_on);
            }),
        ));
        all.push((
            "rest",
            Box::new(move |options, again, summary, go_on| {
                rest::run(engine, options, again, summary, go_on);
            }),
        ));
        all.push((
            "memory",
            Box::new(move |options, again, summary, go_on| {
                memory::run(engine, options, again, summary, go_on);
            }),
        ));
    }
    all.extend(engine.parts().iter().map(|part| (part.name, Box::new(part.run) as Run)));
    all.into_iter().map(|(name, run)| (format!("{}/{name}", engine.name()), run)).collect()
}

/// All that the ring tries.
pub fn targets() -> Vec<String> {
    all().into_iter().map(|(name, _)| name).collect()
}

/// Runs all parts, each for its share of the time; what one has left the next ones get, and each
/// at least half of a share: a single case that waits for a stopped leader takes longer than that.
/// [`Summary::cases`] counts faults.
pub fn run(options: &Options, watch: &dyn Watch, again: &Again) -> Vec<Summary> {
    let begun = Instant::now();
    let mut cases = 0;
    let mut wanted = all();
    wanted.retain(|(name, _)| options.wants(name));
    let mut left = u32::try_from(wanted.len()).unwrap_or(1);
    let least = options.time / left.max(1) / 2;
    let mut summaries = Vec::new();
    for (name, part) in wanted {
        let share = options.time.saturating_sub(begun.elapsed()) / left;
        let until = begun.elapsed() + share.max(least);
        left -= 1;
        let mut go_on = || {
            cases += 1;
            let done = begun.elapsed().as_secs_f64() / options.time.as_secs_f64().max(0.001);
            watch.progress(cases, done) && begun.elapsed() < until
        };
        let mut summary = Summary { engine: name, ..Summary::default() };
        part(options, again, &mut summary, &mut go_on);
        summaries.push(summary);
    }
    summaries
}

/// Makes the calls of an engine fail, on simulated storage.
pub fn run_calls_on(subject: &dyn Subject, options: &Options) -> Summary {
    let begun = Instant::now();
    let mut summary = Summary { engine: "calls".into(), ..Summary::default() };
    calls::run(subject, options, &mut summary, &mut || begun.elapsed() < options.time);
    summary
}
