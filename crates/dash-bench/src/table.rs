//! What a measurement came to: figures, not yet text.

use serde::Serialize;

use crate::interleave::Measured;
use crate::numbers::{median, per};
use crate::row::Row;
use crate::sample::Sample;

/// One workload on one volume.
#[derive(Debug, Clone, Serialize)]
pub struct Table {
    /// The arguments that make it again.
    pub command: String,
    /// The workload.
    pub about: String,
    /// Where.
    pub place: String,
    /// How many connections at the same time.
    pub connections: usize,
    /// Whether commits are what is measured; reads otherwise.
    pub writes: bool,
    /// Where the counts come from.
    pub source: Source,
    /// Rounds that count.
    pub rounds: usize,
    /// The row that `speed` compares with.
    pub baseline: String,
    /// The disk throttled, or the machine was busy, and did not stop: times are worth little.
    pub throttled: bool,
    /// Its rows.
    pub lines: Vec<Line>,
    /// What else a reader must know.
    pub notes: Vec<String>,
}

/// Where counts come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A block device that nobody else writes to: exact.
    OwnDevice,
    /// The block device under the folder; medians over blocks, because others write to it too.
    SharedDevice,
    /// No device could be found: bytes handed to write calls, flushes counted by strace.
    Calls,
    /// Nothing is written.
    Nothing,
}

/// A middle and how far others lie from it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Spread {
    /// The median over rounds.
    pub median: f64,
    /// A quarter of the rounds lies below.
    pub low: f64,
    /// A quarter lies above.
    pub high: f64,
    /// The best round.
    pub best: f64,
}

/// Latencies, in microseconds.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Latency {
    /// How many.
    pub count: u64,
    /// Median over blocks of a block's mean.
    pub mean: f64,
    /// Half were faster.
    pub p50: f64,
    /// One in ten was slower.
    pub p90: f64,
    /// One in a hundred.
    pub p99: f64,
    /// One in a thousand.
    pub p999: f64,
    /// The slowest.
    pub max: f64,
}

/// What a transaction that wrote cost.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Cost {
    /// Cache flushes.
    pub flushes: f64,
    /// Write requests, flushes among them; none where only calls are counted.
    pub writes: Option<f64>,
    /// KiB written.
    pub kib: f64,
    /// KiB kept back, and written only when that was asked for after the block.
    pub later_kib: f64,
    /// KiB of these two that went to the file system's journal, where that is told apart.
    pub journal_kib: Option<f64>,
}

/// System calls of a transaction.
#[derive(Debug, Clone, Serialize)]
pub struct Calls {
    /// All.
    pub total: f64,
    /// Those that flush.
    pub flushes: f64,
    /// By name, most frequent first.
    pub names: String,
}

/// A row.
#[derive(Debug, Clone, Serialize)]
pub struct Line {
    /// The row's word on the command line.
    pub row: String,
    /// Its name.
    pub name: String,
    /// What is left after power loss, in a few words.
    pub after_power_loss: &'static str,
    /// The whole of it.
    pub durability: &'static str,
    /// Transactions a second of the kind that is measured.
    pub rate: Spread,
    /// How many times the baseline's rate, round by round.
    pub speed: Spread,
    /// Of the kind that is measured.
    pub latency: Latency,
    /// Of the reads beside the commits, with their rate.
    pub reads: Option<(f64, Latency)>,
    /// Processor time of a transaction in microseconds, the kernel's for it among it.
    pub cpu_us: Option<f64>,
    /// At the device.
    pub cost: Option<Cost>,
    /// By strace.
    pub calls: Option<Calls>,
    /// Statements that failed.
    pub failures: u64,
    /// Of several connections, what the one that wrote least wrote as a share of the most.
    pub slowest: Option<f64>,
}

impl Table {
    /// The line of a row.
    pub fn line(&self, row: &Row) -> Option<&Line> {
        self.lines.iter().find(|line| line.row == row.word)
    }
}

