//! Killing a writer with SIGKILL in the middle of its commits, and looking for every commit that
//! it had said was durable. What the power going off does is tested elsewhere: no program can cut
//! its own machine's power.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use dash_bench::copy;

use super::modes::{self, MODES, Mode};
use crate::extension::Extension;
use crate::failure::{Explain, Failure, Result};
use crate::interrupt;
use crate::numbers::count;
use crate::progress::{Progress, Unit};

/// How long after its first commit a writer is killed, in milliseconds: one round each.
const MOMENTS: [u64; 4] = [61, 127, 283, 389];

/// What was found after the kills, of one mode.
#[derive(Debug, Clone)]
pub struct Cut {
    /// Which mode.
    pub mode: &'static Mode,
    /// Writers killed.
    pub kills: usize,
    /// Commits they had acknowledged.
    pub acknowledged: u64,
    /// Of those, how many were found.
    pub found: u64,
    /// The first thing `PRAGMA integrity_check` complained about.
    pub damage: Option<String>,
}

impl Cut {
    /// Whether nothing was lost or damaged.
    pub fn is_clean(&self) -> bool {
        self.damage.is_none() && self.found == self.acknowledged
    }
}

/// Kills writers of all modes in turn, so many of each as there are `rounds` and moments; their
/// databases are new ones in `folder`, or copies of `base`.
pub fn run(
    extension: &Extension,
    folder: &Path,
    base: Option<&Path>,
    rounds: usize,
) -> Result<Vec<Cut>> {
    let moments = &MOMENTS[..rounds.clamp(1, MOMENTS.len())];
    let file = |mode: &Mode| -> PathBuf { folder.join(format!("{}.db", mode.row.word)) };
    if let Some(base) = base {
        MODES.iter().try_for_each(|mode| copy::copy(base, &file(mode)))?;
    }
    let none = |mode| Cut { mode, kills: 0, acknowledged: 0, found: 0, damage: None };
    let mut cuts: Vec<Cut> = MODES.iter().map(none).collect();
    let mut progress =
        Progress::new("killing writers", count(moments.len() * MODES.len()), Unit::Count);
    for moment in moments {
        for cut in &mut cuts {
            let path = file(cut.mode);
            let last = kill_one(cut.mode, &path, Duration::from_millis(*moment));
            // Ctrl-C reaches the writer too: its early end is then no failure of its own.
            interrupt::check()?;
            let last = last?;
            let (found, damage) = look(extension, cut.mode, &path, last)?;
            cut.kills += 1;
            // Rows of earlier rounds must still be there, so the last round counts them all.
            cut.acknowledged = last;
            cut.found = found;
            cut.damage = cut.damage.take().or(damage);
            progress.step(1)?;
        }
    }
    progress.finish();
    Ok(cuts)
}

/// Starts a writer, kills it and returns the last commit it acknowledged.
fn kill_one(mode: &Mode, path: &Path, after: Duration) -> Result<u64> {
    let own = std::env::current_exe().explain("finding this program")?;
    let mut writer = Command::new(own)
        .args(["demo-writer", mode.row.word])
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .explain("starting a writer")?;
    let Some(pipe) = writer.stdout.take() else {
        return Err(Failure::new("a writer was started without a pipe"));
    };
    let mut pipe = BufReader::new(pipe);
    let mut said = String::new();
    pipe.read_line(&mut said).explain("listening to a writer")?;
    std::thread::sleep(after);
    // Already gone: it failed, and its own words say more than ours.
    let died = writer.try_wait().explain("looking after a writer")?.is_some();
    writer.kill().explain("killing a writer")?;
    writer.wait().explain("waiting for a killed writer")?;
    pipe.read_to_string(&mut said).explain("listening to a writer")?;
    if died || said.is_empty() {
        return Err(Failure::new(format!(
            "a writer ended before it was killed: {}",
            last_words(&mut writer)
        )));
    }
    // The last line may have been cut off; then it was not said.
    let whole = said.rfind('\n').map_or("", |end| &said[..end]);
    whole
        .rsplit('\n')
        .next()
        .and_then(|number| number.parse().ok())
        .ok_or_else(|| Failure::new("a writer said no number"))
}

fn last_words(writer: &mut Child) -> String {
    let mut words = String::new();
    if let Some(pipe) = &mut writer.stderr
        && pipe.read_to_string(&mut words).is_err()
    {
        words.push_str("(its message could not be read)");
    }
    words.trim().trim_start_matches("dash: ").to_owned()
}

/// Opens the database again: how many of the first `last` commits are there, and is it whole?
fn look(
    extension: &Extension,
    mode: &Mode,
    path: &Path,
    last: u64,
) -> Result<(u64, Option<String>)> {
    let db = modes::open(mode.row, extension, path)?;
    let what = || format!("{}: looking for the commits", mode.name);
    let verdict: String =
        db.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).explain(what())?;
    let last = i64::try_from(last).unwrap_or(i64::MAX);
    let found: i64 = db
        .query_row(
            "SELECT count(*) FROM dash_demo_commits WHERE number BETWEEN 1 AND ?",
            [last],
            |row| row.get(0),
        )
        .explain(what())?;
    db.close().map_err(|(_, error)| error).explain(what())?;
    Ok((u64::try_from(found).unwrap_or(0), (verdict != "ok").then_some(verdict)))
}
