//! `dash torture`: runs the rings that try to make an engine lose data. One line an engine and
//! variant, and for each failure the command that repeats it.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use dash_torture::worker::Again;
use dash_torture::{Options, Ring, Summary, Watch, faults, fs, kill, sim};
use serde_json::json;

use crate::Outcome;
use crate::extension;
use crate::failure::{Explain, Failure, Result};
use crate::interrupt::Interrupt;
use crate::out::say;
use crate::progress::{Progress, Unit};

/// Steps of the bar: thousandths of the work.
const STEPS: f64 = 1000.0;

/// Arguments of `dash torture`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Only this engine, or one variant of it: shadow, shadow/paper
    #[arg(long)]
    engine: Option<String>,
    /// Only this ring; without it all that can run here, one after the other
    #[arg(long, value_parser = ring)]
    ring: Option<Ring>,
    /// Seed of everything random
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Time for each ring
    #[arg(long, default_value_t = 60)]
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

/// Runs the command: bad news (1) if anything was wrong.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let options = Options {
        seed: arguments.seed,
        time: Duration::from_secs(arguments.seconds),
        folder: arguments.dir.clone(),
        library: extension::find().unwrap_or_default(),
        engine: arguments.engine.clone(),
        case: arguments.case.clone(),
    };
    let interrupt = Interrupt::catch()?;
    let mut failed = false;
    let mut all = Vec::new();
    for ring in arguments.ring.map_or(Ring::ALL.to_vec(), |ring| vec![ring]) {
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
        match summaries {
            Some(summaries) => {
                failed |= summaries.iter().any(|summary| !summary.failures.is_empty());
                if arguments.json {
                    all.extend(summaries.iter().map(|summary| in_json(ring, summary)));
                } else {
                    summaries.iter().for_each(|summary| print(ring, summary));
                }
            }
            None if arguments.ring.is_some() => {
                return Err(Failure::new(format!("the ring {} is not built", ring.name())));
            }
            None => {}
        }
    }
    if arguments.json {
        say!("{:#}", json!(all));
    }
    Ok(if failed { Outcome::Bad } else { Outcome::Good })
}

/// What a ring found; `None` for one that this program has not.
fn summaries(ring: Ring, options: &Options, watch: &dyn Watch) -> Result<Option<Vec<Summary>>> {
    let again = || Again::this(&["torture-worker"]).explain("finding this program");
    Ok(match ring {
        Ring::Sim => Some(sim::run(options, watch)),
        Ring::Kill => Some(kill::run(options, watch, &again()?)),
        Ring::Faults => Some(faults::run(options, watch, &again()?)),
        Ring::Fs => Some(fs::run(options, watch)),
    })
}

fn print(ring: Ring, summary: &Summary) {
    let Summary { engine, cases, states, nested, nested_twice, failures, .. } = summary;
    let verdict = match failures.len() {
        0 => "no failure".to_owned(),
        1 => "1 FAILURE".to_owned(),
        more => format!("{more} FAILURES"),
    };
    let again = match (nested, nested_twice) {
        (0, 0) => String::new(),
        _ => format!(", {nested} of them cut inside a recovery, {nested_twice} twice"),
    };
    say!(
        "{:<6} {engine:<24} {cases} cases, {states} distinct states{again}: {verdict}",
        ring.name()
    );
    for note in &summary.notes {
        say!("       {note}");
    }
    for reason in &summary.skipped {
        say!("       not run here: {reason}");
    }
    for failure in failures {
        say!("       {}", failure.what.replace('\n', "\n       "));
        say!("       again: {}", failure.replay);
    }
}

fn in_json(ring: Ring, summary: &Summary) -> serde_json::Value {
    json!({
        "ring": ring.name(),
        "engine": summary.engine,
        "cases": summary.cases,
        "states": summary.states,
        "nested": summary.nested,
        "nested_twice": summary.nested_twice,
        "notes": summary.notes,
        "skipped": summary.skipped,
        "failures": summary.failures.iter().map(|failure| json!({
            "what": failure.what,
            "replay": failure.replay,
        })).collect::<Vec<_>>(),
    })
}
