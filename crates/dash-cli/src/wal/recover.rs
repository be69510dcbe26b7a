//! What `sqlite-dash recover` does about a database in WAL mode: opening recovers it, unless its
//! `-wal` was removed or cut by hand, or its log is damaged or of another database. Then a person
//! decides.

use std::path::Path;

use dash_storage::real::Real;
use dash_wal::inspect::{Action, ChainSeen, Opening, Refusal, Relation};
use dash_wal::{Choice, Report, Strayed};

use super::inspect::words;
use crate::engine::sidecar;
use crate::failure::{Explain, Result};
use crate::out::Shown;
use crate::recover::plan::{Plan, Reply, Step, free_name, left};

/// What `--keep` can be given.
pub const KEEP: [(&str, &str); 2] =
    [(DATABASE, "What is named FILE"), (LOG, "The commits in FILE-dashlog")];

const DATABASE: &str = "database";
const LOG: &str = "log";

/// What to do.
pub fn reply(file: &Path, report: &Report, keep: Option<&str>) -> Result<Reply> {
    let shown = file.shown();
    if let Opening::Refuse(Refusal::DatabaseMissing, message) = &report.opening {
        return Ok(Reply::Tell(message.clone()));
    }
    if let Some(other) = keep.filter(|keep| ![DATABASE, LOG].contains(keep)) {
        return Ok(Reply::Tell(format!(
            "nothing was done: {shown} is in WAL mode and has no {other}; --keep takes the commits of its log, --discard the \
             database as it is"
        )));
    }
    let Opening::Refuse(refusal, message) = &report.opening else {
        return Ok(match keep {
            Some(_) => Reply::Tell(format!(
                "nothing was done: there is nothing to choose; opening {shown} {}",
                words::opening(report)
            )),
            None => unrefused(file, report),
        });
    };
    let Some(keep) = keep else { return Ok(Reply::Tell(undecided(file, *refusal, message))) };
    let log = report.elsewhere.clone().unwrap_or_else(|| sidecar(file, "-dashlog"));
    let chain = report.log.as_ref().and_then(|log| log.as_ref().ok()?.chain);
    let is_of_wal = matches!(refusal, Refusal::WalRemoved | Refusal::WalCut | Refusal::Another);
    if is_of_wal && chain.is_none() {
        return Ok(match keep {
            LOG => Reply::Tell(format!("nothing was done: no log has the commits. {message}")),
            _ => discard(file, None),
        });
    }
    Ok(match (refusal, keep) {
        (Refusal::Newer | Refusal::DatabaseMissing | Refusal::Linked | Refusal::Others, _) => {
            Reply::Tell(message.clone())
        }
        (Refusal::WalRemoved, LOG) if chain.is_some_and(|chain| chain.carried > 0) => {
            Reply::Tell(format!("nothing was done: {message}"))
        }
        (Refusal::WalRemoved, LOG) => keep_log(file, &log, chain.as_ref()),
        (Refusal::WalCut, LOG) => Reply::Tell(format!(
            "nothing was done: frames that come before those in the log were in {shown}-wal alone; restore a backup, or add \
             --discard to go on with the database as it is"
        )),
        (Refusal::Another, LOG) => Reply::Tell(format!(
            "nothing was done: on top of another state than they were made on the commits in the log make no database. {message}"
        )),
        (Refusal::LogMissing | Refusal::LogWiped, LOG) => {
            Reply::Tell(format!("nothing was done: there is no log. {message}"))
        }
        (Refusal::LogMissing, _) => without_lost_log(file),
        (Refusal::Damaged | Refusal::Statements | Refusal::Stranger, LOG) => {
            Reply::Tell(format!("nothing was done: {message}"))
        }
        (Refusal::Statements, _) => without_statements(file, &log, chain.as_ref()),
        (Refusal::WalRemoved | Refusal::WalCut, _) => {
            discard(file, chain.as_ref().map(|chain| (&*log, chain)))
        }
        (Refusal::Another, _) => {
            let logs = report.relation == Some(Relation::Same);
            without_another(file, &log, chain.as_ref(), logs)
        }
        (Refusal::Damaged | Refusal::LogWiped | Refusal::Stranger, _) => {
            without_log(file, &log, message)
        }
        (Refusal::Strayed(Strayed::Copied), LOG) => keep_copied(file, &log),
        (Refusal::Strayed(_), LOG) => Reply::Tell(format!("nothing was done: {message}")),
        (Refusal::Strayed(_), _) => without_strayed(file, message),
    })
}

