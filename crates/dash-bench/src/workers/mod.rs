//! Connections that work at the same time: threads of this process, or processes of their own.

mod order;
mod process;
mod thread;
mod worker;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use crate::failure::Result;
use crate::interleave::Timed;
use crate::numbers::nanos;
use crate::row::Row;
use crate::workload::{Settings, Workload};
use order::Handle;
pub use order::{Order, work};
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
