//! `dash-lab papers`: what each paper reports, beside what is measured here for the same
//! quantity.
//!
//! Absolute times are not comparable across devices: ratios to the same baseline and counts are.

mod comparison;
mod dash;
mod runner;
mod ssl;
mod waldio;

use std::path::PathBuf;

use crate::failure::Result;
use crate::out::say;
use crate::session::Bench;
use comparison::Comparison;
use runner::Runner;

/// Arguments of `dash-lab papers`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Where databases are made (and removed); choose the disk to measure
    #[arg(long, value_name = "PATH", default_value = ".")]
    dir: PathBuf,
    /// Recordings: facebook and twitter in this folder stand beside SSL's traces of the same
    /// applications
    #[arg(long, value_name = "FOLDER")]
    traces: Option<PathBuf>,
    /// Only this paper
    #[arg(long, value_name = "PAPER")]
    only: Option<Which>,
    /// Few rounds: to see whether it works
    #[arg(long)]
    quick: bool,
    /// Prints Markdown
    #[arg(long)]
    markdown: bool,
}

/// A paper's name, and what makes its comparisons.
type Paper = (Which, fn(&Runner<'_>) -> Result<Vec<Comparison>>);

const PAPERS: [Paper; 3] =
    [(Which::Dash, dash::compare), (Which::Waldio, waldio::compare), (Which::Ssl, ssl::compare)];

/// A paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Which {
    /// DASH: Database Shadowing for Mobile DBMS (VLDB 2019).
    Dash,
    /// WALDIO (USENIX ATC 2015).
    Waldio,
    /// SQLite/SSL: statement logging (VLDB 2017).
    Ssl,
}

/// Said above everything.
const CAUTION: &str = "The papers measured phones and boards of their time. Times are not comparable across devices: compare ratios to the same baseline, and counts. \"-\" where a paper gives a figure only as a bar, or there is no such engine here.";

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let bench = Bench::start(&arguments.dir)?;
    bench.header(bench.volumes.v()?)?.lines().iter().for_each(|line| say!("{line}"));
    say!("\n{CAUTION}");
    let runner =
        Runner { bench: &bench, traces: arguments.traces.as_deref(), quick: arguments.quick };
    let wanted = |which| arguments.only.is_none_or(|only| only == which);
    for (_, compare) in PAPERS.into_iter().filter(|(which, _)| wanted(*which)) {
        for comparison in compare(&runner)? {
            match arguments.markdown {
                true => say!("\n{}", comparison.markdown()),
                false => say!("\n{}", comparison.plain()),
            }
        }
    }
    Ok(true)
}
