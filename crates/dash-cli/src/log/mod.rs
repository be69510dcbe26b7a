//! `sqlite-dash log`: the commits that a database's log holds, with what they ran where that is
//! recorded. Reads only, and takes no lock: the database may be open, and others may commit
//! meanwhile.

mod gaps;
mod json;
mod shown;
mod sql;
mod text;
pub mod whose;

use std::io::{ErrorKind, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dash_statement::shown_json;
use dash_storage::real::Real;
use dash_wal::history::{Commit, History, InWal, in_wal};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::Outcome;
use crate::failure::{Explain, Failure, Result};
use crate::interrupt::Interrupt;
use crate::out::{Shown as _, say_aside};
use gaps::Gaps;
use shown::Shown;

/// How often it is looked for more.
const PAUSE: Duration = Duration::from_millis(200);

/// Arguments of `sqlite-dash log`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The database, in mode wal
    file: PathBuf,
    /// Goes on while others commit, until Ctrl-C or until nobody reads what it prints
    #[arg(long)]
    follow: bool,
    /// Also shows commits that are in the database by now, as far as the log still has them
    #[arg(long)]
    all: bool,
    /// Prints the statements as SQL that the sqlite3 shell can run, with their values: use `sqlite3
    /// -safe` on a log that may be anybody's
    #[arg(long, conflicts_with = "json")]
    sql: bool,
    /// Prints a line of JSON for each commit
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let interrupt = Interrupt::catch()?;
    let file = &whose::resolved(&arguments.file);
    let report = whose::look(file)?;
    let mut printer = Printer { arguments, file, gaps: Gaps::new(arguments.all) };
    let Some(history) = read(file)? else {
        let none = whose::none(&report);
        if !arguments.follow {
            return Err(Failure::new(none));
        }
        say_aside!("dash: {none}; waiting for one");
        return printer.follow(0, &interrupt);
    };
    whose::notes(&report, history.newest())?;
    let commits = match arguments.all {
        true => history.commits_behind(0),
        false => history.commits(),
    };
    let commits = commits.explain("reading the log")?;
    let wal = in_wal(&Real, file).explain("reading -wal")?;
    if !printer.print(&commits, &history, wal.as_ref())? {
        return Ok(Outcome::Good);
    }
    if let Some((first, last)) = history.cut_off().filter(|_| !report.open) {
        say_aside!(
            "dash: of records {first} to {last} recovery takes none: one before them is missing or damaged; --all shows them"
        );
    }
    let behind = wal.as_ref().and_then(|wal| printer.gaps.behind(wal, is_of(&history, wal)));
    whose::tail(&report, behind);
    if commits.is_empty() {
        let kept = history.commits_behind(0).explain("reading the log")?.len();
        match kept {
            0 => say_aside!("dash: the log holds no commit"),
            kept => say_aside!(
                "dash: the log holds {kept} commits that are in the database by now: --all shows them"
            ),
        }
    }
    match arguments.follow {
        true => printer.follow(history.newest(), &interrupt),
        false => Ok(Outcome::Good),
    }
}

fn read(file: &Path) -> Result<Option<History>> {
    History::read(&Real, file).explain(format!("reading the log of {}", file.shown()))
}

/// Whether `-wal` is of the generation that the log speaks of.
fn is_of(history: &History, wal: &InWal) -> bool {
    history.window().is_some_and(|(salts, ..)| salts == wal.salts)
}

struct Printer<'a> {
    arguments: &'a Arguments,
    file: &'a Path,
    gaps: Gaps,
}

impl Printer<'_> {
    /// Shows what comes behind a record.
    fn follow(&mut self, mut last: u64, interrupt: &Interrupt) -> Result<Outcome> {
        while !interrupt.pressed() && is_read()? {
            std::thread::sleep(PAUSE);
            // It may be made, or made anew, at any time.
            let Some(history) = read(self.file)? else { continue };
            if history.newest() < last {
                last = 0;
                self.gaps = Gaps::new(true);
            }
            let commits = history.commits_behind(last).explain("reading the log")?;
            if commits.is_empty() {
                continue;
            }
            let wal = in_wal(&Real, self.file).explain("reading -wal")?;
            if !self.print(&commits, &history, wal.as_ref())? {
                break;
            }
            last = history.newest();
        }
        Ok(Outcome::Good)
    }

    /// Shows commits; whether somebody still reads that.
    fn print(
        &mut self,
        commits: &[Commit],
        history: &History,
        wal: Option<&InWal>,
    ) -> Result<bool> {
        let newest = commits.last().map(|commit| commit.generation);
        let wal = wal.filter(|wal| is_of(history, wal));
        let mut out = std::io::stdout().lock();
        for commit in commits {
            let of_it = wal.filter(|_| Some(commit.generation) == newest);
            let gap = self.gaps.before(commit, of_it);
            let shown = Shown::of(commit, gap);
            let mut line = match (self.arguments.json, self.arguments.sql) {
                (true, _) => shown_json(&json::of(&shown).to_string()).into_bytes(),
                (_, true) => sql::of(&shown),
                _ => text::of(&shown).into_bytes(),
            };
            line.push(b'\n');
            match out.write_all(&line).and_then(|()| out.flush()) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(false),
                Err(error) => return Err(Failure::new(format!("writing what is shown: {error}"))),
            }
        }
        Ok(true)
    }
}

/// Whether somebody may still read what is printed: a pipe without a reader says so.
fn is_read() -> Result<bool> {
    let out = std::io::stdout();
    let mut polled = [PollFd::new(out.as_fd(), PollFlags::empty())];
    match poll(&mut polled, PollTimeout::ZERO) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => {}
        Err(error) => return Err(Failure::new(format!("looking at standard output: {error}"))),
    }
    Ok(!polled[0].revents().unwrap_or(PollFlags::empty()).contains(PollFlags::POLLERR))
}
