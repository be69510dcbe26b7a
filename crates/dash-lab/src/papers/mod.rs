//! `dash-lab papers`: what each paper reports, beside what is measured here for the same
//! quantity.
//!
//! Absolute times are not comparable across devices: ratios to the same baseline and counts are.

mod comparison;
mod dash;
mod ssl;
mod waldio;

use std::path::{Path, PathBuf};

use crate::failure::Result;
use crate::measure;
use crate::options::{Choice, Options, Where};
use crate::out::say;
use crate::row::Row;
use crate::session::Bench;
use crate::table::Table;
use crate::volume::Volume;
use comparison::Comparison;

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

/// What measures for the papers.
pub struct Runner<'a> {
    bench: &'a Bench,
    traces: Option<&'a Path>,
    quick: bool,
}

impl Runner<'_> {
    /// Times, on the folder's own file system.
    pub fn times(&self, choice: Choice, rows: &[&'static Row]) -> Result<Table> {
        self.measure(choice, rows, Where::Dir)
    }

    /// Counts, exact where a loop device can be made.
    pub fn counts(&self, choice: Choice, rows: &[&'static Row]) -> Result<Table> {
        let exact = self.bench.volumes.l().is_ok();
        self.measure(choice, rows, if exact { Where::Memory } else { Where::Dir })
    }

    /// Times on a journaling file system, of which the papers are; on the folder's own one where
    /// none can be made.
    pub fn journaled_times(&self, choice: Choice, rows: &[&'static Row]) -> Result<Table> {
        let journaled = self.bench.volumes.j().is_ok();
        self.measure(choice, rows, if journaled { Where::Loop } else { Where::Dir })
    }

    /// The same, by so many threads, each of which has as many commits to make.
    pub fn threads(&self, choice: Choice, many: usize, rows: &[&'static Row]) -> Result<Table> {
        let on = if self.bench.volumes.j().is_ok() { Where::Loop } else { Where::Dir };
        let mut options = self.options(choice, rows, on);
        (options.threads, options.work) = (many, Some(200));
        options.rounds = Some(self.many(20));
        self.run(&options)
    }

    /// Whether [`Self::journal_counts`] can be made; else why not.
    pub fn journal_is_told_apart(&self) -> Result<()> {
        self.bench.volumes.e().map(drop)
    }

    /// Counts, those of the file system's journal apart.
    pub fn journal_counts(&self, choice: Choice, rows: &[&'static Row]) -> Result<Table> {
        self.measure(choice, rows, Where::Journal)
    }

    /// The folder's own file system.
    pub fn volume(&self) -> Result<&Volume> {
        self.bench.volumes.v()
    }

    /// So many, or a few.
    pub fn many(&self, number: usize) -> usize {
        if self.quick { (number / 10).max(2) } else { number }
    }

    fn measure(&self, choice: Choice, rows: &[&'static Row], on: Where) -> Result<Table> {
        self.run(&self.options(choice, rows, on))
    }

    fn options(&self, choice: Choice, rows: &[&'static Row], on: Where) -> Options {
        let mut options = Options::of(choice, rows, on);
        options.rounds = Some(self.many(50));
        options.patience = if self.quick { 5 } else { 60 };
        options
    }

    fn run(&self, options: &Options) -> Result<Table> {
        let volume = options.volume(&self.bench.volumes)?;
        measure::run(options, volume, String::new())
    }
}
