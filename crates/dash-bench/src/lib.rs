//! `sqlite-dash bench`: what commits cost on your disk, dash beside stock SQLite and others.
//!
//! A measurement is a `workload` run by several of the `rows` in alternating blocks
//! (`interleave`), by one connection or many (`workers`), on a `volume` whose device counts; it
//! comes to a `table`, which `present` puts out below a `header` that names the machine. `stores`
//! and `direct` are rows that are no SQLite of ours. `workers` start this program again, to
//! be counted or to be killed.
//!
//! What is public is for the program of this crate's developers, `dash-lab`.

mod choose;
pub mod copy;
mod direct;
pub mod durability;
mod header;
pub mod interleave;
mod loops;
pub mod machine;
pub mod measure;
pub mod options;
mod overhead;
pub mod present;
mod priority;
mod quick;
pub mod recorded;
pub mod row;
pub mod rows;
pub mod sample;
pub mod session;
pub mod sqlite;
pub mod stores;
pub mod strace;
pub mod table;
pub mod throttle;
pub mod volume;
pub mod workers;
pub mod workload;

use clap::Subcommand;
use dash_terminal::{device, extension, failure, interrupt, numbers, out, progress, split};

use failure::Result;
use session::Bench;

/// Arguments of `sqlite-dash bench`.
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
    #[command(hide = true)]
    Worker(workers::Arguments),
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
            let volume = arguments.options.volume(&bench.volumes)?;
            let header = bench.header(volume)?;
            let table = measure::run(&arguments.options, volume, session::command())?;
            arguments.output.put(&header, &[table]);
            Ok(true)
        }
        Some(Command::Worker(arguments)) => workers::run(arguments).map(|()| true),
    }
}
