//! Interleaving: every side runs a block, in an order that turns from round to round, so that a slow
//! moment of a shared machine hits all of them; ratios are taken within a round.
//!
//! Virtual disks throttle after some ten thousand flushes: every write then takes 4.0 ms, whoever
//! asks. A round in which that happens is thrown away, and repeated after a pause.

use std::time::{Duration, Instant};

use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::numbers::{count, nanos};
use crate::progress::Progress;
use crate::sample::{Block, Sample};

/// The typical time, in microseconds, by which a throttled disk is known.
const THROTTLED: std::ops::Range<f64> = 3_800.0..4_300.0;
/// How long to leave it alone.
const PAUSE: Duration = Duration::from_secs(60);
/// How often in a row.
const PAUSES_MAX: u32 = 5;

/// One side.
pub struct Lane<'a> {
    /// Its name.
    pub name: String,
    /// Brings it into position before each block, off the clock.
    pub before: Box<dyn FnMut() -> Result<()> + 'a>,
    /// One operation.
    pub step: Box<dyn FnMut() -> Result<()> + 'a>,
}

impl<'a> Lane<'a> {
    /// A lane that needs no preparation.
    pub fn new(name: impl Into<String>, step: impl FnMut() -> Result<()> + 'a) -> Self {
        Self { name: name.into(), before: Box::new(|| Ok(())), step: Box::new(step) }
    }

    /// Before each block, off the clock.
    pub fn before(mut self, before: impl FnMut() -> Result<()> + 'a) -> Self {
        self.before = Box::new(before);
        self
    }

    fn block(&mut self, size: usize) -> Result<Vec<u64>> {
        (self.before)()?;
        let mut times = Vec::with_capacity(size);
        for _ in 0..size {
            let begun = Instant::now();
            (self.step)()?;
            times.push(nanos(begun.elapsed()));
        }
        Ok(times)
    }
}

/// Runs `rounds` rounds of blocks of `size` operations on every lane.
pub fn run(what: &str, lanes: &mut [Lane<'_>], rounds: usize, size: usize) -> Result<Vec<Sample>> {
    let mut samples = lanes.iter().map(|_| Sample::new()).collect::<Result<Vec<_>>>()?;
    let mut progress = Progress::new(what, count(rounds * lanes.len()));
    let mut pauses = 0;
    let mut round = 0;
    while round < rounds {
        let mut blocks: Vec<Vec<u64>> = vec![Vec::new(); lanes.len()];
        let mut throttled = false;
        for turn in 0..lanes.len() {
            // Odd rounds run backwards: nobody always comes after the same one.
            let turn = if round % 2 == 0 { turn } else { lanes.len() - 1 - turn };
            let at = (turn + round / 2) % lanes.len();
            blocks[at] = lanes[at].block(size)?;
            throttled |= size > 1 && THROTTLED.contains(&Block::of(&blocks[at]).p50);
            progress.step(0)?;
        }
        if throttled && pauses < PAUSES_MAX {
            pauses += 1;
            progress.say("the disk throttles (4.0 ms a write): this round is void, waiting a minute");
            rest(PAUSE)?;
            continue;
        }
        if throttled {
            return Err(Failure::new("the disk throttles and does not recover: nothing can be measured on it now"));
        }
        pauses = 0;
        for (sample, block) in samples.iter_mut().zip(&blocks) {
            sample.add(block);
        }
        round += 1;
        progress.step(count(lanes.len()))?;
    }
    Ok(samples)
}

fn rest(time: Duration) -> Result<()> {
    let begun = Instant::now();
    while begun.elapsed() < time {
        interrupt::check()?;
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}
