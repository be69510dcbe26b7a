//! The `dash-bench` program: what dash reaches, measured beside stock SQLite on the same machine.
//!
//! [`targets`] holds one file per row of the table. What rows share: [`place`] (the folders things
//! are measured in, some on loop devices of their own), [`device`] (counts of a block device),
//! [`engine`] (how each side opens a database), [`lanes`] (alternating blocks), [`throttle`] (a
//! disk that must not be trusted now), [`priority`] (undisturbed by others), [`sample`]
//! (latencies), [`report`] (rows, targets, the table and its JSON). [`work`] is what this program does
//! in processes that it starts of itself, to be counted by strace or to be killed.

mod device;
mod engine;
mod extension;
mod failure;
mod interrupt;
mod lanes;
mod loops;
mod machine;
mod numbers;
mod out;
mod place;
mod priority;
mod progress;
mod report;
mod sample;
mod strace;
mod targets;
mod throttle;
mod work;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Measures dash beside stock SQLite.
#[derive(Parser)]
#[command(name = "dash-bench", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measures every target that dash sets itself, and says which are met
    Targets(targets::Arguments),
    #[command(hide = true)]
    Work(work::Arguments),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Targets(arguments) => targets::run(&arguments),
        Command::Work(arguments) => work::run(&arguments).map(|()| true),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(failure) => {
            eprintln!("dash-bench: {failure}");
            ExitCode::from(2)
        }
    }
}
