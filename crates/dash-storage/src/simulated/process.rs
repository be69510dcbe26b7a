//! A process: one family of handles that is killed together.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::directory::Directory;
use super::file::File;
use super::journal::{Operation, OperationKind};
use super::machine::Machine;
use crate::Storage;

/// The storage of one process of a [`Machine`]; clones are the same process.
#[derive(Clone)]
pub struct Simulated {
    pub(super) machine: Machine,
    pub(super) process: u32,
    pub(super) dead: Arc<AtomicBool>,
}

impl Simulated {
    /// The machine that the process runs on.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// One operation of this process.
    pub(super) fn operate<T>(
        &self,
        operation: Operation,
        act: impl FnOnce(&mut super::state::State) -> io::Result<T>,
    ) -> io::Result<T> {
        self.machine.operate(self.process, operation, |state, _| act(state))
    }
}

impl Storage for Simulated {
    type Directory = Directory;
    type File = File;

    /// Relative paths, and the empty one, begin at the root, too.
    fn open_directory(&self, path: &Path) -> io::Result<Directory> {
        let operation = Operation::new(OperationKind::OpenDirectory, 0).names(&[path.as_os_str()]);
        self.operate(operation, |state| {
            let key = state.resolve(path)?;
            state.names(key)?;
            let number = state.inode(key)?.number;
            Ok(Directory { process: self.clone(), key, number })
        })
    }

    fn random(&self) -> u64 {
        self.machine.random()
    }

    /// Time passes at once; other threads get a chance.
    fn sleep(&self, time: Duration) {
        self.machine.pass(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        std::thread::yield_now();
    }

    fn monotonic_nanos(&self) -> u64 {
        self.machine.now()
    }
}
