//! Whether there is a log to be shown, and whether it is the database's.

use std::path::{Path, PathBuf};

use dash_storage::real::Real;
use dash_wal::Report;
use dash_wal::inspect::{HeadIs, Opening, Refusal, Relation};

use crate::failure::{Explain, Failure, Result};
use crate::out::{Shown, say_aside};

/// The file that a path leads to: symbolic links are followed, as SQLite does.
pub fn resolved(file: &Path) -> PathBuf {
    file.canonicalize().unwrap_or_else(|_| file.to_owned())
}

/// Looks at the database.
pub fn look(file: &Path) -> Result<Report> {
    crate::engines::only_file(file)?;
    let report = dash_wal::inspect(&Real, file).explain(format!("looking at {}", file.shown()))?;
    let name = file.shown();
    let Some(database) = &report.database else {
        return Err(Failure::new(format!("{name} does not exist")));
    };
    if database.len > 0 && !database.header.is_some_and(|header| header.is_sqlite) {
        return Err(Failure::new(format!("{name} is not an SQLite database")));
    }
    if let Some(Err(refusal)) = &report.log {
        return Err(Failure::new(refusal.clone()));
    }
    match &report.opening {
        Opening::Refuse(Refusal::Another, refusal) => Err(Failure::new(refusal.clone())),
        Opening::Refuse(_, refusal) => {
            say_aside!("dash: opening it is refused: {refusal}");
            Ok(report)
        }
        _ => Ok(report),
    }
}

/// Why there is no log.
pub fn none(report: &Report) -> String {
    let name = report.names.shown();
    let is_wal = report.database.and_then(|db| db.header).is_some_and(|header| header.is_wal);
    match commits_in_wal(report) {
        _ if !is_wal => format!("{name} has no log: it is not in WAL mode"),
        0 => format!(
            "{name} has no log: dash makes one for the second durable commit of a session, and with synchronous=NORMAL none is"
        ),
        commits => format!(
            "{name} has no log, and {commits} commits in -wal: {UNLOGGED}, or were committed without dash"
        ),
    }
}

/// Why commits in `-wal` may be in no log.
const UNLOGGED: &str = "they are not durable yet, as with synchronous=NORMAL, or a flush of -wal has made them durable";

fn commits_in_wal(report: &Report) -> u32 {
    report.wal.and_then(|wal| wal.header).map_or(0, |header| header.commits)
}

/// What is to be said of a log beside its commits; `newest` is the number of its newest record, 0
/// if none can be read.
///
/// # Errors
///
/// That it is none.
pub fn notes(report: &Report, newest: u64) -> Result<()> {
    let (Some(Ok(log)), Some(database)) = (&report.log, &report.database) else { return Ok(()) };
    let name = report.names.shown_log();
    match (log.head, newest) {
        (HeadIs::Damaged, 0) => {
            return Err(Failure::new(format!(
                "{name} is not a log of dash, or damaged throughout"
            )));
        }
        (HeadIs::Damaged, _) => {
            say_aside!(
                "dash: the head of {name} is damaged: records before its window may be void"
            );
        }
        _ => {}
    }
    if log.owner != 0 && log.owner != database.id.inode {
        say_aside!(
            "dash: {name} was last used beside another file (inode {}): the files were copied, or it is another database's",
            log.owner
        );
    }
    Ok(())
}

/// Says what is behind the last commit in the log.
pub fn tail(report: &Report, behind: Option<(usize, u32)>) {
    let is_void = matches!(report.relation, Some(Relation::Older | Relation::Blank));
    if let Some((commits, last)) = behind.filter(|_| !is_void) {
        let name = report.names.shown_wal();
        let commits = if commits == 1 { "1 commit".into() } else { format!("{commits} commits") };
        say_aside!("dash: {commits} of {name}, up to frame {last}, not in the log: {UNLOGGED}");
    }
}
