//! Ring `kill`: processes killed (`kill -9`) and stopped (`SIGSTOP`) at random moments, on the real
//! system, with stock SQLite and the loaded extension.
//!
//! The page cache survives a killed process, so this is not about flushes: it is about locks that
//! vanish, shared memory that stays, half-done exchanges of names, and recoveries that begin while
//! others still work or that are killed themselves. Four processes at a time write, read, open and
//! close, and switch the journal mode. What SQLite acknowledged is kept in ledgers outside of the
//! database (`ledger`).

mod alone;
mod beside;
mod check;
mod guests;
mod ledger;
mod pairs;
mod process;
mod roles;
mod round;
mod statements;
mod stopped;
mod worker;
mod workload;

use std::path::{Path, PathBuf};
use std::time::Instant;

use round::{Report, Setting};

use crate::again::{Again, Assignment};
use crate::deadly;
use crate::engine::{Engine, GUESTS, Loaded};
use crate::engines::ENGINES;
use crate::random::{Dice, mix};
use crate::{Failure, Options, Summary, Watch, sqlite};

/// Of the time, a variant with guests or stock writers gets so many times what another one gets.
const OTHERS_SHARE: u32 = 3;
/// Every so many rounds a process is stopped instead of killed. With guests, as often two databases
/// are written together, and a stock process is killed with half of a transaction in the file; half
/// as often a script is alone. Where stock writers are let in, as often some are beside
/// those of dash.
const STOPS: u64 = 12;
/// Rounds on one database: a fresh one now and then, so that first commits are killed, too.
const ROUNDS: u64 = 25;

/// More failures than this of one variant say nothing new.
const ENOUGH: usize = 5;

/// Plays the part of a worker.
pub(crate) fn worker(role: &str, assignment: &Assignment) -> Result<(), String> {
    if role != pairs::WRITER {
        return roles::play(role, assignment);
    }
    // It dies at a call.
    let assignment = assignment.clone();
    deadly::run(move || roles::play(pairs::WRITER, &assignment))
        .map_err(|error| error.to_string())?
}

/// A variant of an engine.
struct Target {
    engine: &'static dyn Engine,
    loaded: &'static dyn Loaded,
    variant: &'static str,
    /// URI parameters; of several, with guests, one is drawn for each database. With guests, stock
    /// processes are among the four, and some that must not write.
    parameters: Vec<&'static str>,
    has_guests: bool,
}

impl Target {
    /// Those of an engine.
    fn of(engine: &'static dyn Engine) -> Vec<Self> {
        let Some(loaded) = engine.loaded() else { return Vec::new() };
        let target = |variant, parameters, has_guests| Self {
            engine,
            loaded,
            variant,
            parameters,
            has_guests,
        };
        // A copy of the files, which this ring opens as well, has no log elsewhere.
        let is_in_one_place = |(_, uri): &(_, &str)| !uri.contains(sqlite::ELSEWHERE);
        let variants = engine.loaded_variants().into_iter().filter(is_in_one_place);
        let variants: Vec<_> = variants.collect();
        // With guests processes have the database together.
        let all = variants.iter().map(|(_, uri)| *uri);
        let all = all.filter(|uri| !uri.contains(sqlite::IN_MEMORY)).collect();
        let alone = variants.iter().map(|(variant, uri)| target(variant.name, vec![*uri], false));
        alone.chain(std::iter::once(target(GUESTS, all, true))).collect()
    }

    fn name(&self) -> String {
        format!("{}/{}", self.engine.name(), self.variant)
    }

    fn share(&self) -> u32 {
        let has_others =
            self.has_guests || self.parameters.iter().any(|one| has_stock_writers(one));
        if has_others { OTHERS_SHARE } else { 1 }
    }
}

fn has_stock_writers(parameters: &str) -> bool {
    parameters.contains(sqlite::STOCK_WRITES)
}

fn all() -> impl Iterator<Item = Target> {
    ENGINES.iter().flat_map(|engine| Target::of(*engine))
}

/// All that the ring tries.
pub fn targets() -> Vec<String> {
    all().map(|target| target.name()).collect()
}

