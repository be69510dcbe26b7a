//! The header of every report: figures without the machine they were measured on mean nothing.

use serde::Serialize;

use crate::extension::Extension;
use crate::failure::Result;
use crate::sample::Sample;
use crate::volume::Volume;
use crate::{direct, machine, overhead};

/// Flushes whose middle is stated.
const FLUSHES: usize = 200;

/// The header.
#[derive(Debug, Clone, Serialize)]
pub struct Header {
    /// Processor, memory, kernel, load.
    pub machine: Vec<String>,
    /// dash and SQLite.
    pub versions: String,
    /// File system, device, its cache.
    pub place: String,
    /// Whether that is written past the page cache: not every file system has direct I/O.
    pub direct: bool,
    /// Microseconds of a 4 KiB overwrite with a flush, half of them faster.
    pub flush_p50_us: f64,
    /// One in a hundred slower.
    pub flush_p99_us: f64,
    /// Microseconds that the bench itself adds to an operation.
    pub overhead_us: f64,
    /// Whether the measuring thread goes before others.
    pub real_time: bool,
}

impl Header {
    /// Of a volume.
    pub fn of(volume: &Volume, extension: &Extension, real_time: bool) -> Result<Self> {
        let folder = volume.folder("head")?;
        let mut limit = direct::Direct::new(&folder.path().join("flush"))?;
        let mut sample = Sample::new()?;
        let times = (0..FLUSHES)
            .map(|_| {
                let begun = std::time::Instant::now();
                limit.step().map(|()| crate::numbers::nanos(begun.elapsed()))
            })
            .collect::<Result<Vec<_>>>()?;
        sample.add(&times);
        Ok(Self {
            machine: machine::lines(),
            versions: format!("dash {}, SQLite {}", extension.version(), rusqlite::version()),
            place: format!("{}: {}", volume.label, volume.what),
            direct: limit.is_direct,
            flush_p50_us: sample.at(50.0),
            flush_p99_us: sample.at(99.0),
            overhead_us: overhead::micros()?,
            real_time,
        })
    }

    /// As lines of text.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = self.machine.clone();
        lines.push(self.versions.clone());
        lines.push(self.place.clone());
        lines.push(format!(
            "a flushed 4 KiB {} overwrite: p50 {:.0} us, p99 {:.0} us; the bench itself adds {:.2} us to an operation",
            if self.direct { "direct" } else { "buffered (no direct I/O here)" },
            self.flush_p50_us, self.flush_p99_us, self.overhead_us
        ));
        if !self.real_time {
            lines.push(
                "no real-time priority: others' load on the processors is in the figures".into(),
            );
        }
        lines
    }
}
