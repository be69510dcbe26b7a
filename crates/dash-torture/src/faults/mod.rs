//! Ring `faults`: every call of storage made to fail, in every way that it can, under every
//! operation.
//!
//! | part | what fails | where |
//! |---|---|---|
//! | `calls` | the calls of the storage trait, also flushes that lose their pages | the engine, simulated storage |
//! | `sql` | system calls: EIO, ENOSPC, EDQUOT, EINTR, short counts, once and for ever | stock SQLite, the loaded extension, a real file system |
//! | `memory` | SQLite's allocations | stock SQLite, the loaded extension |
//! | `blocks` | bits, lengths, and blocks that lie | the engine, simulated storage; some on real files |
//! | `scribble` | words of the memory that connections share, while they use it | stock SQLite, the loaded extension |
//!
//! Each case ends in success or in an error of SQLite with a fitting code and a message; never in a
//! panic; and when all is well again the database is sound.

mod blocks;
mod calls;
mod memory;
mod scribble;
mod simulated;
pub(crate) mod sql;

use std::path::Path;
use std::time::Instant;

use crate::random::Dice;
use crate::sim::Shadow;
use crate::sim::subject::Subject;
use crate::worker::{Again, Assignment};
use crate::{Failure, Options, Summary, Watch, sqlite};

/// More failures than this of one part say nothing new.
const ENOUGH: usize = 20;

/// Plays the part of a worker.
pub(crate) fn worker(role: &str, assignment: &Assignment) -> Option<Result<(), String>> {
    match role {
        sql::crashed::ROLE => Some(sql::crashed::worker(assignment)),
        memory::ROLE => Some(memory::worker(assignment)),
        scribble::ROLE => Some(scribble::worker(assignment)),
        _ => None,
    }
}

/// A folder for a case, below `parent` if there is one.
fn case_folder(parent: Option<&Path>) -> Result<tempfile::TempDir, String> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("dash-faults-");
    // Nothing here depends on the device: where nobody asks for one, memory is faster.
    let memory = Path::new("/dev/shm");
    let made = match parent.or(memory.is_dir().then_some(memory)) {
        Some(parent) => builder.tempdir_in(parent).or_else(|error| match parent == memory {
            true => builder.tempdir(),
            false => Err(error),
        }),
        None => builder.tempdir(),
    };
    made.map_err(|error| format!("making a folder: {error}"))
}

/// Says when a part has to end.
type GoOn<'a> = dyn FnMut() -> bool + 'a;

/// A part: its name, and what runs it.
type Part = (&'static str, fn(&Options, &Again, &mut Summary, &mut GoOn<'_>));

const PARTS: [Part; 7] = [
    ("shadow/calls", |options, _, summary, go_on| {
        simulated::calls(&Shadow, options, summary, go_on)
    }),
    ("shadow/sql", system_calls),
    ("shadow/memory", memory::run),
    ("shadow/damage", |options, _, summary, go_on| {
        simulated::damage(&Shadow, options, summary, go_on)
    }),
    ("shadow/forged", |options, _, summary, go_on| {
        simulated::forged(&Shadow, options, summary, go_on)
    }),
    ("shadow/decode", |options, _, summary, go_on| {
        simulated::decoded(&Shadow, options, summary, go_on)
    }),
    ("shadow/scribble", scribble::run),
];

/// All that the ring tries.
pub fn targets() -> Vec<String> {
    PARTS.iter().map(|(name, _)| (*name).to_owned()).collect()
}

/// Runs all parts, each for its share of the time; what one has left the next ones get.
/// [`Summary::cases`] counts faults.
pub fn run(options: &Options, watch: &dyn Watch, again: &Again) -> Vec<Summary> {
    let begun = Instant::now();
    let mut cases = 0;
    let wanted: Vec<_> = PARTS.iter().filter(|(name, _)| options.wants(name)).collect();
    let mut left = u32::try_from(wanted.len()).unwrap_or(1);
    let mut summaries = Vec::new();
    for (name, part) in wanted {
        let until = begun.elapsed() + options.time.saturating_sub(begun.elapsed()) / left;
        left -= 1;
        let mut go_on = || {
            cases += 1;
            let done = begun.elapsed().as_secs_f64() / options.time.as_secs_f64().max(0.001);
            watch.progress(cases, done) && begun.elapsed() < until
        };
        let mut summary = Summary { engine: (*name).into(), ..Summary::default() };
        part(options, again, &mut summary, &mut go_on);
        summaries.push(summary);
    }
    summaries
}

type Simulated = fn(&dyn Subject, &Options, &mut Summary, &mut GoOn<'_>);

fn run_on(subject: &dyn Subject, part: Simulated, name: &str, options: &Options) -> Summary {
    let begun = Instant::now();
    let mut summary = Summary { engine: name.into(), ..Summary::default() };
    part(subject, options, &mut summary, &mut || begun.elapsed() < options.time);
    summary
}

/// Makes the calls of an engine fail, on simulated storage.
pub fn run_calls_on(subject: &dyn Subject, options: &Options) -> Summary {
    run_on(subject, simulated::calls, "calls", options)
}

/// Damages the metadata of the engine `shadow`, or of a mutant of it.
pub fn run_damage_on(subject: &dyn Subject, options: &Options) -> Summary {
    run_on(subject, simulated::damage, "damage", options)
}

/// Notes a failure; whether there are enough of them.
fn failed(summary: &mut Summary, what: &str, case: &str) -> bool {
    let engine = &summary.engine;
    let replay = format!("dash torture --ring faults --engine {engine} --case {case}");
    summary.failures.push(Failure { what: format!("{case}: {what}"), replay });
    summary.failures.len() >= ENOUGH
}

/// Shuffles what can't all be done in the time that there is.
fn shuffle<T>(all: &mut [T], seed: u64) {
    let mut dice = Dice::new(seed, 0);
    for at in (1..all.len()).rev() {
        let other = usize::try_from(dice.below(at as u64 + 1)).unwrap_or_default();
        all.swap(at, other);
    }
}

/// The part `sql`.
fn system_calls(options: &Options, again: &Again, summary: &mut Summary, go_on: &mut GoOn<'_>) {
    let parent = case_folder(options.folder.as_deref());
    let (parent, workers) = match (parent, sqlite::load(&options.library)) {
        (Ok(parent), Ok(())) => (parent, sql::Workers { again, library: &options.library }),
        (Err(reason), _) | (_, Err(reason)) => {
            summary.skipped.push(reason);
            return;
        }
    };
    let mut cases = match sql::cases(parent.path(), &workers, options.case.as_deref()) {
        Ok(cases) => cases,
        Err(reason) if reason.contains("seccomp: ") => {
            summary.skipped.push(reason);
            return;
        }
        Err(what) => {
            failed(summary, &what, "sql");
            return;
        }
    };
    shuffle(&mut cases, options.seed);
    for case in &cases {
        let result = case_folder(Some(parent.path()))
            .and_then(|folder| case.run(folder.path(), &workers).map(drop));
        summary.cases += 1;
        let enough = result.is_err_and(|what| failed(summary, &what, &case.name()));
        if enough || !go_on() {
            break;
        }
    }
    summary.notes.push(format!("{} of {} system calls made to fail", summary.cases, cases.len()));
}
