//! `dash replay`: runs again what a database's log has recorded, on a copy, and says where that
//! comes to something else than what was committed.

use std::path::PathBuf;

use dash_replay::{Finding, Report};
use serde_json::{Value, json};

use crate::Outcome;
use crate::failure::{Failure, Result};
use crate::log::whose;
use crate::out::say;

/// Arguments of `dash replay`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The database, in mode wal
    file: PathBuf,
    /// A copy of the database from before the first commit that the log holds
    #[arg(long, value_name = "FILE")]
    base: Option<PathBuf>,
    /// Prints JSON for programs
    #[arg(long)]
    json: bool,
}

/// Runs the command: bad news (1) if a commit came to something else.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let Arguments { file, base, json } = arguments;
    let seen = whose::look(file)?;
    if seen.log.is_none() {
        return Err(Failure::new(whose::none(&seen)));
    }
    let report = dash_replay::replay(file, base.as_deref())
        .map_err(|error| Failure::new(format!("replaying {}: {error}", file.display())))?;
    if *json {
        say!("{:#}", object(&report));
    } else {
        print(&report);
    }
    Ok(Outcome::of(report.divergences.is_empty()))
}

fn name(finding: &Finding) -> String {
    format!("commit {}.{}", finding.commit.generation, finding.commit.frames.1)
}

fn print(report: &Report) {
    let Report { same, same_content, divergences, not_run, checkpointed } = report;
    for finding in divergences {
        say!("{} diverges: {}\n    {}", name(finding), finding.what, finding.reason);
    }
    for finding in not_run {
        say!("{} was not run again: {}", name(finding), finding.reason);
    }
    if *checkpointed > 0 {
        say!(
            "{checkpointed} commits were not run again: a checkpoint has copied them into the database"
        );
    }
    let run = same + same_content + divergences.len() as u64;
    say!(
        "{run} commits were run again: {same} came to the same pages, {same_content} to the same content in other pages, {} to \
         something else",
        divergences.len()
    );
}

fn object(report: &Report) -> Value {
    let list = |findings: &[Finding]| -> Vec<Value> {
        let one = |it: &Finding| {
            json!({
                "generation": it.commit.generation,
                "last_frame": it.commit.frames.1,
                "what": it.what,
                "reason": it.reason,
            })
        };
        findings.iter().map(one).collect()
    };
    json!({
        "same_pages": report.same,
        "same_content": report.same_content,
        "checkpointed": report.checkpointed,
        "divergences": list(&report.divergences),
        "not_run": list(&report.not_run),
    })
}
