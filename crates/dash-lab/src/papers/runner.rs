//! What measures for the papers: where, and how often.

use std::path::Path;

use crate::failure::Result;
use crate::measure;
use crate::options::{Choice, Options, Where};
use crate::row::Row;
use crate::session::Bench;
use crate::table::Table;
use crate::volume::Volume;

/// What measures for the papers.
pub struct Runner<'a> {
    /// The volumes.
    pub bench: &'a Bench,
    /// Recordings.
    pub traces: Option<&'a Path>,
    /// Whether a tenth of the rounds will do.
    pub quick: bool,
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
