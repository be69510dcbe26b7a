//! Interleaving: every side runs a block, in an order that turns from round to round, so that a slow
//! moment of a shared machine hits all of them; ratios are taken within a round.
//!
//! A round in which the disk throttled ([`crate::throttle`]) is thrown away, and repeated after a pause.

use std::time::Instant;

use crate::failure::Result;
use crate::numbers::{count, nanos};
use crate::place::Place;
use crate::progress::Progress;
use crate::sample::Sample;
use crate::throttle::Throttle;

/// One side.
pub struct Lane<'a> {
    /// Its name.
    pub name: String,
    /// Brings it into position before each block, off the clock.
    pub before: Box<dyn FnMut() -> Result<()> + 'a>,
    /// One operation.
    pub step: Box<dyn FnMut() -> Result<()> + 'a>,
    /// One block of this lane is one of so many of the others' size: what writes much has a smaller share.
    pub divisor: usize,
}

impl<'a> Lane<'a> {
    /// A lane that needs no preparation.
    pub fn new(name: impl Into<String>, step: impl FnMut() -> Result<()> + 'a) -> Self {
        Self { name: name.into(), before: Box::new(|| Ok(())), step: Box::new(step), divisor: 1 }
    }

    /// Before each block, off the clock.
    pub fn before(mut self, before: impl FnMut() -> Result<()> + 'a) -> Self {
        self.before = Box::new(before);
        self
    }

    /// With blocks of a smaller size.
    pub fn divided_by(mut self, divisor: usize) -> Self {
        self.divisor = divisor;
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

/// Runs `rounds` rounds of blocks of `size` operations on every lane; the disk of `place`, if there is
/// one to watch, must not throttle meanwhile.
pub fn run(
    what: &str,
    place: Option<&Place>,
    lanes: &mut [Lane<'_>],
    rounds: usize,
    size: usize,
) -> Result<Vec<Sample>> {
    let mut samples = lanes.iter().map(|_| Sample::new()).collect::<Result<Vec<_>>>()?;
    let mut progress = Progress::new(what, count(rounds * lanes.len()));
    let throttle = place.map(Throttle::new).transpose()?;
    let mut round = 0;
    while round < rounds {
        let mut void = false;
        let mut blocks: Vec<Vec<u64>> = vec![Vec::new(); lanes.len()];
        for turn in 0..lanes.len() {
            // Odd rounds run backwards: nobody always comes after the same one.
            let turn = if round % 2 == 0 { turn } else { lanes.len() - 1 - turn };
            let at = (turn + round / 2) % lanes.len();
            blocks[at] = lanes[at].block((size / lanes[at].divisor).max(1))?;
            progress.step(0)?;
            if let Some(throttle) = &throttle
                && throttle.was_on(&progress)?
            {
                void = true;
                break;
            }
        }
        if void {
            continue;
        }
        for (sample, block) in samples.iter_mut().zip(&blocks) {
            sample.add(block);
        }
        round += 1;
        progress.step(count(lanes.len()))?;
    }
    Ok(samples)
}
