//! `sqlite-dash torture`: runs the rings that try to make an engine lose data. What it says is in
//! [`report`].

mod report;

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use dash_torture::worker::Again;
use dash_torture::{Options, Ring, Summary, Watch, aim, faults, fs, kill, sim};

use crate::Outcome;
use crate::extension;
use crate::failure::{Explain, Failure, Result};
use crate::interrupt::Interrupt;
use crate::out::{Shown as _, say};
use crate::progress::{Progress, Unit};
use report::Verdict;

/// Steps of the bar: thousandths of the work.
const STEPS: f64 = 1000.0;

/// Arguments of `sqlite-dash torture`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Only this engine, a variant of it or a part of a ring: shadow, shadow/paper, shadow/memory
    #[arg(long)]
    engine: Option<String>,
    /// Only this ring; without it all that can run here, one after the other
    #[arg(long, value_parser = ring)]
    ring: Option<Ring>,
    /// Seed of everything random
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Seconds for each ring: without --ring all four take four times as long
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// A folder on the file system to be tried; what is in it is left alone
    #[arg(long)]
    dir: Option<PathBuf>,
    /// One case, in the words of the line that replays a failure
    #[arg(long, requires = "ring")]
    case: Option<String>,
    /// Prints JSON for programs
    #[arg(long)]
    json: bool,
}

fn ring(name: &str) -> std::result::Result<Ring, String> {
    let names = Ring::ALL.map(Ring::name).join(", ");
    Ring::ALL
        .into_iter()
        .find(|ring| ring.name() == name)
        .ok_or_else(|| format!("the rings are {names}"))
}

/// Draws the bar, and passes Ctrl-C on.
struct Shown {
    bar: Mutex<Progress>,
    interrupt: Interrupt,
}

impl Watch for Shown {
    fn progress(&self, _cases: u64, done: f64) -> bool {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a fraction of 1, clamped"
        )]
        let step = (done.clamp(0.0, 1.0) * STEPS) as u64;
        if let Ok(mut bar) = self.bar.lock() {
            bar.set(step);
        }
        !self.interrupt.pressed()
    }
}

/// Runs the command: bad news (1) if anything was wrong, an error if nothing could be tried.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let options = Options {
        seed: arguments.seed,
        time: Duration::from_secs(arguments.seconds),
        folder: arguments.dir.clone(),
        library: extension::find().unwrap_or_default(),
        engine: arguments.engine.clone(),
        case: arguments.case.clone(),
    };
    let rings = aim::rings(&options, arguments.ring).map_err(Failure::new)?;
    if let Some(folder) = &options.folder {
        // Asked once, not by each case.
        tempfile::tempdir_in(folder)
            .explain(format!("making a folder in {} (--dir)", folder.shown()))?;
    }
    let interrupt = Interrupt::catch()?;
    let mut all = Vec::new();
    for ring in rings {
        if interrupt.pressed() {
            break;
        }
        let bar =
            Mutex::new(Progress::new(&format!("torture, ring {}", ring.name()), 1000, Unit::Count));
        let shown = Shown { bar, interrupt: interrupt.clone() };
        let summaries = summaries(ring, &options, &shown)?;
        if let Ok(bar) = shown.bar.into_inner() {
            bar.finish();
        }
        if !arguments.json {
            report::print(ring, &summaries);
        }
        all.extend(summaries.into_iter().map(|summary| (ring, summary)));
    }
    if arguments.json {
        say!("{:#}", report::in_json(&all));
    }
    let verdict = Verdict::of(&all);
    if verdict.cases == 0 && verdict.failures == 0 {
        return Err(Failure::new("nothing was tried, so nothing is known"));
    }
    if !arguments.json {
        say!("{}{verdict}", if interrupt.pressed() { "stopped: " } else { "" });
    }
    Ok(Outcome::of(verdict.failures == 0))
}

/// What a ring found.
fn summaries(ring: Ring, options: &Options, watch: &dyn Watch) -> Result<Vec<Summary>> {
    let again = || Again::this(&["torture-worker"]).explain("finding this program");
    Ok(match ring {
        Ring::Sim => sim::run(options, watch),
        Ring::Kill => kill::run(options, watch, &again()?),
        Ring::Faults => faults::run(options, watch, &again()?),
        Ring::Fs => fs::run(options, watch),
    })
}
