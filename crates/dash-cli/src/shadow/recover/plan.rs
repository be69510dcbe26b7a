//! What to do where at least one of the two files is whole.

use std::path::{Path, PathBuf};

use dash_shadow::Report;
use dash_shadow::inspect::{Action, Opening, Refusal, ShadowKind};

use super::super::inspect::words;
use super::age;
use super::keep::{Keep, forget};
use crate::failure::{Failure, Result};
use crate::integrity::{Verdict, check_untouched};
use crate::interrupt::Interrupt;
use crate::out::Shown;
use crate::recover::plan::{Plan, Reply, Step, free_name, left, next_free};

/// What opening does once a whole file is in place and the shadow is not.
const TAKES_IT: &str = "takes the file as it is and makes a new shadow before the next commit";

/// What becomes of a refusal.
enum Decision {
    /// The database is kept, without what may lie in a shadow.
    KeepDatabase(String),
    /// The shadow takes its place.
    TakeShadow(String),
    /// Nothing is done.
    Tell(String),
}

/// Plans for every finding but two torn files.
pub fn plan(
    file: &Path,
    report: &Report,
    keep: Option<Keep>,
    interrupt: &Interrupt,
) -> Result<Reply> {
    let (refusal, message) = match &report.opening {
        Opening::Refuse(refusal, message) => (*refusal, message.as_str()),
        Opening::Row(Action::CreateAfresh, story) => (Refusal::Missing, *story),
        Opening::OtherFormat(_) | Opening::HardLinks(_) | Opening::Replaced(_) => {
            let opening = words::opening(report);
            return Ok(Reply::Tell(format!("{}: opening {opening}", file.shown())));
        }
        _ => {
            return Ok(Reply::Do(Plan {
                why: left(file, !report.locks.is_empty()),
                steps: vec![open(file, &words::opening(report))],
            }));
        }
    };
    let shadow = file.with_file_name(&report.names.shadow);
    match decide(file, report, refusal, message, keep) {
        Decision::Tell(text) => Ok(Reply::Tell(text)),
        Decision::KeepDatabase(why) => {
            let mut steps = Vec::new();
            if matches!(refusal, Refusal::Diverged | Refusal::Older) {
                steps.push(Step::Rename { from: shadow, to: free_name(file) });
            }
            steps.extend([forget(file), open(file, TAKES_IT)]);
            Ok(Reply::Do(Plan { why, steps }))
        }
        Decision::TakeShadow(why) => {
            if let Some(objection) = objection(&shadow, report.verdict.shadow, interrupt)? {
                return Ok(Reply::Tell(format!("{why} {objection}")));
            }
            let age = age::words(report, refusal);
            let why = format!("{why} The shadow is a whole database (integrity_check: ok). {age}");
            Ok(Reply::Do(Plan { why, steps: take_shadow(file, report, shadow) }))
        }
    }
}

fn decide(
    file: &Path,
    report: &Report,
    refusal: Refusal,
    message: &str,
    keep: Option<Keep>,
) -> Decision {
    let file = file.shown();
    match refusal {
        Refusal::Missing => Decision::TakeShadow(format!("{file} is gone; its shadow is there.")),
        Refusal::Emptied => {
            Decision::TakeShadow(format!("{file} is empty; its shadow holds data."))
        }
        Refusal::Cut => Decision::TakeShadow(format!("{file} is shorter than its header says.")),
        Refusal::ShadowLost if keep == Some(Keep::Database) => Decision::KeepDatabase(format!(
            "{file}-shadow is gone for good: the newest commit may be missing from what this makes."
        )),
        Refusal::ShadowLost | Refusal::Hidden | Refusal::Stranger(_) | Refusal::StrangeName(_) => {
            Decision::Tell(message.to_owned())
        }
        Refusal::NotSqlite if keep == Some(Keep::Shadow) => Decision::TakeShadow(format!(
            "{file} is not an SQLite database; its shadow may hold the data."
        )),
        Refusal::NotSqlite if report.shadow.is_some() => Decision::Tell(format!(
            "{message}; its shadow may hold the data: `--keep shadow` looks, and keeps both files"
        )),
        Refusal::NotSqlite => Decision::Tell(format!("{message}; restore a backup")),
        Refusal::Diverged if keep == Some(Keep::Database) => Decision::KeepDatabase(format!(
            "{file} and its shadow hold commits that the other lacks; yours to keep: the database."
        )),
        Refusal::Diverged | Refusal::Older if keep.is_none() => Decision::Tell(message.to_owned()),
        Refusal::Older if keep == Some(Keep::Database) => Decision::KeepDatabase(format!(
            "{file} is older than the last commit to it; yours to keep: the database. What its shadow holds is put aside."
        )),
        Refusal::Older => Decision::TakeShadow(format!(
            "{file} is older than the last commit to it; yours to keep: the shadow."
        )),
        _ => Decision::TakeShadow(format!(
            "{file} and its shadow hold commits that the other lacks; yours to keep: the shadow."
        )),
    }
}

fn open(file: &Path, does: &str) -> Step {
    Step::Open { file: file.to_owned(), does: does.to_owned() }
}

fn take_shadow(file: &Path, report: &Report, shadow: PathBuf) -> Vec<Step> {
    let taken = free_name(file);
    let mut steps = Vec::new();
    if report.database.is_some() {
        steps.push(Step::Rename { from: file.to_owned(), to: taken.clone() });
    }
    steps.push(Step::Rename { from: shadow, to: file.to_owned() });
    if matches!(report.verdict.shadow, ShadowKind::Superseded | ShadowKind::Modified) {
        // It may say of itself that it is the older one of two, which is written over: a copy stays
        // as it is.
        steps.push(Step::Copy { from: file.to_owned(), to: next_free(file, &taken) });
    }
    steps.extend([forget(file), open(file, TAKES_IT)]);
    steps
}

/// Why a shadow can't take the place of the database, if it can't.
fn objection(shadow: &Path, kind: ShadowKind, interrupt: &Interrupt) -> Result<Option<String>> {
    Ok(match kind {
        ShadowKind::Missing | ShadowKind::Lost => Some("There is no shadow: restore a backup.".into()),
        ShadowKind::Torn => Some("The shadow was cut off while it was being written, so it is no whole state: restore a backup.".into()),
        ShadowKind::Pending => Some(
            "The shadow is part of a transaction over several databases that was not finished: open those first, or restore a backup.".into(),
        ),
        ShadowKind::Unrelated
        | ShadowKind::Whole
        | ShadowKind::Modified
        | ShadowKind::Superseded => match check_untouched(shadow, interrupt)? {
            Verdict::Whole => None,
            Verdict::Damaged(lines) => Some(format!("The shadow is damaged: {lines}. Restore a backup.")),
            Verdict::Interrupted => return Err(Failure::new("stopped; nothing was done")),
        },
    })
}
