//! What a process may ask of its machine, as engines ask it.

use std::path::Path;
use std::time::Duration;
use std::{io, thread};

use dash_storage::Storage;

use crate::directory::Directory;
use crate::file::File;
use crate::journal::{Operation, OperationKind};
use crate::process::Simulated;

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
        thread::yield_now();
    }

    fn monotonic_nanos(&self) -> u64 {
        self.machine.now()
    }
}
