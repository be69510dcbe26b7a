//! Interleaving: every side runs a block, in an order that turns from round to round, so that a
//! slow moment of a shared machine hits all of them; ratios are taken within a round.
//!
//! A round in which the disk throttled ([`crate::throttle`]) is thrown away, and repeated after a
//! pause.

use std::time::{Duration, Instant};

use crate::device::Counts;
use crate::failure::Result;
use crate::numbers::{count, nanos, per};
use crate::progress::{Progress, Unit};
use crate::sample::Sample;
use crate::throttle::Throttle;
use crate::volume::Volume;

/// What a block took, in nanoseconds.
#[derive(Debug, Clone, Default)]
pub struct Timed {
    /// Each transaction that wrote.
    pub writes: Vec<u64>,
    /// Each that only read.
    pub reads: Vec<u64>,
    /// From the first one's begin to the last one's end; the sum where one follows the other.
    pub elapsed: u64,
    /// Statements that failed.
    pub failures: u64,
    /// How many each of several connections wrote.
    pub shares: Vec<u64>,
    /// Processor time of this process, its own and the kernel's for it; none where others work
    /// beside.
    pub cpu: Option<u64>,
}

/// Runs a block of so many operations.
type Block<'a> = Box<dyn FnMut(usize) -> Result<Timed> + 'a>;

/// One side.
pub struct Lane<'a> {
    /// Its name.
    pub name: String,
    /// Brings it into position before each block, off the clock.
    pub before: Box<dyn FnMut() -> Result<()> + 'a>,
    /// One block.
    block: Block<'a>,
    /// One block of this lane is one of so many of the others' size: what writes much has a smaller
    /// share.
    pub divisor: usize,
    /// What the device was asked to write, if it is watched: before and after a block, and after
    /// everything kept back has been written.
    watch: Option<Watch<'a>>,
}

/// How a lane is counted.
pub struct Watch<'a> {
    /// The device's counts now.
    pub counts: Box<dyn Fn() -> Option<Counts> + 'a>,
    /// Writes out what this lane keeps back.
    pub settle: Box<dyn Fn() -> Result<()> + 'a>,
}

/// What the device was asked to write by a block.
#[derive(Debug, Clone, Copy, Default)]
pub struct Written {
    /// While it ran.
    pub during: Counts,
    /// Afterwards, when it was told to keep nothing back.
    pub later: Counts,
}

/// What a lane came to.
pub struct Measured {
    /// Transactions that wrote.
    pub writes: Sample,
    /// Those that only read.
    pub reads: Sample,
    /// Per block, with how many transactions wrote.
    pub written: Vec<(u64, Written)>,
    /// Processor time of a transaction in microseconds, per block.
    pub cpu: Vec<f64>,
    /// Statements that failed.
    pub failures: u64,
    /// How many transactions each of several connections wrote.
    pub shares: Vec<u64>,
    /// The disk throttled, and did not stop.
    pub throttled: bool,
}

impl<'a> Lane<'a> {
    /// A lane that needs no preparation, and whose every step writes.
    pub fn new(name: impl Into<String>, mut step: impl FnMut() -> Result<()> + 'a) -> Self {
        Self::of_blocks(name, move |size| {
            let mut times = Vec::with_capacity(size);
            for _ in 0..size {
                let begun = Instant::now();
                step()?;
                times.push(nanos(begun.elapsed()));
            }
            let elapsed = times.iter().sum();
            Ok(Timed { writes: times, elapsed, ..Timed::default() })
        })
    }

