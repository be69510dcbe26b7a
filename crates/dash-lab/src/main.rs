//! `dash-lab`: what those who develop dash measure, and nobody else needs. It is not shipped.
//!
//! `targets` holds what dash sets itself, put out by `report`; `papers` sets the papers' figures
//! beside measured ones; `document` writes BENCHMARKS.md; `repeat` checks that figures repeat.
//! `services` asks services on Django and Go for what they see of dash.
//! `recovery` kills writers, for papers and document; `sides` are the rows that are compared.
//!
//! How anything is measured is in the crate `dash_bench`, whose workers are started as `dash-lab
//! bench`; `work` is what this program starts of itself.

#![forbid(unsafe_code)]

mod document;
mod papers;
mod recovery;
mod repeat;
mod report;
mod services;
mod sides;
mod targets;
mod work;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use dash_bench::{
    copy, interleave, machine, measure, options, present, row, sample, session, strace, table,
    throttle, volume, workers, workload,
};
use dash_terminal::{device, extension, failure, interrupt, numbers, out, progress};

/// What dash's developers measure.
#[derive(Parser)]
#[command(name = "dash-lab", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measures every target that dash sets itself, and says which are met
    Targets(targets::Arguments),
    /// Sets what the papers report beside what is measured here
    Papers(papers::Arguments),
    /// Measures everything that BENCHMARKS.md shows, and prints it
    Document(document::Arguments),
    /// Measures services on Django and Go, on stock SQLite and on dash
    Services(services::Arguments),
    /// Measures the same twice, and says whether counts and ratios agree
    Repeat(repeat::Arguments),
    #[command(hide = true)]
    Work(work::Arguments),
    #[command(hide = true)]
    Bench(Box<dash_bench::Arguments>),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Targets(arguments) => targets::run(&arguments),
        Command::Papers(arguments) => papers::run(&arguments),
        Command::Document(arguments) => document::run(&arguments),
        Command::Services(arguments) => services::run(&arguments),
        Command::Repeat(arguments) => repeat::run(&arguments),
        Command::Work(arguments) => work::run(&arguments).map(|()| true),
        Command::Bench(arguments) => dash_bench::run(&arguments),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(failure) => {
            eprintln!("dash-lab: {failure}");
            ExitCode::from(2)
        }
    }
}
