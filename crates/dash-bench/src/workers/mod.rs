//! Connections that work at the same time: threads of this process, or processes of their own.

mod process;
mod thread;
mod worker;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

use crate::failure::{Failure, Result};
use crate::interleave::Timed;
use crate::numbers::nanos;
use crate::row::Row;
use crate::workload::{Session, Settings, Step, Workload};
pub use process::Killable;
use process::Process;
use thread::Thread;
pub use worker::{Arguments, run};

/// How many, and of what kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workers {
    /// One connection, on the measuring thread itself.
    Alone,
    /// Threads.
    Threads(usize),
    /// Processes.
    Processes(usize),
}

impl Workers {
    /// How many connections.
    pub fn of(self) -> usize {
        match self {
            Self::Alone => 1,
            Self::Threads(number) | Self::Processes(number) => number,
        }
    }
}

/// What a worker is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// So many steps.
    Steps(usize),
    /// Steps for so long.
    Time(Duration),
}

/// A worker, as the measuring thread holds it.
trait Handle {
    /// Tells it to begin.
    fn order(&mut self, order: Order) -> Result<()>;

    /// Waits until it is done.
    fn result(&mut self) -> Result<Timed>;
}

/// All workers.
pub struct Handles(Vec<Box<dyn Handle>>);

impl Handles {
    /// Opens the connections, one after the other.
    pub fn start(
        workers: Workers,
        workload: &Arc<dyn Workload>,
        settings: &Settings,
        row: &'static Row,
        path: &Path,
    ) -> Result<Self> {
        let of = workers.of();
        let handle = |index| -> Result<Box<dyn Handle>> {
            Ok(match workers {
                Workers::Processes(_) => Box::new(Process::start(settings, row, path, index, of)?),
                _ => Box::new(Thread::start(workload.clone(), row, path, index, of)?),
            })
        };
        Ok(Self((0..of).map(handle).collect::<Result<_>>()?))
    }

    /// All do as they are told, at the same time.
    pub fn run(&mut self, order: Order) -> Result<Timed> {
        let begun = Instant::now();
        self.0.iter_mut().try_for_each(|handle| handle.order(order))?;
        let mut all = Timed::default();
        for handle in &mut self.0 {
            let one = handle.result()?;
            let did = crate::numbers::count(one.writes.len());
            all.writes.extend(one.writes);
            all.reads.extend(one.reads);
            all.failures += one.failures;
            all.shares.push(did);
        }
        all.elapsed = nanos(begun.elapsed());
        Ok(all)
    }
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
fn gone() -> Failure {
    Failure::new("one of the connections that work at the same time ended unasked")
}
