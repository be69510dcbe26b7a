//! Every system call of every operation made to fail, under stock SQLite with the loaded extension
//! on a real file system: the code and the message that a program gets, and what it finds later.

pub mod call;
pub mod crashed;
pub mod inject;
pub mod operation;
pub mod said;
pub mod seccomp;
pub mod stage;
pub mod verdict;
mod workers;

use std::path::Path;
use std::sync::Arc;

use inject::{Effect, Fault, Injector, Met};
use operation::Operation;
use said::Said;
use stage::Stage;
pub use workers::Workers;
use workers::explained;

use super::part::{FEWEST, GoOn, begin, case_folder, failed, names};
use crate::again::Again;
use crate::engine::Engine;
use crate::sqlite::{self, Wrong};
use crate::variant::Variant;
use crate::{Options, Summary};

/// A case.
#[derive(Clone, Copy)]
pub struct Case {
    /// What is done.
    pub operation: &'static Operation,
    /// The engine's name.
    pub engine: &'static str,
    /// The variant, and its URI parameters.
    pub variant: (&'static Variant, &'static str),
    /// What fails.
    pub fault: Fault,
}

impl Case {
    /// In words, as in `--case`.
    pub fn name(&self) -> String {
        let (Variant { name: variant, .. }, _) = self.variant;
        format!("sql/{}/{variant}/{}", self.operation.name, self.fault.name())
    }

    /// Runs it; the injector knows how many calls there were.
    ///
    /// # Errors
    ///
    /// What must never happen.
    pub fn run(&self, folder: &Path, workers: &Workers<'_>) -> Result<Arc<Injector>, String> {
        let injector = Injector::new(folder, self.fault);
        let ran = inject::run(
            &injector,
            || {
                let mut stage = Stage::new(folder, self.engine, self.variant.1);
                (self.operation.before)(&mut stage).map_err(|error| explained(&error))?;
                if let Some(percent) = self.operation.crash {
                    crashed::crash(&mut stage, workers, percent)?;
                }
                Ok(stage)
            },
            |stage, injector| self.act(stage, injector),
        );
        let (mut stage, result) = ran?.map_err(|what| format!("before any fault: {what}"))?;
        let again = verdict::sound_again(&mut stage);
        match (result, again) {
            (Ok(()), Ok(())) => Ok(injector),
            (Err(what), Ok(())) => Err(format!("{what}\nmet: {:?}", injector.met())),
            (Ok(()), Err(then)) => Err(format!("{then}\nmet: {:?}", injector.met())),
            (Err(what), Err(then)) => {
                Err(format!("{what}\nthen: {then}\nmet: {:?}", injector.met()))
            }
        }
    }

    /// Acts under faults, then goes on without.
    fn act(
        &self,
        stage: Result<Stage, String>,
        injector: &Injector,
    ) -> Result<(Stage, Result<(), String>), String> {
        let mut stage = stage?;
        sqlite::forget();
        injector.arm(true);
        let acted = (self.operation.act)(&mut stage);
        let said = match &acted {
            Err(Wrong::Sql(error)) => Some(Said::of(error)),
            _ => None,
        };
        injector.arm(false);
        let met = injector.met();
        let judged = match (acted, said) {
            (Err(Wrong::Content(what)), _) => Err(format!("under the fault: {what}")),
            (Ok(()), _) if self.lost_flush(&met) => {
                Err("a commit succeeded after a failed flush".into())
            }
            (_, Some(said)) => verdict::judge(&self.fault, &met, &said, self.operation.host)
                .and_then(|()| self.not_done(&mut stage, &said)),
            _ => Ok(()),
        };
        let result = judged.and_then(|()| go_on(&mut stage));
        // Its own errors have been told; the database is opened again in any case.
        drop(stage.close());
        Ok((stage, result))
    }

