//! What may be on the disk after a power cut: everything up to a flush, and of what was written
//! after it, up to the next one, any part. While there are few parts all subsets are tried, else
//! some; then with writes torn into blocks of 4 KiB or sectors of 512 bytes, of which any may be
//! missing.

use fastrand::Rng;

use super::blocks::{BLOCK, Blocks, Delta};
use super::journal::{self, Nonce};
use super::kind::Kind;
use super::log::{Event, Recorded};

/// Bytes that a disk writes wholly or not at all.
const SECTOR: usize = 512;

/// The writes between two flushes.
#[derive(Debug, Clone)]
pub struct Window {
    /// Events of the log, from the first write on.
    pub events: std::ops::Range<usize>,
}

/// The windows of a log, from one event on; the last may end without a flush.
pub fn windows(recorded: &Recorded, from: usize) -> Vec<Window> {
    let mut windows = Vec::new();
    let mut begin = from;
    for (number, event) in recorded.events.iter().enumerate().skip(from) {
        if *event == Event::Flush {
            windows.push(Window { events: begin..number });
            begin = number + 1;
        }
    }
    windows.push(Window { events: begin..recorded.events.len() });
    windows
}

/// Which parts of a window are on the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Choice {
    /// By the write.
    Writes(Vec<bool>),
    /// One is torn into units of so many bytes; the others by the write.
    Torn { writes: Vec<bool>, torn: usize, unit: usize, seed: u64 },
}

/// The images of one window, without end: first nothing and all of it, then other subsets, then
/// anything.
#[derive(Debug)]
pub struct Cuts<'a> {
    recorded: &'a Recorded,
    window: Window,
    kind: Kind,
    number: u64,
    order: u64,
}

impl<'a> Cuts<'a> {
    /// Of one window.
    pub fn new(recorded: &'a Recorded, window: &Window, kind: Kind, rng: &mut Rng) -> Self {
        Self { recorded, window: window.clone(), kind, number: 0, order: rng.u64(..) }
    }

    /// How many writes there are.
    pub fn writes(&self) -> usize {
        self.window.events.len()
    }

    /// The next image: what it differs in from `base`. All up to the window is in `base` and
    /// `before`.
    pub fn next(&mut self, base: &Blocks, before: &Delta, rng: &mut Rng) -> Delta {
        let number = self.number;
        self.number += 1;
        let choice = self.choice(number, rng);
        let mut delta = before.clone();
        self.choose(base, &mut delta, &choice);
        delta
    }

    /// All of it.
    pub fn all(&self, base: &Blocks) -> Delta {
        let mut delta = Delta::default();
        self.choose(base, &mut delta, &Choice::Writes(vec![true; self.writes()]));
        delta
    }

    /// The journals that begin in the window: all of a transaction before is on the disk by then.
    pub fn journals_begun(&self) -> Vec<Nonce> {
        let writes = self.recorded.events[self.window.events.clone()].iter();
        writes
            .flat_map(|event| self.recorded.bytes(*event).chunks(BLOCK))
            .filter_map(journal::begun)
            .collect()
    }

    fn choice(&self, number: u64, rng: &mut Rng) -> Choice {
        let writes = self.writes();
        let mask = |bits: u64| Choice::Writes((0..writes).map(|n| bits >> n & 1 == 1).collect());
        match number {
            0 => return Choice::Writes(vec![false; writes]),
            1 => return Choice::Writes(vec![true; writes]),
            // All subsets, in an order of this window's own: the factor is odd.
            _ if writes <= 10 && number < (1 << writes) + 2 => {
                return mask(number.wrapping_mul(self.order | 1).wrapping_add(self.order >> 32));
            }
            _ => {}
        }
        let share = [0.1, 0.5, 0.9][rng.usize(..3)];
        let chosen: Vec<bool> = (0..writes).map(|_| rng.f64() < share).collect();
        if writes > 0 && (writes <= 10 || rng.bool()) {
            let unit = if rng.bool() { SECTOR } else { BLOCK };
            return Choice::Torn {
                writes: chosen,
                torn: rng.usize(..writes),
                unit,
                seed: rng.u64(..),
            };
        }
        Choice::Writes(chosen)
    }

    fn choose(&self, base: &Blocks, delta: &mut Delta, choice: &Choice) {
        let (Choice::Writes(chosen) | Choice::Torn { writes: chosen, .. }) = choice;
        for (number, event) in self.recorded.events[self.window.events.clone()].iter().enumerate() {
            let Event::Write { place, .. } = *event else { continue };
            let bytes = self.recorded.bytes(*event);
            match choice {
                Choice::Torn { torn, unit, seed, .. } if *torn == number => {
                    self.tear(base, delta, place, bytes, *unit, &mut Rng::with_seed(*seed));
                }
                _ if chosen[number] => delta.write(base, place, bytes),
                _ => {}
            }
        }
    }

    fn tear(
        &self,
        base: &Blocks,
        delta: &mut Delta,
        mut place: u64,
        mut bytes: &[u8],
        unit: usize,
        rng: &mut Rng,
    ) {
        while !bytes.is_empty() {
            let unit = match self.kind.is_atomic(place / BLOCK as u64) {
                true => BLOCK,
                false => unit,
            };
            #[expect(clippy::cast_possible_truncation, reason = "below the size of a block")]
            let length = bytes.len().min(unit - (place % unit as u64) as usize);
            if rng.bool() {
                delta.write(base, place, &bytes[..length]);
            }
            place += length as u64;
            bytes = &bytes[length..];
        }
    }
}
