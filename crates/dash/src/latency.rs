//! How long things took, on one connection: what `dash_latency` shows.
//!
//! Reading the clock twice and counting costs well under a microsecond a commit. Reads are timed
//! only when asked for (`PRAGMA dash_time_reads=on`): a page from the page cache takes less than
//! that.

use std::time::{Duration, Instant};

use dash_engine::memory::headroom;
use dash_ffi::{Row, Value};
use hdrhistogram::Histogram;

/// What is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// From SQLite's request to prepare until the commit was published.
    Commit,
    /// The flush of a commit.
    Flush,
    /// From the first failed attempt to get a lock until it was got.
    LockWait,
    /// One read of a page.
    Read,
}

impl Op {
    /// All, in the order of the table.
    pub const ALL: [Self; 4] = [Self::Commit, Self::Flush, Self::LockWait, Self::Read];

    /// The name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Flush => "flush",
            Self::LockWait => "lock_wait",
            Self::Read => "read",
        }
    }
}

/// What `PRAGMA dash_time_reads` says, or a message with what it may say.
pub fn times_reads(value: &str) -> Result<bool, String> {
    match value.to_ascii_lowercase().as_str() {
        "on" | "1" | "true" | "yes" => Ok(true),
        "off" | "0" | "false" | "no" => Ok(false),
        _ => Err(format!("no such dash_time_reads: {value}; there are on, off")),
    }
}

/// Histograms in nanoseconds, two significant digits; none until there is a first value.
#[derive(Default)]
pub struct Latencies([Option<Histogram<u64>>; 4]);

/// Bytes that a histogram takes at most.
const GROWN: usize = 128 << 10;

impl Latencies {
    /// Counts what took from `since` until now.
    pub fn record(&mut self, op: Op, since: Instant) {
        self.count(op, since.elapsed());
    }

    fn count(&mut self, op: Op, time: Duration) {
        let Some(place) =
            Op::ALL.iter().position(|known| *known == op).and_then(|at| self.0.get_mut(at))
        else {
            return;
        };
        if place.is_none() {
            *place = Histogram::new(2).ok();
        }
        if let Some(histogram) = place {
            // The histogram grows by itself, up to 146 years.
            let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).min(u64::MAX / 4);
            // What there is no memory to count is not counted.
            if nanos <= histogram.high() || headroom(GROWN).is_ok() {
                let _ = histogram.record(nanos);
            }
        }
    }

    /// What was timed so far, as `dash_latency` has it.
    pub fn rows(&self) -> Vec<Row> {
        // No more digits than what was timed has.
        let micros = |nanos: u64| (Duration::from_nanos(nanos).as_secs_f64() * 1e7).round() / 10.0;
        Op::ALL
            .into_iter()
            .zip(&self.0)
            .filter_map(|(op, histogram)| {
                let histogram = histogram.as_ref()?;
                let at = |percentile| micros(histogram.value_at_percentile(percentile));
                let times = [at(50.0), at(90.0), at(99.0), at(99.9), micros(histogram.max())];
                let count = i64::try_from(histogram.len()).unwrap_or(i64::MAX);
                let first = [op.name().into(), count.into()].into_iter();
                Some(first.chain(times.map(Value::Real)).collect())
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_a_hundredth() {
        let mut latencies = Latencies::default();
        for micros in 1..=1000 {
            latencies.count(Op::Commit, Duration::from_micros(micros));
        }
        let rows = latencies.rows();
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0][..2], ["commit".into(), 1000.into()]);
        for (time, expected) in rows[0][2..].iter().zip([500.0, 900.0, 990.0, 999.0, 1000.0]) {
            let Value::Real(time) = time else { panic!("{time:?}") };
            assert!((time - expected).abs() <= expected / 50.0, "{time} {expected}");
        }
    }
}
