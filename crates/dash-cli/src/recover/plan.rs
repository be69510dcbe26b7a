//! What to do about each way a database can be found, as a list of steps that a person can read.

use std::ffi::OsString;
use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

use dash_shadow::Report;
use dash_shadow::inspect::{Opening, Refusal, ShadowKind};

use super::{Keep, age};
use crate::failure::Result;
use crate::inspect;
use crate::integrity::{Verdict, check_untouched};
use crate::interrupt::Interrupt;

/// One thing that is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Gives a file another, free name.
    Rename {
        /// Its name now.
        from: PathBuf,
        /// Its name then.
        to: PathBuf,
    },
    /// Copies a file under a free name.
    Copy {
        /// What is copied.
        from: PathBuf,
        /// The copy.
        to: PathBuf,
    },
    /// Writes what can be read of `from` into a new database and puts that in the place of `to`,
    /// of which a copy was made before.
    Rewrite {
        /// What is read.
        from: PathBuf,
        /// What is replaced.
        to: PathBuf,
    },
    /// Takes a file as it is, whatever dash noted of a second one.
    Forget {
        /// The database.
        file: PathBuf,
    },
    /// Opens the database through dash, which recovers it, and checks it.
    Open {
        /// The database.
        file: PathBuf,
        /// What opening will do, as far as it is known.
        does: String,
    },
}

impl Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rename { from, to } => write!(f, "rename {} to {}", from.display(), to.display()),
            Self::Copy { from, to } => write!(f, "copy {} to {}", from.display(), to.display()),
            Self::Rewrite { from, to } => {
                write!(
                    f,
                    "write the content of {} into a new database and put it in the place of {}",
                    from.display(),
                    to.display()
                )
            }
            Self::Forget { file } => {
                write!(f, "take {} as it is, whatever dash noted of a second copy", file.display())
            }
            Self::Open { file, does } => write!(
                f,
                "open {} through dash, which {does}; then run integrity_check",
                file.display()
            ),
        }
    }
}

/// What was found, and what is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// For the reader.
    pub why: String,
    /// In this order.
    pub steps: Vec<Step>,
}

/// What the command answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// This can be done.
    Do(Plan),
    /// Nothing can be done, or a person must choose first.
    Tell(String),
}

/// What opening does once a whole file is in place and the shadow is not.
const TAKES_IT: &str = "takes the file as it is and makes a new shadow before the next commit";

