//! `sqlite-dash top`: who writes, waits and reads, how much is committed and how. It looks from
//! outside, at the memory that connections share and at their locks: it opens no database, takes no
//! lock and makes no file.

mod json;
pub mod moment;
mod prometheus;
mod screen;
mod text;

use std::io::{ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dash_storage::real::Real;

use crate::Outcome;
use crate::engines::ENGINES;
use crate::failure::{Explain, Failure, Result};
use crate::interrupt::Interrupt;
use crate::out::Shown;
use moment::{Moment, Rates};
use screen::Screen;

/// Arguments of `sqlite-dash top`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The database
    file: PathBuf,
    /// Seconds from one look to the next
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    interval: f64,
    /// Looks twice, an interval apart, prints that, and ends
    #[arg(long)]
    once: bool,
    /// Prints JSON for programs, an object a line
    #[arg(long, conflicts_with = "prometheus")]
    json: bool,
    /// Looks once, and prints metrics in the text format of Prometheus
    #[arg(long)]
    prometheus: bool,
}

/// The shortest and the longest interval, in seconds.
const INTERVALS: std::ops::RangeInclusive<f64> = 0.1..=86_400.0;

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let shown = arguments.file.shown();
    if !INTERVALS.contains(&arguments.interval) {
        return Err(Failure::new(format!(
            "--interval takes {} to {} seconds",
            INTERVALS.start(),
            INTERVALS.end()
        )));
    }
    let interval = Duration::from_secs_f64(arguments.interval);
    let path = arguments.file.canonicalize().explain(format!("looking at {shown}"))?;
    if !path.is_file() {
        return Err(Failure::new(format!("{shown} is not a file")));
    }
    let window = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
    if arguments.prometheus {
        let moment = look(&path)?;
        let rates = moment.as_ref().map(|now| Rates::of(None, now, window)).unwrap_or_default();
        write(&prometheus::text(&path, moment.as_ref(), &rates))?;
        return Ok(Outcome::Good);
    }
    let interrupt = Interrupt::catch_silently()?;
    let once = arguments.once;
    let screen = Screen::take(!once && !arguments.json && std::io::stdout().is_terminal())?;
    let mut before = look(&path)?;
    if !once {
        let rates = before.as_ref().map(|now| Rates::of(None, now, window)).unwrap_or_default();
        if !write(&print(arguments, &screen, &path, before.as_ref(), &rates))? {
            return Ok(Outcome::Good);
        }
    }
    let mut due = Instant::now();
    loop {
        due += interval;
        if screen.wait_until(due, &interrupt)? {
            return Ok(Outcome::Good);
        }
        let now = look(&path)?;
        let rates = now.as_ref().map(|now| Rates::of(before.as_ref(), now, window));
        let text = print(arguments, &screen, &path, now.as_ref(), &rates.unwrap_or_default());
        if !write(&text)? || once {
            return Ok(Outcome::Good);
        }
        before = now;
    }
}

/// What the connections do now; none where no connection of dash has it open for writing.
fn look(path: &Path) -> Result<Option<Moment>> {
    for engine in ENGINES {
        if let Some(moment) = (engine.watch)(path)? {
            return Ok(Some(moment));
        }
    }
    if dash_shadow::is_open(&Real, path) {
        // Or somebody is just opening it, or closing it.
        std::thread::sleep(Duration::from_millis(50));
        for engine in ENGINES {
            if let Some(moment) = (engine.watch)(path)? {
                return Ok(Some(moment));
            }
        }
        if dash_shadow::is_open(&Real, path) {
            return Err(Failure::new(format!(
                "{} is open in another version of dash, which shares memory in another way: use its own `sqlite-dash top`",
                path.shown()
            )));
        }
    }
    Ok(None)
}

fn print(
    arguments: &Arguments,
    screen: &Screen,
    path: &Path,
    now: Option<&Moment>,
    rates: &Rates,
) -> String {
    match arguments.json {
        true => format!("{}\n", json::of(path, now, rates)),
        false => screen.page(&text::of(path, now, rates)),
    }
}

/// Whether somebody still reads it.
fn write(text: &str) -> Result<bool> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        written => written.explain("writing").map(|()| true),
    }
}
