//! The program `sqlite-dash` on forged sets: as with opening them, and what it prints is no
//! command, to no terminal and to no shell.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};

use super::Rig;
use crate::again::{Again, Assignment};
use crate::faults::numbered::{self, Counts, LONGEST, MOST};
use crate::faults::part::GoOn;
use crate::random::Dice;
use crate::{Options, Summary};

/// The part's name, and its workers' role.
pub const ROLE: &str = "tools";

/// What is asked of a set.
const TOOLS: [&[&str]; 9] = [
    &["inspect"],
    &["inspect", "--json"],
    &["log", "--all"],
    &["log", "--all", "--json"],
    &["log", "--all", "--sql"],
    &["log", "--all", "--sql"],
    &["replay"],
    &["recover", "--yes"],
    &["top", "--once", "--interval", "0.1"],
];

/// The program `sqlite-dash`, which cargo puts beside `dash-torture`.
fn program() -> Option<PathBuf> {
    let beside = std::env::current_exe().ok()?.with_file_name("sqlite-dash");
    beside.is_file().then_some(beside)
}

fn used() -> Result<(Duration, u64), String> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|error| error.to_string())?;
    let seconds = [usage.user_time(), usage.system_time()].map(|it| {
        Duration::new(it.tv_sec().unsigned_abs(), 0)
            + Duration::from_micros(it.tv_usec().unsigned_abs())
    });
    Ok((seconds[0] + seconds[1], usage.max_rss().unsigned_abs() << 10))
}

/// A character that does something to a terminal.
fn command(text: &str) -> Option<char> {
    let overrides = '\u{202a}'..='\u{202e}';
    text.chars().find(|it| overrides.contains(it) || it.is_control() && !"\n\t".contains(*it))
}

/// Has the shell of SQLite run what was printed, if there is one; some of it may never end.
fn by_shell(printed: &[u8]) -> std::io::Result<bool> {
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -v 200000; exec timeout --foreground -s KILL 2 sqlite3"]);
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut shell = shell.spawn()?;
    if let Some(mut input) = shell.stdin.take() {
        // It may have ended before it has read all.
        drop(input.write_all(printed));
    }
    Ok(shell.wait()?.code() != Some(127))
}

/// What is wrong with what a tool said.
fn wrong(output: &Output, is_sql: bool) -> Option<String> {
    let [errors, printed] = [&output.stderr, &output.stdout].map(|it| String::from_utf8_lossy(it));
    let of_printed = command(&printed).filter(|_| !is_sql);
    if let Some(command) = of_printed.or_else(|| command(&errors)) {
        return Some(format!("prints {command:?}, a command to a terminal"));
    }
    let ended = matches!(output.status.code(), Some(0..=2)) && !errors.contains("panicked");
    let errors = errors.chars().take(500).collect::<String>();
    (!ended).then(|| format!("ends with {}: {errors}", output.status))
}

fn case(rig: &mut Rig, program: &Path, dice: &mut Dice) -> Result<Counts, String> {
    let database = rig.set(dice)?;
    let tool = TOOLS[dice.index(TOOLS.len())];
    let (before, _) = used()?;
    let run = Command::new(program).args(tool).arg(&database).stdin(Stdio::null()).output();
    let output = run.map_err(|error| format!("starting {}: {error}", program.display()))?;
    let (after, most) = used()?;
    let computed = after.saturating_sub(before);
    let is_sql = tool.contains(&"--sql");
    let mut what = wrong(&output, is_sql);
    // A replay runs what is recorded, with an end of its own.
    if computed > LONGEST && tool != ["replay"] || most > MOST {
        what = Some(format!("takes {computed:?} and {} MiB", most >> 20));
    }
    if let Some(what) = what {
        return Err(format!("sqlite-dash {} {what}", tool.join(" ")));
    }
    rig.check(&database)?;
    let mut counts = vec![("runs", 1), (tool[0], 1)];
    if is_sql && by_shell(&output.stdout).map_err(|error| format!("a shell: {error}"))? {
        if rig.canary.folder.join("OWNED").exists() {
            return Err("what `sqlite-dash log --sql` prints is a command to the shell".to_owned());
        }
        // Its statements do what statements do, for whoever runs them.
        rig.renew()?;
        counts.push(("of-them-by-shell", 1));
    }
    Ok(counts)
}

/// The worker.
pub fn worker(assignment: &Assignment) -> Result<(), String> {
    let program = program().ok_or("no program")?;
    numbered::worker(assignment, || {
        let mut rig = Rig::new(assignment)?;
        Ok(Box::new(move |dice| case(&mut rig, &program, dice)))
    })
}

/// The part.
pub fn run(options: &Options, again: &Again, summary: &mut Summary, go_on: &mut GoOn<'_>) {
    match program() {
        Some(_) => numbered::run(ROLE, options, again, summary, go_on),
        None => {
            summary.skipped.push("the tools: no sqlite-dash lies beside this program".to_owned())
        }
    }
}