/// Plans for every finding but two torn files.
pub fn plan(
    file: &Path,
    report: &Report,
    keep: Option<Keep>,
    interrupt: &Interrupt,
) -> Result<Reply> {
    let shadow = file.with_file_name(&report.names.shadow);
    let aside = free_name(file);
    let open = |does: &str| Step::Open { file: file.to_owned(), does: does.to_owned() };
    let (refusal, message) = match &report.opening {
        Opening::Refuse(refusal, message) => (refusal, message.clone()),
        Opening::OtherFormat(_) | Opening::HardLinks(_) => {
            return Ok(Reply::Tell(format!(
                "{}: opening {}",
                file.display(),
                inspect::opening(report)
            )));
        }
        _ => {
            let does = inspect::opening(report);
            return Ok(Reply::Do(Plan {
                why: format!("{} was left in the middle of something.", file.display()),
                steps: vec![open(&does)],
            }));
        }
    };
    let why = match refusal {
        Refusal::Missing => format!("{} is gone; its shadow is there.", file.display()),
        Refusal::Emptied => format!("{} is empty; its shadow holds data.", file.display()),
        Refusal::Cut => format!("{} is shorter than its header says.", file.display()),
        Refusal::ShadowLost if keep == Some(Keep::Database) => {
            let why = format!(
                "{}-shadow is gone for good: the newest commit may be missing from what this makes.",
                file.display()
            );
            let steps = vec![Step::Forget { file: file.to_owned() }, open(TAKES_IT)];
            return Ok(Reply::Do(Plan { why, steps }));
        }
        Refusal::ShadowLost | Refusal::Hidden => return Ok(Reply::Tell(message)),
        Refusal::NotSqlite if keep != Some(Keep::Shadow) => {
            let way = if report.shadow.is_some() {
                "its shadow may hold the data: `--keep shadow` looks, and keeps both files"
            } else {
                "restore a backup"
            };
            return Ok(Reply::Tell(format!("{message}; {way}")));
        }
        Refusal::NotSqlite => {
            format!("{} is not an SQLite database; its shadow may hold the data.", file.display())
        }
        Refusal::Diverged if keep == Some(Keep::Database) => {
            let why = format!(
                "{} and its shadow hold commits that the other lacks; yours to keep: the database.",
                file.display()
            );
            return Ok(Reply::Do(Plan {
                why,
                steps: vec![
                    Step::Rename { from: shadow, to: aside },
                    Step::Forget { file: file.to_owned() },
                    open(TAKES_IT),
                ],
            }));
        }
        Refusal::Diverged if keep.is_none() => return Ok(Reply::Tell(message)),
        _ => format!(
            "{} and its shadow hold commits that the other lacks; yours to keep: the shadow.",
            file.display()
        ),
    };
    if let Some(objection) = objection(&shadow, report.verdict.shadow, interrupt)? {
        return Ok(Reply::Tell(format!("{why} {objection}")));
    }
    let age = age::words(report, *refusal);
    let mut steps = Vec::new();
    if report.database.is_some() {
        steps.push(Step::Rename { from: file.to_owned(), to: aside.clone() });
    }
    let taken = aside;
    steps.push(Step::Rename { from: shadow, to: file.to_owned() });
    if matches!(report.verdict.shadow, ShadowKind::Superseded | ShadowKind::Modified) {
        // It may say of itself that it is the older one of two, which is written over: a copy stays
        // as it is.
        steps.push(Step::Copy { from: file.to_owned(), to: next_free(file, &taken) });
    }
    steps.push(Step::Forget { file: file.to_owned() });
    steps.push(open(TAKES_IT));
    Ok(Reply::Do(Plan {
        why: format!("{why} The shadow is a whole database (integrity_check: ok). {age}"),
        steps,
    }))
}

/// Why a shadow can't take the place of the database, if it can't.
fn objection(shadow: &Path, kind: ShadowKind, interrupt: &Interrupt) -> Result<Option<String>> {
    Ok(match kind {
        ShadowKind::Missing | ShadowKind::Lost => Some("There is no shadow: restore a backup.".into()),
        ShadowKind::Torn => Some("The shadow was cut off while it was being written, so it is no whole state: restore a backup.".into()),
        ShadowKind::Pending => Some(
            "The shadow is part of a transaction over several databases that was not finished: open those first, or restore a backup.".into(),
        ),
        ShadowKind::Alien
        | ShadowKind::Whole
        | ShadowKind::Modified
        | ShadowKind::Superseded => match check_untouched(shadow, interrupt)? {
            Verdict::Whole => None,
            Verdict::Damaged(lines) => Some(format!("The shadow is damaged: {lines}. Restore a backup.")),
            Verdict::Interrupted => Some("Stopped; nothing was done.".into()),
        },
    })
}

/// `FILE.before-recover-N`, with the first N that is free.
pub fn free_name(file: &Path) -> PathBuf {
    next_free(file, Path::new(""))
}

/// The same, but not `taken`, which a step before gives to another file.
fn next_free(file: &Path, taken: &Path) -> PathBuf {
    let mut number = 1_u32;
    loop {
        let mut name = OsString::from(file);
        name.push(format!(".before-recover-{number}"));
        let name = PathBuf::from(name);
        if name != taken && name.symlink_metadata().is_err() {
            return name;
        }
        number += 1;
    }
}
