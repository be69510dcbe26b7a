//! Virtual disks throttle after some ten thousand flushes: every write then takes milliseconds, whoever
//! asks. (On a busy machine the same is seen of the scheduler: see [`crate::priority`].)
//! A raw write with a flush, now and then, tells; figures from such a time are worth nothing.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use crate::failure::{Explain, Failure, Result};
use crate::interrupt;
use crate::numbers::{float, nanos};
use crate::place::Place;
use crate::progress::Progress;

/// A write with a flush that takes longer, in microseconds, is one of a throttled disk.
const SLOW: f64 = 2_500.0;
/// Writes of a probe; the middle one counts.
const WRITES: usize = 5;
/// How long to leave the disk alone before it is asked again.
const PAUSE: Duration = Duration::from_secs(15);
/// How often in a row.
const PAUSES_MAX: u32 = 24;

/// Watches the disk of one place.
pub struct Throttle {
    /// None where there is no disk.
    file: Option<File>,
}

impl Throttle {
    /// Watches.
    pub fn new(place: &Place) -> Result<Self> {
        let file = if place.in_memory { None } else { Some(place.scratch_file()?) };
        Ok(Self { file })
    }

    /// Whether the disk throttles now. If so this comes back when it no longer does.
    pub fn was_on(&self, progress: &Progress) -> Result<bool> {
        if self.probe()? < SLOW {
            return Ok(false);
        }
        progress.say("the disk or the machine is too slow now (over 2.5 ms a flushed write): this round is void, waiting");
        for _ in 0..PAUSES_MAX {
            rest(PAUSE)?;
            if self.probe()? < SLOW {
                return Ok(true);
            }
        }
        Err(Failure::new(
            "the disk throttles, or the machine is busy, and it does not end: nothing can be measured now",
        ))
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
