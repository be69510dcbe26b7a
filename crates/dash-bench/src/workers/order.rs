//! What a worker is told, and how it does that.

use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

use crate::failure::{Failure, Result};
use crate::interleave::Timed;
use crate::numbers::nanos;
use crate::workload::{Session, Step};

/// What a worker is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// So many steps.
    Steps(usize),
    /// Steps for so long.
    Time(Duration),
}

/// A worker, as the measuring thread holds it.
pub(super) trait Handle {
    /// Tells it to begin.
    fn order(&mut self, order: Order) -> Result<()>;

    /// Waits until it is done.
    fn result(&mut self) -> Result<Timed>;
}

/// Carries an order out, every step timed.
pub fn work(session: &mut dyn Session, order: Order) -> Result<Timed> {
    let (steps, time) = match order {
        Order::Steps(steps) => (steps, Duration::MAX),
        Order::Time(time) => (usize::MAX, time),
    };
    let mut timed = Timed::default();
    if order == Order::Steps(steps) {
        timed.writes.reserve(steps);
    }
    let failures = session.failures();
    let cpu = cpu();
    let all = Instant::now();
    let mut begun = all;
    for _ in 0..steps {
        let step = session.step()?;
        let now = Instant::now();
        let took = nanos(now - begun);
        match step {
            Step::Wrote => timed.writes.push(took),
            Step::Read => timed.reads.push(took),
            Step::Failed => {}
            Step::End => break,
        }
        if now - all >= time {
            break;
        }
        begun = now;
    }
    timed.elapsed = nanos(all.elapsed());
    timed.cpu = cpu.zip(self::cpu()).map(|(before, after)| after.saturating_sub(before));
    timed.failures = session.failures() - failures;
    Ok(timed)
}

/// Processor time of this process so far, in nanoseconds.
fn cpu() -> Option<u64> {
    let time = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).ok()?;
    Some(nanos(Duration::from(time)))
}

/// What is said of a worker that is gone.
pub(super) fn gone() -> Failure {
    Failure::new("one of the connections that work at the same time ended unasked")
}