    /// A lane that times its blocks itself.
    pub fn of_blocks(
        name: impl Into<String>,
        block: impl FnMut(usize) -> Result<Timed> + 'a,
    ) -> Self {
        let before = Box::new(|| Ok(()));
        Self { name: name.into(), before, block: Box::new(block), divisor: 1, watch: None }
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

    /// Counted.
    pub fn watched(mut self, watch: Watch<'a>) -> Self {
        self.watch = Some(watch);
        self
    }

    fn run(&mut self, size: usize) -> Result<(Timed, Option<Written>)> {
        (self.before)()?;
        let Some(watch) = &self.watch else { return Ok(((self.block)(size)?, None)) };
        (watch.settle)()?;
        let before = (watch.counts)();
        let timed = (self.block)(size)?;
        let after = (watch.counts)();
        (watch.settle)()?;
        let settled = (watch.counts)();
        let written = match (before, after, settled) {
            (Some(before), Some(after), Some(settled)) => {
                Some(Written { during: after.since(before), later: settled.since(after) })
            }
            _ => None,
        };
        Ok((timed, written))
    }
}

/// How long to go on.
#[derive(Debug, Clone, Copy)]
pub struct Length {
    /// Rounds.
    pub rounds: usize,
    /// Operations of a block.
    pub size: usize,
    /// No further round is begun after so long, if there were five.
    pub patience: Duration,
}

/// How long to wait, in all, for a disk that throttles.
pub const THROTTLED_MAX: Duration = Duration::from_secs(360);

/// Rounds that there must be for medians to mean something.
const ROUNDS_MIN: usize = 5;

/// Runs rounds of blocks on every lane; the disk of `volume`, if there is one to watch, must not
/// throttle meanwhile.
pub fn measure(
    what: &str,
    volume: Option<&Volume>,
    lanes: &mut [Lane<'_>],
    length: Length,
) -> Result<Vec<Measured>> {
    let mut measured = lanes.iter().map(|_| Measured::new()).collect::<Result<Vec<_>>>()?;
    let mut progress = Progress::new(what, count(length.rounds * lanes.len()), Unit::Count);
    let waiting = THROTTLED_MAX.min(length.patience);
    let throttle = volume.map(|volume| Throttle::new(volume, waiting)).transpose()?;
    let begun = Instant::now();
    let mut round = 0;
    while round < length.rounds && (round < ROUNDS_MIN || begun.elapsed() < length.patience) {
        let mut void = false;
        let mut blocks = vec![(Timed::default(), None); lanes.len()];
        for turn in 0..lanes.len() {
            // Odd rounds run backwards: nobody always comes after the same one.
            let turn = if round % 2 == 0 { turn } else { lanes.len() - 1 - turn };
            let at = (turn + round / 2) % lanes.len();
            blocks[at] = lanes[at].run((length.size / lanes[at].divisor).max(1))?;
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
        for (lane, (timed, written)) in measured.iter_mut().zip(blocks) {
            lane.add(&timed, written);
        }
        round += 1;
        progress.step(count(lanes.len()))?;
    }
    for lane in &mut measured {
        lane.throttled = throttle.as_ref().is_some_and(Throttle::gave_up);
    }
    Ok(measured)
}

impl Measured {
    fn new() -> Result<Self> {
        Ok(Self {
            writes: Sample::new()?,
            reads: Sample::new()?,
            written: Vec::new(),
            cpu: Vec::new(),
            failures: 0,
            shares: Vec::new(),
            throttled: false,
        })
    }

    /// Rounds that count.
    pub fn rounds(&self) -> usize {
        self.writes.blocks.len()
    }

    fn add(&mut self, timed: &Timed, written: Option<Written>) {
        self.writes.add_within(&timed.writes, timed.elapsed);
        self.reads.add_within(&timed.reads, timed.elapsed);
        self.failures += timed.failures;
        self.shares.resize(timed.shares.len(), 0);
        for (all, block) in self.shares.iter_mut().zip(&timed.shares) {
            *all += block;
        }
        let all = count(timed.writes.len() + timed.reads.len());
        self.cpu.extend(timed.cpu.filter(|_| all > 0).map(|cpu| per(cpu, all) / 1000.0));
        self.written.extend(written.map(|written| (count(timed.writes.len()), written)));
    }
}

/// [`measure`] for lanes that only write, without an end to patience.
pub fn run(
    what: &str,
    volume: Option<&Volume>,
    lanes: &mut [Lane<'_>],
    rounds: usize,
    size: usize,
) -> Result<Vec<Sample>> {
    let length = Length { rounds, size, patience: Duration::MAX };
    Ok(measure(what, volume, lanes, length)?.into_iter().map(|lane| lane.writes).collect())
}
