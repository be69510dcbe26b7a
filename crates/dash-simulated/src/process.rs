//! A process: one family of handles that is killed together.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::fault::{Effect, Fault};
use crate::journal::Operation;
use crate::machine::Machine;
use crate::state::State;

/// The storage of one process of a [`Machine`]; clones are the same process.
#[derive(Clone)]
pub struct Simulated {
    pub(crate) machine: Machine,
    pub(crate) process: u32,
    pub(crate) dead: Arc<AtomicBool>,
}

impl Simulated {
    /// The machine that the process runs on.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// One operation of this process.
    pub(crate) fn operate<T>(
        &self,
        operation: Operation,
        act: impl FnOnce(&mut State) -> io::Result<T>,
    ) -> io::Result<T> {
        self.machine.operate(self.process, operation, |state, _| act(state))
    }
}

impl Machine {
    /// The storage of a new process.
    #[must_use]
    pub fn process(&self) -> Simulated {
        let process = self.state().new_process();
        Simulated { machine: self.clone(), process, dead: Arc::default() }
    }

    /// Kills a process: its descriptors and locks vanish, what it wrote stays in the cache. What
    /// it calls later fails with EIO.
    pub fn kill(&self, process: &Simulated) {
        process.dead.store(true, Ordering::Relaxed);
        self.state().kill(process.process);
    }

    /// Kills a process as soon as its next operation is done, or the one that is watched right now:
    /// it happened, and nobody was told.
    pub fn kill_after(&self, process: &Simulated) {
        self.kill_later(process.process, Arc::clone(&process.dead));
    }

    /// Kills a process within its next operation, or the one that is watched right now: `len` bytes
    /// of a write happened, and nothing of anything else. Linux looks for a deadly signal between
    /// two pages of its cache.
    pub fn kill_within(&self, process: &Simulated, len: usize) {
        self.fail(Fault::new(Effect::ShortWrite(len, libc::EINTR)));
        self.kill_after(process);
    }
}