    /// Whoever is told that a commit has failed does it once more. So it is not there, unless that
    /// was said.
    fn not_done(&self, stage: &mut Stage, said: &Said) -> Result<(), String> {
        if self.operation.host || said.is_in_doubt() || stage.db.is_none() {
            return Ok(());
        }
        drop(stage.give_up());
        match stage::state(stage.db()) {
            Ok(seen) if seen > stage.acknowledged => {
                // What was said first may have been followed by another error.
                let next = stage.commit(100).map_err(|error| Said::of(&error));
                match next {
                    Err(then) if then.is_in_doubt() => Ok(()),
                    _ => {
                        Err(format!("commit {seen} has answered an error, and is there: {said:?}"))
                    }
                }
            }
            _ => Ok(()),
        }
    }

    /// Whether a flush failed that a commit stands on.
    fn lost_flush(&self, met: &[Met]) -> bool {
        ["first-commit", "commit", "commit-large"].contains(&self.operation.name)
            && self.variant.0.every_flush_counts
            && matches!(self.fault.effect, Effect::Error(_))
            && met.iter().any(|met| met.kind == call::Kind::Flush)
    }
}

/// All cases of an engine, in no particular order; `named` as of `--case`.
fn cases(
    engine: &'static dyn Engine,
    folder: &Path,
    workers: &Workers<'_>,
    named: Option<&str>,
) -> Result<Vec<Case>, String> {
    let mut all = Vec::new();
    for operation in operation::ALL {
        for variant in engine.loaded_variants() {
            let dry = Case { operation, engine: engine.name(), variant, fault: Fault::NONE };
            let prefix = dry.name();
            let prefix = prefix.rsplitn(4, '/').last().unwrap_or_default();
            let may_be = |named: &str| named.starts_with(prefix) || names(named, prefix);
            if !named.is_none_or(may_be) {
                continue;
            }
            let folder = case_folder(Some(folder))?;
            let counted = dry
                .run(folder.path(), workers)
                .map_err(|what| format!("{}, without any fault: {what}", dry.name()))?;
            let faults = Fault::all(|effect| counted.seen(effect));
            all.extend(faults.into_iter().map(|fault| Case { fault, ..dry }));
        }
    }
    all.retain(|case| named.is_none_or(|named| names(named, &case.name())));
    Ok(all)
}

/// The same connection goes on, or says that it can't.
pub fn go_on(stage: &mut Stage) -> Result<(), String> {
    if stage.db.is_none() {
        return Ok(());
    }
    drop(stage.give_up());
    match stage::sound_state(stage.db()) {
        Ok(seen) if (stage.acknowledged..=stage.begun).contains(&seen) => {
            // Without tables nothing was ever committed; with them the next commit may be refused.
            if seen > 0 && stage.commit(100).is_err() {
                drop(stage.give_up());
            }
            Ok(())
        }
        Ok(seen) => Err(format!(
            "the connection goes on with commit {seen} of {} acknowledged and {} begun",
            stage.acknowledged, stage.begun
        )),
        Err(Wrong::Content(what)) => Err(format!("the connection goes on with {what}")),
        Err(Wrong::Sql(_)) => Ok(()),
    }
}

/// The part of an engine.
pub fn run(
    engine: &'static dyn Engine,
    options: &Options,
    again: &Again,
    summary: &mut Summary,
    go_on: &mut GoOn<'_>,
) {
    let workers = Workers { again, library: &options.library };
    let begun = begin("sql", options, summary, |parent| {
        cases(engine, parent, &workers, options.case.as_deref())
    });
    let Some((parent, cases)) = begun else { return };
    for case in &cases {
        let result = case_folder(Some(parent.path()))
            .and_then(|folder| case.run(folder.path(), &workers).map(drop));
        summary.cases += 1;
        let enough = result.is_err_and(|what| failed(summary, &what, &case.name()));
        let in_time = go_on();
        if enough || !in_time && summary.cases >= FEWEST {
            break;
        }
    }
    summary.notes.push(format!("{} of {} system calls made to fail", summary.cases, cases.len()));
}
