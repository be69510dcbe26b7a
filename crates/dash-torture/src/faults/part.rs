//! A part of the ring `faults`, and what all parts share.

use std::path::Path;

use crate::again::{Again, Assignment};
use crate::random::Dice;
use crate::{Failure, Options, Summary, sqlite};

/// More failures than this of one part say nothing new.
const ENOUGH: usize = 20;

/// So many cases of a part are run however long they take: on a slow machine what comes before the
/// first one, or a case that waits for a lock until SQLite gives up, takes longer than its whole
/// share.
pub(crate) const FEWEST: u64 = 24;

/// Says when a part has to end.
pub type GoOn<'a> = dyn FnMut() -> bool + 'a;

/// A part that only one engine has.
pub struct Part {
    /// Its name behind the engine's, and the role of its worker processes.
    pub name: &'static str,
    /// Runs it until it has to end.
    pub run: fn(&Options, &Again, &mut Summary, &mut GoOn<'_>),
    /// Plays a worker's part; `None`: it has no workers.
    pub worker: Option<Worker>,
}

/// Plays the part of a worker process; `Err` says what must never happen.
pub(crate) type Worker = fn(&Assignment) -> Result<(), String>;

/// A folder for a case, below `parent` if there is one.
pub(crate) fn case_folder(parent: Option<&Path>) -> Result<tempfile::TempDir, String> {
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

/// A folder for cases, with the extension loaded into this process, and the cases that there are of
/// the part `name`, in no particular order. `None`: nothing can be tried, and `summary` says why.
pub(crate) fn begin<C>(
    name: &str,
    options: &Options,
    summary: &mut Summary,
    cases: impl FnOnce(&Path) -> Result<Vec<C>, String>,
) -> Option<(tempfile::TempDir, Vec<C>)> {
    let folder = case_folder(options.folder.as_deref());
    let loaded = folder.and_then(|folder| sqlite::load(&options.library).map(|()| folder));
    let parent = match loaded {
        Ok(parent) => parent,
        Err(reason) => {
            summary.skipped.push(reason);
            return None;
        }
    };
    match cases(parent.path()) {
        Ok(mut cases) => {
            shuffle(&mut cases, options.seed);
            return Some((parent, cases));
        }
        Err(reason) if reason.contains("seccomp: ") => summary.skipped.push(reason),
        Err(what) => {
            failed(summary, &what, name);
        }
    }
    None
}

/// Whether `--case` names this case, by its name or the beginning of that up to a slash.
pub(crate) fn names(wanted: &str, case: &str) -> bool {
    case.strip_prefix(wanted).is_some_and(|left| left.is_empty() || left.starts_with('/'))
}

/// Notes a failure; whether there are enough of them.
pub(crate) fn failed(summary: &mut Summary, what: &str, case: &str) -> bool {
    let engine = &summary.engine;
    let replay = format!("dash-torture --ring faults --engine {engine} --case {case}");
    summary.failures.push(Failure { what: format!("{case}: {what}"), replay });
    summary.failures.len() >= ENOUGH
}

/// Shuffles what can't all be done in the time that there is.
pub(crate) fn shuffle<T>(all: &mut [T], seed: u64) {
    let mut dice = Dice::new(seed, 0);
    for at in (1..all.len()).rev() {
        let other = usize::try_from(dice.below(at as u64 + 1)).unwrap_or_default();
        all.swap(at, other);
    }
}
