//! What the bench itself costs per operation: reading the clock, keeping the time, the histogram.
//! It is measured where it is stated.

use std::time::Instant;

use crate::failure::Result;
use crate::numbers::{count, float, nanos};
use crate::sample::Sample;
use crate::workers::{Order, work};
use crate::workload::{Session, Step};

/// Operations of a block.
const STEPS: usize = 20_000;
/// Blocks; the fastest counts least disturbed.
const BLOCKS: usize = 5;

/// An operation that is none.
struct Nothing;

impl Session for Nothing {
    fn step(&mut self) -> Result<Step> {
        Ok(std::hint::black_box(Step::Wrote))
    }
}

/// Microseconds per operation.
pub fn micros() -> Result<f64> {
    let mut sample = Sample::new()?;
    let mut each = Vec::new();
    for _ in 0..BLOCKS {
        let begun = Instant::now();
        let timed = work(&mut Nothing, Order::Steps(STEPS))?;
        sample.add_within(&timed.writes, timed.elapsed);
        each.push(float(nanos(begun.elapsed())) / 1000.0 / float(count(STEPS)));
    }
    Ok(crate::numbers::median(&each))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_bench_costs_something_and_says_so() {
        let micros = super::micros().expect("measured");
        assert!(micros > 0.0 && micros.is_finite());
    }
}
