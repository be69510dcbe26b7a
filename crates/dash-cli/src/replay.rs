//! `sqlite-dash replay`: runs again what a database's log has recorded, on a copy, and says where
//! that comes to something else than what was committed.

use std::path::PathBuf;

use dash_replay::{Finding, Report};
use dash_statement::shown_json;
use serde_json::{Value, json};

use crate::Outcome;
use crate::failure::{Failure, Result};
use crate::log::whose;
use crate::out::{Shown, say, say_aside};

/// Arguments of `sqlite-dash replay`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The database, in mode wal
    file: PathBuf,
    /// A copy of the database from before the first commit that the log holds
    #[arg(long, value_name = "FILE")]
    base: Option<PathBuf>,
    /// Also runs commits that are in the database by now, from the oldest one on that the log still
    /// has; the copy is from before that one
    #[arg(long, requires = "base")]
    all: bool,
    /// Prints JSON for programs
    #[arg(long)]
    json: bool,
}

/// Runs the command: bad news (1) if a commit came to something else, if none was run again, or if
/// those that are left could not be.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let Arguments { file, base, all, json } = arguments;
    let file = &whose::resolved(file);
    let seen = whose::look(file)?;
    if seen.log.is_none() {
        return Err(Failure::new(whose::none(&seen)));
    }
    let report = dash_replay::replay(file, base.as_deref(), *all)
        .map_err(|error| Failure::new(format!("replaying {}: {error}", file.shown())))?;
    if *json {
        say!("{}", shown_json(&format!("{:#}", object(&report))));
    } else {
        print(&report);
    }
    Ok(Outcome::of(report.divergences.is_empty() && report.run() > 0 && report.ended.is_none()))
}

fn name(finding: &Finding) -> String {
    format!("commit {}.{}", finding.commit.generation, finding.commit.frames.1)
}

fn print(report: &Report) {
    let Report { same, same_content, divergences, not_run, checkpointed, doubt, ended, .. } =
        report;
    if let Some(doubt) = doubt.as_ref().filter(|_| !divergences.is_empty()) {
        say_aside!("dash: {doubt}");
    }
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
    if report.carried > 0 {
        say!(
            "{} commits were run again and compared with nothing: their statements alone carry them, and -wal has their \
             pages no more",
            report.carried
        );
    }
    if let Some(finding) = ended {
        say!("{} and those after it were not run again: {}", name(finding), finding.reason);
    }
    match report.run() {
        0 => say!("no commit was run again"),
        run => say!(
            "{} commits were run again: {same} came to the same pages, {same_content} to the same content in other \
             pages, {} to something else",
            run - report.carried,
            divergences.len()
        ),
    }
    print_provable(report);
}

/// Which commits their statements alone could carry.
fn print_provable(report: &Report) {
    let Report { provable, unprovable, .. } = report;
    if *provable == 0 && unprovable.is_empty() {
        return;
    }
    say!("{provable} of the commits provably replay");
    for (reason, count) in unprovable {
        say!("{count} may not: {}", reason.sentence());
    }
}

fn object(report: &Report) -> Value {
    let one = |it: &Finding| {
        json!({
            "generation": it.commit.generation,
            "last_frame": it.commit.frames.1,
            "what": it.what,
            "reason": it.reason,
        })
    };
    let list = |findings: &[Finding]| -> Vec<Value> { findings.iter().map(one).collect() };
    let unprovable: serde_json::Map<String, Value> = report
        .unprovable
        .iter()
        .map(|(reason, count)| (reason.name().into(), json!(count)))
        .collect();
    json!({
        "same_pages": report.same,
        "same_content": report.same_content,
        "carried": report.carried,
        "checkpointed": report.checkpointed,
        "doubt": report.doubt,
        "ended": report.ended.as_ref().map(one),
        "divergences": list(&report.divergences),
        "not_run": list(&report.not_run),
        "provable": report.provable,
        "provable_same_pages": report.provable_same,
        "unprovable": unprovable,
    })
}