impl Spread {
    /// Of figures, one a round.
    pub fn of(figures: &[f64]) -> Self {
        let mut sorted = figures.to_vec();
        sorted.sort_by(f64::total_cmp);
        let quarter = sorted.len() / 4;
        let at = |index: usize| sorted.get(index).copied().unwrap_or(0.0);
        let high = sorted.len().saturating_sub(1 + quarter);
        let best = at(sorted.len().saturating_sub(1));
        Self { median: median(&sorted), low: at(quarter), high: at(high), best }
    }
}

impl Latency {
    fn of(sample: &Sample) -> Self {
        Self {
            count: sample.count(),
            mean: sample.typical(|block| block.mean),
            p50: sample.at(50.0),
            p90: sample.at(90.0),
            p99: sample.at(99.0),
            p999: sample.at(99.9),
            max: sample.max(),
        }
    }
}

impl Line {
    /// Of what a row came to, beside the baseline.
    pub fn of(row: &Row, writes: bool, measured: &Measured, baseline: Option<&Measured>) -> Self {
        let sample = if writes { &measured.writes } else { &measured.reads };
        let rates: Vec<f64> =
            sample.blocks.iter().map(|block| block.rate).filter(|rate| *rate > 0.0).collect();
        let speeds = baseline.map(|other| {
            let other = if writes { &other.writes } else { &other.reads };
            sample.ratios_to(other, |block| block.rate)
        });
        let reads = &measured.reads;
        let durability = row.durability;
        Self {
            row: row.word.to_owned(),
            name: row.name.to_owned(),
            after_power_loss: durability.word,
            durability: durability.sentence,
            rate: Spread::of(&rates),
            speed: Spread::of(&speeds.unwrap_or_default()),
            latency: Latency::of(sample),
            reads: (writes && reads.count() > 0)
                .then(|| (reads.typical(|block| block.rate), Latency::of(reads))),
            cpu_us: (!measured.cpu.is_empty()).then(|| median(&measured.cpu)),
            cost: None,
            calls: None,
            failures: measured.failures,
            slowest: slowest(&measured.shares),
        }
    }

    /// With its cost at the device; `journal` if the file system's is told apart there.
    pub fn with_cost(mut self, measured: &Measured, source: Source, journal: bool) -> Self {
        let blocks: Vec<_> = measured.written.iter().filter(|(commits, _)| *commits > 0).collect();
        if blocks.is_empty() {
            return self;
        }
        // Of a device of one's own every write counts; of a shared one the middle block does.
        let total: u64 = blocks.iter().map(|(commits, _)| commits).sum();
        let figure = |of: &dyn Fn(&crate::interleave::Written) -> u64| match source {
            Source::OwnDevice => per(blocks.iter().map(|(_, written)| of(written)).sum(), total),
            _ => median(
                &blocks
                    .iter()
                    .map(|(commits, written)| per(of(written), *commits))
                    .collect::<Vec<_>>(),
            ),
        };
        let kib = 1024.0;
        self.cost = Some(Cost {
            flushes: figure(&|written| written.during.flushes),
            writes: (source != Source::Calls).then(|| figure(&|written| written.during.writes)),
            kib: figure(&|written| written.during.bytes) / kib,
            later_kib: figure(&|written| written.later.bytes) / kib,
            journal_kib: journal.then(|| {
                figure(&|written| written.during.journal_bytes + written.later.journal_bytes) / kib
            }),
        });
        self
    }
}

/// The least as a share of the most.
fn slowest(shares: &[u64]) -> Option<f64> {
    let (least, most) = (shares.iter().min()?, shares.iter().max()?);
    (shares.len() > 1).then(|| per(*least, *most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_the_middle_and_the_quarters() {
        let spread = Spread::of(&[5.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!(spread, Spread { median: 3.0, low: 2.0, high: 4.0, best: 5.0 });
        assert_eq!(Spread::of(&[]), Spread::default());
        assert_eq!(Spread::of(&[7.0]), Spread { median: 7.0, low: 7.0, high: 7.0, best: 7.0 });
    }
}