/// Runs rounds until the time is over, each variant for its share of it. [`Summary::cases`] counts
/// rounds, [`Summary::states`] what killed processes left, [`Summary::nested`] processes that were
/// killed while they opened what killed processes had left.
pub fn run(options: &Options, watch: &dyn Watch, again: &Again) -> Vec<Summary> {
    let wanted: Vec<_> = all().filter(|target| options.wants(&target.name())).collect();
    let shares = wanted.iter().map(Target::share).sum::<u32>().max(1);
    let begun = Instant::now();
    let mut summaries = Vec::new();
    let mut cases = 0;
    let mut given = 0;
    for target in &wanted {
        given += target.share();
        let share = options.time * given / shares;
        let mut go_on = |more: u64| {
            cases += more;
            let done = begun.elapsed().as_secs_f64() / options.time.as_secs_f64().max(0.001);
            watch.progress(cases, done) && begun.elapsed() < share
        };
        summaries.push(run_target(target, options, again, &mut go_on));
    }
    summaries
}

/// The seeds of the databases to be tried: one if a case was named.
fn seeds(options: &Options) -> Vec<u64> {
    match options.case.as_deref().map(str::parse) {
        Some(seed) => seed.into_iter().collect(),
        None => (0..1 << 20).map(|run| mix(options.seed ^ run << 32)).collect(),
    }
}

fn run_target(
    target: &Target,
    options: &Options,
    again: &Again,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Summary {
    let engine = target.name();
    let mut summary = Summary { engine: engine.clone(), ..Summary::default() };
    if let Err(reason) = sqlite::load(&options.library) {
        summary.skipped.push(reason);
        return summary;
    }
    let mut all = Report::default();
    for seed in seeds(options) {
        let ran = database(target, options, again, seed, &mut all, &mut summary.cases, go_on);
        match ran {
            Ok(true) => {}
            Ok(false) => break,
            Err(what) => {
                let replay = format!("dash-torture --ring kill --engine {engine} --case {seed}");
                summary.failures.push(Failure { what, replay });
                if summary.failures.len() >= ENOUGH || !go_on(0) {
                    break;
                }
            }
        }
    }
    summary.states = all.states.len() as u64;
    summary.nested = all.nested;
    summary.nested_twice = all.nested_twice;
    summary.notes.push(all.to_string());
    summary
}

/// Rounds on one database; `false` when the time is over.
fn database(
    target: &Target,
    options: &Options,
    again: &Again,
    seed: u64,
    all: &mut Report,
    cases: &mut u64,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<bool, String> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("dash-kill-");
    let folder = match &options.folder {
        Some(folder) => builder.tempdir_in(folder),
        None => builder.tempdir(),
    }
    .map_err(|error| format!("making a folder: {error}"))?;
    // The user nobody looks in, too.
    let rights = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), rights).map_err(|error| error.to_string())?;
    let path = folder.path().join("app.db");
    let mut dice = Dice::new(seed, 0);
    let parameters = match target.parameters[..] {
        [only] => only,
        ref several => dice.pick(several).unwrap_or_default(),
    };
    let made = make(&path, parameters);
    let has_guests = target.has_guests;
    let is_beside = has_stock_writers(parameters);
    let setting = Setting {
        again,
        engine: target.engine.name(),
        loaded: target.loaded,
        library: &options.library,
        database: &path,
        parameters,
        has_guests,
    };
    let rounds = || -> Result<bool, String> {
        made?;
        for round in 0..ROUNDS {
            let result = match dice.below(STOPS) {
                0 => setting.stop(&mut dice),
                1 if has_guests => setting.pairs(&mut dice),
                2 if has_guests && dice.one_in(2) => setting.alone(&mut dice),
                3 if has_guests => setting.spilled(&mut dice),
                4 if is_beside => setting.beside(&mut dice),
                _ => setting.round(&mut dice),
            };
            all.add(&result.map_err(|what| format!("round {round}: {what}"))?);
            *cases += 1;
            if !go_on(1) {
                return Ok(false);
            }
        }
        Ok(true)
    };
    rounds().map_err(|what| format!("{what}\nthe files are kept in {}", keep(folder).display()))
}

fn make(path: &Path, parameters: &str) -> Result<(), String> {
    let made = sqlite::open(path, parameters).and_then(|db| {
        workload::make(&db)?;
        db.close().map_err(|(_, error)| error)
    });
    made.map_err(|error| format!("making a database: {error}; {}", sqlite::last_error()))
}

fn keep(folder: tempfile::TempDir) -> PathBuf {
    folder.keep()
}
