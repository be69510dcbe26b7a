//! Latencies: a histogram of everything, and the mean and percentiles of every block, because
//! ratios are taken block by block.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::failure::{Explain, Result};
use crate::numbers::{count, float, median, nanos, per};

/// What one lane measured.
pub struct Sample {
    all: Histogram<u64>,
    /// Per block.
    pub blocks: Vec<Block>,
}

/// A block of operations, in microseconds.
#[derive(Debug, Clone, Copy)]
pub struct Block {
    /// Time of the block divided by its operations.
    pub mean: f64,
    /// Half were faster.
    pub p50: f64,
    /// One in a thousand was slower.
    pub p999: f64,
    /// Operations a second.
    pub rate: f64,
}

impl Block {
    /// Of the times of operations that may have run side by side, all within `elapsed` nanoseconds.
    fn within(times: &[u64], elapsed: u64) -> Self {
        let mut sorted = times.to_vec();
        sorted.sort_unstable();
        let at = |thousandth: usize| {
            let rank = (sorted.len() * thousandth).div_ceil(1000).max(1) - 1;
            sorted.get(rank).map_or(0.0, |nanos| float(*nanos) / 1000.0)
        };
        let total: u64 = times.iter().sum();
        let mean = float(total) / 1000.0 / float(count(times.len()).max(1));
        let rate = per(count(times.len()), elapsed) * 1e9;
        Self { mean, p50: at(500), p999: at(999), rate }
    }
}

impl Sample {
    /// With nothing in it.
    pub fn new() -> Result<Self> {
        let all = Histogram::new_with_bounds(1, nanos(Duration::from_secs(60)), 3)
            .explain("making a histogram")?;
        Ok(Self { all, blocks: Vec::new() })
    }

    /// Adds a block of times in nanoseconds.
    pub fn add(&mut self, times: &[u64]) {
        self.add_within(times, times.iter().sum());
    }

    /// Adds a block of operations that ran within `elapsed` nanoseconds.
    pub fn add_within(&mut self, times: &[u64], elapsed: u64) {
        for time in times {
            self.all.saturating_record(*time);
        }
        self.blocks.push(Block::within(times, elapsed));
    }

    /// A percentile of everything, in microseconds.
    pub fn at(&self, percentile: f64) -> f64 {
        float(self.all.value_at_percentile(percentile)) / 1000.0
    }

    /// The longest, in microseconds.
    pub fn max(&self) -> f64 {
        float(self.all.max()) / 1000.0
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.all.len()
    }

    /// The median over blocks of `figure`.
    pub fn typical(&self, figure: fn(&Block) -> f64) -> f64 {
        let blocks = self.blocks.iter().filter(|block| block.rate > 0.0);
        median(&blocks.map(figure).collect::<Vec<_>>())
    }

    /// The median over rounds of `figure` here divided by `figure` of `other` in the same round.
    pub fn ratio_to(&self, other: &Self, figure: fn(&Block) -> f64) -> f64 {
        median(&self.ratios_to(other, figure))
    }

    /// The ratios of [`Self::ratio_to`], one a round.
    pub fn ratios_to(&self, other: &Self, figure: fn(&Block) -> f64) -> Vec<f64> {
        let pairs = self.blocks.iter().zip(&other.blocks);
        // A block in which nothing of the kind happened compares with nothing.
        let pairs = pairs.filter(|(mine, theirs)| mine.rate > 0.0 && theirs.rate > 0.0);
        pairs.map(|(mine, theirs)| figure(mine) / figure(theirs).max(f64::MIN_POSITIVE)).collect()
    }

    /// `p50 a, p99 b, p99.9 c, max d us`.
    pub fn describe(&self) -> String {
        format!(
            "p50 {:.0}, p99 {:.0}, p99.9 {:.0}, max {:.0} us; block mean {:.0} us; n {}",
            self.at(50.0),
            self.at(99.0),
            self.at(99.9),
            self.max(),
            self.typical(|block| block.mean),
            self.count()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_the_percentiles_of_its_times() {
        let times: Vec<u64> = (1..=1000).map(|n| n * 1000).collect();
        let block = Block::within(&times, times.iter().sum());
        assert!((block.p50 - 500.0).abs() < 1e-9);
        assert!((block.p999 - 999.0).abs() < 1e-9);
        assert!((block.mean - 500.5).abs() < 1e-9);
        assert!((block.rate - 1e6 / 500.5).abs() < 1e-6);
    }
}
