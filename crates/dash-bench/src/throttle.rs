//! Virtual disks throttle after some ten thousand flushes: every write then takes milliseconds,
//! whoever asks. (On a busy machine the same is seen of the scheduler: see `priority.rs`.) A
//! raw write with a flush, now and then, tells; figures from such a time are worth nothing.

use std::cell::Cell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use crate::failure::{Explain, Result};
use crate::interrupt;
use crate::numbers::{float, nanos};
use crate::progress::Progress;
use crate::volume::Volume;

/// A write with a flush that takes longer, in microseconds, is one of a throttled disk; unless the
/// disk is that slow when it is first asked: then several times what it took.
const SLOW: f64 = 2_500.0;
/// So many times.
const SEVERAL: f64 = 4.0;
/// Writes of a probe; the middle one counts.
const WRITES: usize = 5;
/// How long to leave the disk alone before it is asked again.
const PAUSE: Duration = Duration::from_secs(15);

/// Watches the disk of one volume.
pub struct Throttle {
    /// None where there is no disk.
    file: Option<File>,
    slow: f64,
    /// How much longer it may be waited for.
    patience: Cell<Duration>,
}

impl Throttle {
    /// Watches, and waits for the disk so long in all; after that its figures are taken as they
    /// are.
    pub fn new(volume: &Volume, patience: Duration) -> Result<Self> {
        let file = if volume.in_memory { None } else { Some(volume.scratch_file()?) };
        let mut made = Self { file, slow: SLOW, patience: Cell::new(patience) };
        made.probe()?;
        made.slow = SLOW.max(SEVERAL * made.probe()?);
        Ok(made)
    }

    /// Whether the disk throttles now. If so this comes back when it no longer does.
    pub fn was_on(&self, progress: &Progress) -> Result<bool> {
        if self.patience.get().is_zero() || self.probe()? < self.slow {
            return Ok(false);
        }
        progress.say(
            "the disk or the machine is much slower now than before: this round is void, waiting",
        );
        while !self.patience.get().is_zero() {
            let pause = PAUSE.min(self.patience.get());
            self.patience.set(self.patience.get() - pause);
            rest(pause)?;
            if self.probe()? < self.slow {
                return Ok(true);
            }
        }
        progress.say(
            "it stays slow: from here on the figures are of a throttled disk or a busy machine",
        );
        Ok(true)
    }

    /// Whether it was given up: figures are of a throttled disk.
    pub fn gave_up(&self) -> bool {
        self.patience.get().is_zero()
    }

    /// Microseconds of a write with a flush.
    fn probe(&self) -> Result<f64> {
        let Some(file) = &self.file else { return Ok(0.0) };
        let mut times = Vec::new();
        for round in 0..WRITES {
            let begun = Instant::now();
            let byte = u8::try_from(round).unwrap_or(0);
            let written = file.write_all_at(&[byte; 4096], 0).and_then(|()| file.sync_data());
            written.explain("writing a probe")?;
            times.push(float(nanos(begun.elapsed())) / 1000.0);
        }
        Ok(crate::numbers::median(&times))
    }
}

fn rest(time: Duration) -> Result<()> {
    let begun = Instant::now();
    while begun.elapsed() < time {
        interrupt::check()?;
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}