/// What opening does by itself.
fn unrefused(file: &Path, report: &Report) -> Reply {
    let shown = file.shown();
    match &report.opening {
        Opening::HardLinks(_) => {
            Reply::Tell(format!("{shown}: opening {}", words::opening(report)))
        }
        Opening::Row(..) if is_cut_off(report) => Reply::Do(Plan {
            why: left(file, !report.locks.is_empty()),
            steps: vec![open(file, &words::opening(report))],
        }),
        _ => Reply::Nothing(format!(
            "{shown} needs no recovery: opening it {}; for damage that no crash of dash made, PRAGMA integrity_check looks",
            words::opening(report)
        )),
    }
}

/// Whether there is more to do than to open it.
pub fn is_cut_off(report: &Report) -> bool {
    let left = report.fence || report.coordination.is_some();
    match &report.opening {
        Opening::Row(action, _) => left || *action != Action::Leave,
        Opening::Refuse(..) => true,
        _ => false,
    }
}

/// What a person is told who has not decided yet.
fn undecided(file: &Path, refusal: Refusal, message: &str) -> String {
    let shown = file.shown();
    match refusal == Refusal::Damaged {
        true => format!(
            "{message}. The sure way is a backup. --discard takes {shown} and {shown}-wal without the log: commits that only \
             the log held are lost, and after a power loss it may mix two states"
        ),
        false => message.to_owned(),
    }
}

/// A new `-wal` from the log.
fn keep_log(file: &Path, log: &Path, chain: Option<&ChainSeen>) -> Reply {
    let shown = file.shown();
    let Some(chain) = chain else {
        return Reply::Tell(format!("nothing was done: {} holds no commit", log.shown()));
    };
    let before = match chain.first_frame {
        0 | 1 => String::new(),
        first => format!(
            " Lost, too, is what {shown}-wal alone held before them, its frames 1 to {}, as far as no checkpoint had copied it; \
             then the database mixes two states: integrity_check looks.",
            first - 1
        ),
    };
    let by = |file: &Path| decide(file, Choice::Keep);
    Reply::Do(Plan {
        why: format!(
            "{shown}-wal is gone, and the log holds {} of it. Taken are the log's. Lost is what was written into {shown} since \
             {shown}-wal was removed; if anything was, the database mixes two states, and integrity_check looks.{before}",
            words::counted(chain.commits, "commit")
        ),
        steps: vec![
            Step::Copy { from: file.to_owned(), to: free_name(file) },
            Step::Copy { from: log.to_owned(), to: free_name(log) },
            Step::Decide {
                what: format!("make {shown}-wal anew from the commits in {}", log.shown()),
                file: file.to_owned(),
                by,
            },
            open(file, "reads the commits in it"),
        ],
    })
}

/// The database as it is; `-wal`, where there is one, goes aside. `log`: the log that holds commits
/// which were in `-wal`.
fn discard(file: &Path, log: Option<(&Path, &ChainSeen)>) -> Reply {
    let (shown, wal) = (file.shown(), sidecar(file, "-wal"));
    let by = |file: &Path| decide(file, Choice::Discard);
    let mut steps = Vec::new();
    let (lost, what) = match log {
        Some((log, chain)) => {
            steps.push(Step::Copy { from: log.to_owned(), to: free_name(log) });
            let lost = format!(
                "are those of the {} in the log that no checkpoint had copied, and what {shown}-wal held before them",
                words::counted(chain.commits, "commit")
            );
            (lost, format!("mark {} void, so that {shown} counts as it is", log.shown()))
        }
        None => (
            format!("is what {shown}-wal holds, or held, and no checkpoint had copied"),
            format!("go on without {}", wal.shown()),
        ),
    };
    if wal.symlink_metadata().is_ok() {
        steps.push(Step::Rename { from: wal.clone(), to: free_name(&wal) });
    }
    steps.push(Step::Decide { what, file: file.to_owned(), by });
    steps.push(open(file, "takes it as it is"));
    let why = format!(
        "Taken is {shown} as it is. Lost {lost}. Where a checkpoint was cut off it mixes two states: integrity_check looks."
    );
    Reply::Do(Plan { why, steps })
}

/// The database with what `-wal` has, and with what frames in the log carry, but not with what has
/// to be run again.
fn without_statements(file: &Path, log: &Path, chain: Option<&ChainSeen>) -> Reply {
    let (shown, wal) = (file.shown(), sidecar(file, "-wal"));
    let by = |file: &Path| decide(file, Choice::Discard);
    let carried = words::counted(chain.map_or(0, |chain| chain.carried), "commit");
    Reply::Do(Plan {
        why: format!(
            "Taken are {shown} and {shown}-wal, with what the log adds to that by frames. Lost are those of the {carried} that \
             statements in the log carry which {shown}-wal does not have."
        ),
        steps: vec![
            Step::Copy { from: log.to_owned(), to: free_name(log) },
            Step::Copy { from: wal.clone(), to: free_name(&wal) },
            Step::Decide {
                what: format!("mark {} void once its frames are in {shown}-wal", log.shown()),
                file: file.to_owned(),
                by,
            },
            open(file, "leaves everything to SQLite's own recovery of -wal"),
        ],
    })
}

