//! Calls made to fail by which a database comes to rest while it is open, or as its process ends
//! (SHADOW-25, WAL-30): what then stands beside it tells stock SQLite the truth, and it comes to
//! rest later, or the next commit says why not.
//!
//! The thread that sees to it starts in the thread that commits first, so that it asks for its
//! calls as well, and it never ends. So each case is a process, which is killed at its end.

mod case;
mod story;
mod verdict;

use std::io::Read;
use std::path::Path;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

pub use story::{ROLE, worker};

use super::part::{FEWEST, GoOn, begin, case_folder, failed, names};
use super::sql::inject::{EFFECTS, Fault};
use super::sql::stage::Stage;
use crate::again::{Again, Task};
use crate::engine::Engine;
use crate::sqlite;
use crate::{Options, Summary};
use case::{Case, Ended};
use story::Story;

/// So many processes at a time: most of their time they wait.
const TOGETHER: usize = 12;

/// A process that is being started has all files open, for a moment, that this one has, and no
/// database is brought all the way to rest that is open elsewhere (SHADOW-16). So whoever has one
/// open here holds this shared, and whoever starts a process exclusively.
static STARTS: RwLock<()> = RwLock::new(());

/// Shares [`STARTS`].
fn nobody_starts() -> RwLockReadGuard<'static, ()> {
    STARTS.read().unwrap_or_else(PoisonError::into_inner)
}

impl Case {
    /// Makes the database, and has a process bring it to rest.
    fn play(&self, folder: &Path, again: &Again, library: &Path) -> Result<(Stage, Ended), String> {
        let mut stage = Stage::new(folder, self.engine, self.variant.1);
        let shared = nobody_starts();
        let made = stage.open().and_then(|()| stage.make()).and_then(|()| stage.close());
        drop(shared);
        made.map_err(|error| format!("before any fault: {error}; {}", sqlite::last_error()))?;
        let task = Task {
            seed: stage.acknowledged.unsigned_abs(),
            engine: self.engine.to_owned(),
            parameters: self.variant.1.to_owned(),
            case: format!("{}/{}", self.story.name(), self.fault.name()),
            ..Task::default()
        };
        let mut command = again.command(ROLE, &stage.path, library, &task);
        let alone = STARTS.write().unwrap_or_else(PoisonError::into_inner);
        let started = command.spawn();
        drop(alone);
        let mut child = started.map_err(|error| format!("starting a worker: {error}"))?;
        let (mut said, mut errors) = (String::new(), String::new());
        let pipes = (child.stdout.take(), child.stderr.take());
        if let (Some(mut output), Some(mut words)) = pipes {
            let read =
                output.read_to_string(&mut said).and_then(|_| words.read_to_string(&mut errors));
            read.map_err(|error| format!("listening to a worker: {error}"))?;
        }
        let status = child.wait().map_err(|error| error.to_string())?;
        let ended = Ended { said, errors, status };
        stage.acknowledged = ended.number("acknowledged").unwrap_or(stage.acknowledged);
        stage.begun = ended.number("begun").unwrap_or(stage.begun);
        Ok((stage, ended))
    }

    /// Runs it; how many calls came that each of [`EFFECTS`] may befall.
    ///
    /// # Errors
    ///
    /// What must never happen.
    fn run(&self, parent: &Path, again: &Again, library: &Path) -> Result<Vec<u64>, String> {
        let folder = case_folder(Some(parent))?;
        let (mut stage, ended) = self.play(folder.path(), again, library)?;
        let met: Vec<_> = ended.lines("met").collect();
        let _shared = nobody_starts();
        let judged = verdict::judge(self, &mut stage, &ended, &met);
        judged.map_err(|what| format!("{what}\nmet: {met:?}")).map(|()| ended.seen())
    }
}

/// Runs some cases at once.
fn together(
    cases: &[Case],
    parent: &Path,
    again: &Again,
    library: &Path,
) -> Vec<Result<Vec<u64>, String>> {
    std::thread::scope(|scope| {
        let run = |case: &Case| {
            let case = *case;
            scope.spawn(move || case.run(parent, again, library))
        };
        let threads: Vec<_> = cases.iter().map(run).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|_| Err("a thread of the driver panicked".into()))
        };
        threads.into_iter().map(join).collect()
    })
}

/// All cases of an engine, in no particular order.
fn cases(
    engine: &'static dyn Engine,
    parent: &Path,
    again: &Again,
    options: &Options,
) -> Result<Vec<Case>, String> {
    let mut dry = Vec::new();
    for story in Story::ALL {
        for variant in engine.loaded_variants() {
            dry.push(Case { story, engine: engine.name(), variant, fault: Fault::NONE });
        }
    }
    let named = options.case.as_deref();
    dry.retain(|case| {
        let name = case.name();
        let prefix = name.rsplitn(4, '/').last().unwrap_or_default();
        named.is_none_or(|named| named.starts_with(prefix) || names(named, prefix))
    });
    let mut all = Vec::new();
    for (case, counted) in dry.iter().zip(together(&dry, parent, again, &options.library)) {
        let counted =
            counted.map_err(|what| format!("{}, without any fault: {what}", case.name()))?;
        let seen = |effect| EFFECTS.iter().position(|one| *one == effect).map(|at| counted[at]);
        let faults = Fault::all(|effect| seen(effect).unwrap_or_default());
        all.extend(faults.into_iter().map(|fault| Case { fault, ..*case }));
    }
    all.retain(|case| named.is_none_or(|named| names(named, &case.name())));
    Ok(all)
}

/// The part of an engine.
pub fn run(
    engine: &'static dyn Engine,
    options: &Options,
    again: &Again,
    summary: &mut Summary,
    go_on: &mut GoOn<'_>,
) {
    let begun = begin(ROLE, options, summary, |parent| cases(engine, parent, again, options));
    let Some((parent, cases)) = begun else { return };
    'all: for some in cases.chunks(TOGETHER) {
        let results = together(some, parent.path(), again, &options.library);
        for (case, result) in some.iter().zip(results) {
            summary.cases += 1;
            let enough = result.is_err_and(|what| failed(summary, &what, &case.name()));
            let in_time = go_on();
            if enough || !in_time && summary.cases >= FEWEST {
                break 'all;
            }
        }
    }
    let (done, all) = (summary.cases, cases.len());
    summary.notes.push(format!("{done} of {all} system calls of coming to rest made to fail"));
}
