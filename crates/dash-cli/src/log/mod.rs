//! `dash log`: the commits that a database's log holds, with what they ran where that is recorded.
//! Reads only, and takes no lock: the database may be open, and others may commit meanwhile.

mod json;
mod sql;
mod text;
mod time;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dash_statement::{Transaction, decode};
use dash_storage::real::Real;
use dash_wal::Known;
use dash_wal::history::{Commit, History};

use crate::Outcome;
use crate::failure::{Explain, Failure, Result};
use crate::interrupt::Interrupt;

/// How often it is looked for more.
const PAUSE: Duration = Duration::from_millis(200);

/// Arguments of `dash log`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The database, in mode wal
    file: PathBuf,
    /// Goes on while others commit, until Ctrl-C
    #[arg(long)]
    follow: bool,
    /// Also shows commits that are in the database by now, as far as the log still has them
    #[arg(long)]
    all: bool,
    /// Prints the statements as SQL that can be run, with their values
    #[arg(long, conflicts_with = "json")]
    sql: bool,
    /// Prints a line of JSON for each commit
    #[arg(long)]
    json: bool,
}

/// A commit, as it is shown.
pub struct Shown<'a> {
    pub commit: &'a Commit,
    /// What it ran, if that is known.
    pub ran: Option<Transaction>,
    /// Why that is missing, or may not be all.
    pub reasons: Vec<String>,
}

impl<'a> Shown<'a> {
    pub fn of(commit: &'a Commit) -> Self {
        let missing = |reason: &str| (None, vec![reason.to_owned()]);
        let (ran, reasons) = match &commit.known {
            Known::Said(said) => match decode(&said.statements) {
                Ok(ran) => {
                    let mut reasons: Vec<_> =
                        ran.reasons.iter().map(|it| it.sentence().to_owned()).collect();
                    if ran.dropped > 0 {
                        reasons.push(format!("{} statements are missing", ran.dropped));
                    }
                    (Some(ran), reasons)
                }
                Err(error) => missing(&error.to_string()),
            },
            Known::NoRoom => missing(dash_statement::Reason::NoRoom.sentence()),
            Known::Nothing => missing(
                "not recorded: by a connection without dash_statements=on, or by another process than the one that \
                 wrote the record",
            ),
            Known::Unreadable => missing("not recorded in a way that this dash can read"),
        };
        Self { commit, ran, reasons }
    }

    /// Pages that it wrote.
    pub fn pages(&self) -> u32 {
        let (first, last) = self.commit.frames;
        last.saturating_sub(first) + 1
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let interrupt = Interrupt::catch()?;
    let file = &arguments.file;
    if !file.exists() {
        return Err(Failure::new(format!("{} does not exist", file.display())));
    }
    let Some(history) = read(file)? else {
        if !arguments.follow {
            return Err(Failure::new(format!(
                "{} has no log: it is not in mode wal, or was never written in that mode by dash",
                file.display()
            )));
        }
        return follow(arguments, 0, &interrupt);
    };
    let commits = match arguments.all {
        true => history.commits_behind(0),
        false => history.commits(),
    };
    print(arguments, &commits.explain("reading the log")?);
    match arguments.follow {
        true => follow(arguments, history.newest(), &interrupt),
        false => Ok(Outcome::Good),
    }
}

fn read(file: &Path) -> Result<Option<History>> {
    History::read(&Real, file).explain(format!("reading the log of {}", file.display()))
}

/// Shows what comes behind a record.
fn follow(arguments: &Arguments, mut last: u64, interrupt: &Interrupt) -> Result<Outcome> {
    while !interrupt.pressed() {
        std::thread::sleep(PAUSE);
        // It may be made, or made anew, at any time.
        let Some(history) = read(&arguments.file)? else { continue };
        if history.newest() < last {
            last = 0;
        }
        let commits = history.commits_behind(last).explain("reading the log")?;
        if let Some(first) = commits.first().filter(|first| last > 0 && first.record > last + 1) {
            eprintln!(
                "dash: records {} to {} were not written, or overwritten before they could be read",
                last + 1,
                first.record - 1
            );
        }
        print(arguments, &commits);
        last = history.newest();
    }
    Ok(Outcome::Good)
}

fn print(arguments: &Arguments, commits: &[Commit]) {
    for commit in commits {
        let shown = Shown::of(commit);
        let mut line = match (arguments.json, arguments.sql) {
            (true, _) => json::of(&shown).to_string().into_bytes(),
            (_, true) => sql::of(&shown),
            _ => text::of(&shown).into_bytes(),
        };
        line.push(b'\n');
        drop(std::io::stdout().write_all(&line));
    }
}
