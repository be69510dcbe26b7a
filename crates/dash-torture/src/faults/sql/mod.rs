//! Every system call of every operation made to fail, under stock SQLite with the loaded extension
//! on a real file system: the code and the message that a program gets, and what it finds later.

pub mod call;
pub mod crashed;
pub mod inject;
pub mod operation;
pub mod seccomp;
pub mod stage;
pub mod verdict;

use std::path::Path;
use std::sync::Arc;

use inject::{Effect, Fault, Injector, Met};
use operation::Operation;
use stage::{Stage, Wrong};
use verdict::Said;

use crate::sqlite;
use crate::worker::Again;

/// Protocols: the URI parameters that ask for them.
const PROTOCOLS: [&str; 3] =
    ["&dash_commit=single", "&dash_commit=paper", "&dash_commit=exclusive"];

/// A case.
#[derive(Clone, Copy)]
pub struct Case {
    /// What is done.
    pub operation: &'static Operation,
    /// URI parameters.
    pub parameters: &'static str,
    /// What fails.
    pub fault: Fault,
}

impl Case {
    /// In words, as in `--case`.
    pub fn name(&self) -> String {
        let protocol = self.parameters.rsplit('=').next().unwrap_or_default();
        let Fault { effect, forever, number } = self.fault;
        let forever = if forever { "ever" } else { "once" };
        format!("sql/{}/{protocol}/{}/{forever}/{number}", self.operation.name, effect.name())
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
                let mut stage = Stage::new(folder, self.parameters);
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
            (_, Some(said)) => verdict::judge(&self.fault, &met, &said, self.operation.host),
            _ => Ok(()),
        };
        let result = judged.and_then(|()| go_on(&mut stage));
        // Its own errors have been told; the database is opened again in any case.
        drop(stage.close());
        Ok((stage, result))
    }

    /// Whether the one flush that a commit stands on failed. The other protocols flush once more
    /// after the commit point, what no commit stands on.
    fn lost_flush(&self, met: &[Met]) -> bool {
        ["first-commit", "commit", "commit-large"].contains(&self.operation.name)
            && self.parameters.ends_with("single")
            && matches!(self.fault.effect, Effect::Error(_))
            && met.iter().any(|met| met.kind == call::Kind::Flush)
    }
}

fn explained(error: &rusqlite::Error) -> String {
    format!("{error}; {}", sqlite::last_error())
}

/// How worker processes are started.
pub struct Workers<'a> {
    /// This program.
    pub again: &'a Again,
    /// The extension.
    pub library: &'a Path,
}

/// All cases, in no particular order; `--case` names one.
pub fn cases(
    folder: &Path,
    workers: &Workers<'_>,
    named: Option<&str>,
) -> Result<Vec<Case>, String> {
    let effects = [
        Effect::Error(libc::EIO),
        Effect::Error(libc::ENOSPC),
        Effect::Error(libc::EDQUOT),
        Effect::Interrupted,
        Effect::Half,
        Effect::HalfThen(libc::ENOSPC),
    ];
    let mut all = Vec::new();
    for operation in operation::ALL {
        for parameters in PROTOCOLS {
            let fault = Fault { effect: Effect::Half, forever: false, number: u64::MAX };
            let dry = Case { operation, parameters, fault };
            let prefix = dry.name();
            let prefix = prefix.rsplitn(4, '/').last().unwrap_or_default();
            if named.is_some_and(|named| !named.starts_with(prefix)) {
                continue;
            }
            let folder = super::case_folder(Some(folder))?;
            let counted = dry
                .run(folder.path(), workers)
                .map_err(|what| format!("{}, without any fault: {what}", dry.name()))?;
            for effect in effects {
                let ways: &[bool] = match effect {
                    Effect::Error(_) => &[false, true],
                    _ => &[false],
                };
                for &forever in ways {
                    all.extend(
                        (0..counted.seen(effect))
                            .map(|number| Case { fault: Fault { effect, forever, number }, ..dry }),
                    );
                }
            }
        }
    }
    all.retain(|case| named.is_none_or(|named| case.name() == named));
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
