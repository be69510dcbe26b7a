//! `dash bench`: what commits cost on your disk, dash beside stock SQLite and others.
//!
//! A measurement is a `workload` run by several `rows` in alternating blocks (`lanes`), one
//! connection or many (`crew`), at a `place` whose device counts; it comes to a `table`, which
//! `present` puts out below a `head` that names the machine. `papers` sets the papers' figures
//! beside measured ones, `document` writes BENCHMARKS.md, `repeat` checks that figures repeat, and
//! `targets` holds what dash sets itself. `stores`, `shim` and `direct` are rows that are no
//! SQLite of ours. `work` and `crew` start this program again, to be counted or to be killed.

mod choose;
mod copy;
mod crew;
mod direct;
mod document;
mod engine;
mod head;
mod lanes;
mod loops;
mod machine;
mod measure;
mod options;
mod overhead;
mod papers;
mod place;
mod present;
mod priority;
mod quick;
pub mod recorded;
mod repeat;
mod report;
mod rows;
mod sample;
mod session;
mod shim;
mod stores;
mod strace;
mod table;
mod targets;
mod throttle;
mod work;
mod workload;

use clap::Subcommand;
use dash_terminal::{device, extension, failure, interrupt, numbers, out, progress, split};

use failure::Result;
use session::Bench;

/// Arguments of `dash bench`.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// The first look: three short tables in under a minute, of workloads and rows of its own
    #[arg(long, conflicts_with_all = ["workload", "replay", "rows", "rounds", "block", "patience"])]
    quick: bool,
    #[command(flatten)]
    options: options::Options,
    #[command(flatten)]
    output: present::Output,
}

#[derive(Subcommand)]
enum Command {
    /// Sets what the papers report beside what is measured here
    Papers(papers::Arguments),
    /// Measures everything that BENCHMARKS.md shows, and prints it
    Document(document::Arguments),
    /// Measures the same twice, and says whether counts and ratios agree
    Repeat(repeat::Arguments),
    /// Measures every target that dash sets itself, and says which are met
    Targets(targets::Arguments),
    #[command(hide = true)]
    Work(work::Arguments),
    #[command(hide = true)]
    Seat(crew::Arguments),
}

/// Runs the command; whether the answer is good news.
///
/// # Errors
///
/// If something could not be measured, with the reason.
pub fn run(arguments: &Arguments) -> Result<bool> {
    match &arguments.command {
        None if arguments.quick => quick::run(&arguments.options, &arguments.output),
        None => {
            let bench = Bench::start(&arguments.options.dir)?;
            let place = arguments.options.place(&bench.places)?;
            let head = bench.head(place)?;
            let table = measure::run(&arguments.options, place, session::command())?;
            arguments.output.put(&head, &[table])?;
            Ok(true)
        }
        Some(Command::Papers(arguments)) => papers::run(arguments),
        Some(Command::Document(arguments)) => document::run(arguments),
        Some(Command::Repeat(arguments)) => repeat::run(arguments),
        Some(Command::Targets(arguments)) => targets::run(arguments),
        Some(Command::Work(arguments)) => work::run(arguments).map(|()| true),
        Some(Command::Seat(arguments)) => crew::run(arguments).map(|()| true),
    }
}
