//! The program `dash-torture`: runs the rings that try to make an engine lose data. What it says is
//! in [`report`].
//!
//! Exit codes: 0 no failure; 1 a failure; 2 nothing was tried.

#![forbid(unsafe_code)]

mod report;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Duration;

use clap::Parser;
use dash_terminal::extension;
use dash_terminal::failure::{Explain, Failure, Result};
use dash_terminal::interrupt::Interrupt;
use dash_terminal::out::{Shown as _, say, say_aside};
use dash_terminal::progress::{Progress, Unit};
use dash_torture::worker::{self, Again};
use dash_torture::{Options, Ring, Summary, Watch, aim, faults, fs, kill, sim};
use nix::sys::signal::{SigSet, Signal};
use report::Verdict;

/// Steps of the bar: thousandths of the work.
const STEPS: f64 = 1000.0;

/// Tries to make engines lose data: power cuts, faults, killed processes; on this machine
#[derive(Parser)]
#[command(name = "dash-torture", version, max_term_width = 100)]
struct Arguments {
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

fn main() -> ExitCode {
    // A limit on the size of files is an error that is told, and nothing stays behind.
    let _ = SigSet::from(Signal::SIGXFSZ).thread_block();
    // The rings start this program again: `fs` for its workers and devices, others for workers.
    fs::play_part();
    if let Some(code) = worker::run() {
        return code.into();
    }
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(failure) => {
            say_aside!("dash-torture: {failure}");
            ExitCode::from(2)
        }
    }
}

/// Whether nothing was wrong; an error if nothing could be tried.
fn run(arguments: &Arguments) -> Result<bool> {
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
    Ok(verdict.failures == 0)
}

/// What a ring found.
fn summaries(ring: Ring, options: &Options, watch: &dyn Watch) -> Result<Vec<Summary>> {
    let again = || Again::this(&[]).explain("finding this program");
    Ok(match ring {
        Ring::Sim => sim::run(options, watch),
        Ring::Kill => kill::run(options, watch, &again()?),
        Ring::Faults => faults::run(options, watch, &again()?),
        Ring::Fs => fs::run(options, watch),
    })
}