/// The database without a log that is not of it, nor the `-wal` that is the log's.
fn without_another(file: &Path, log: &Path, chain: Option<&ChainSeen>, logs_wal: bool) -> Reply {
    let (shown, wal) = (file.shown(), sidecar(file, "-wal"));
    let lost = words::counted(chain.map_or(0, |chain| chain.commits), "commit");
    let mut steps = vec![Step::Copy { from: log.to_owned(), to: free_name(log) }];
    if logs_wal {
        steps.push(Step::Rename { from: wal.clone(), to: free_name(&wal) });
    }
    let by = |file: &Path| decide(file, Choice::Discard);
    let what = format!("mark {} void", log.shown());
    steps.push(Step::Decide { what, file: file.to_owned(), by });
    steps.push(open(file, "takes it as it is"));
    let why = match logs_wal {
        true => {
            format!("Taken is {shown} as it is, without {shown}-wal and the {lost} in the log.")
        }
        false => format!(
            "Taken is {shown}, with {shown}-wal if there is one, without the {lost} in the log."
        ),
    };
    Reply::Do(Plan { why, steps })
}

/// The database and its `-wal`, as if there were no log.
fn without_log(file: &Path, log: &Path, message: &str) -> Reply {
    let shown = file.shown();
    Reply::Do(Plan {
        why: format!(
            "{message}. Taken are {shown} and {shown}-wal without it. Commits that only the log held are lost."
        ),
        steps: vec![
            Step::Rename { from: log.to_owned(), to: free_name(log) },
            go_without_log(file),
            open(file, "leaves everything to SQLite's own recovery of -wal"),
        ],
    })
}

/// The same, where the log is gone.
fn without_lost_log(file: &Path) -> Reply {
    let (shown, wal) = (file.shown(), sidecar(file, "-wal"));
    Reply::Do(Plan {
        why: format!(
            "Taken are {shown} and {shown}-wal as they are. Commits that only the log held are lost, and where a checkpoint was \
             cut off two states are mixed: integrity_check looks."
        ),
        steps: vec![
            Step::Copy { from: file.to_owned(), to: free_name(file) },
            Step::Copy { from: wal.clone(), to: free_name(&wal) },
            go_without_log(file),
            open(file, "leaves everything to SQLite's own recovery of -wal"),
        ],
    })
}

/// The database without a log that lies elsewhere, or should. That one is left alone.
fn without_strayed(file: &Path, message: &str) -> Reply {
    let (shown, wal, sign) = (file.shown(), sidecar(file, "-wal"), sidecar(file, "-dashlog"));
    let there = |path: &Path| path.symlink_metadata().is_ok();
    let saved = [file.to_owned(), wal, sign].into_iter().filter(|path| there(path));
    let mut steps: Vec<_> = saved.map(|from| Step::Copy { to: free_name(&from), from }).collect();
    steps.extend([
        go_without_log(file),
        open(file, "leaves everything to SQLite's own recovery of -wal"),
    ]);
    Reply::Do(Plan {
        why: format!(
            "{message}. Taken are {shown} and {shown}-wal, if there is one, as they are, and {shown}-dashlog is removed. Commits that \
             only the log held are lost, and where a checkpoint was cut off two states are mixed: integrity_check looks."
        ),
        steps,
    })
}

/// The database with the log that was moved with it.
fn keep_copied(file: &Path, log: &Path) -> Reply {
    let (shown, sign) = (file.shown(), sidecar(file, "-dashlog"));
    let by = |file: &Path| decide(file, Choice::Keep);
    Reply::Do(Plan {
        why: format!(
            "{} becomes the log of {shown}. Do that only if the database that it was of is no more: both would write into it.",
            log.shown()
        ),
        steps: vec![
            Step::Copy { from: file.to_owned(), to: free_name(file) },
            Step::Copy { from: log.to_owned(), to: free_name(log) },
            Step::Decide {
                what: format!("say in {} that it is the log of {shown}", sign.shown()),
                file: file.to_owned(),
                by,
            },
            open(file, "takes the commits in it"),
        ],
    })
}

fn go_without_log(file: &Path) -> Step {
    let by = |file: &Path| decide(file, Choice::Discard);
    Step::Decide { what: "go on without the log".to_owned(), file: file.to_owned(), by }
}

fn open(file: &Path, does: &str) -> Step {
    Step::Open { file: file.to_owned(), does: does.to_owned() }
}

fn decide(file: &Path, choice: Choice) -> Result<()> {
    dash_wal::recover(&Real, file, choice).explain(format!("recovering {}", file.shown()))
}
