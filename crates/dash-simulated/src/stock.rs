//! A stock SQLite process with one descriptor, opened at some time and kept.
//!
//! It sees the page cache of the inode it opened, wherever the names have gone, and takes SQLite's
//! five lock states as POSIX locks. What it does is no step: it is what a test looks with. It
//! writes like any process, if the machine is on.

use std::io;
use std::ops::Range;
use std::path::Path;

use dash_storage::LockKind::{self, Exclusive, Shared};

use crate::key::Key;
use crate::locks::{Locks, Owner};
use crate::machine::Machine;
use crate::{errno, power};

const PENDING: Range<u64> = 0x4000_0000..0x4000_0001;
const RESERVED: Range<u64> = 0x4000_0001..0x4000_0002;
const SHARED: Range<u64> = 0x4000_0002..0x4000_0200;

/// A descriptor of a stock process of its own.
pub struct StockDescriptor {
    machine: Machine,
    key: Key,
    process: i32,
    inode: u64,
}

impl Machine {
    /// Opens a file as a new stock process would.
    pub fn open_stock(&self, path: impl AsRef<Path>) -> io::Result<StockDescriptor> {
        let mut state = self.state();
        let key = state.resolve(path.as_ref())?;
        state.data(key)?;
        state.retain(key);
        let process = i32::try_from(state.new_process()).unwrap_or(i32::MAX);
        let inode = state.inode(key)?.number;
        Ok(StockDescriptor { machine: self.clone(), key, process, inode })
    }
}

impl StockDescriptor {
    /// The number of the inode it has open.
    #[must_use]
    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// The process id that its locks are reported with.
    #[must_use]
    pub fn process_id(&self) -> i32 {
        self.process
    }

    /// All of the file.
    #[must_use]
    pub fn read_all(&self) -> Vec<u8> {
        power::view(&self.machine.state(), self.key).unwrap_or_default()
    }

    /// Writes into the page cache.
    pub fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.machine.state();
        if !state.is_on() {
            return Err(errno(libc::EIO));
        }
        state.check_writable()?;
        state.write(self.key, data, offset)
    }

    /// Makes its writes durable.
    pub fn flush(&self) -> io::Result<()> {
        let mut state = self.machine.state();
        if !state.is_on() {
            return Err(errno(libc::EIO));
        }
        state.data_mut(self.key)?.flush();
        state.keep(self.key)
    }

    /// SHARED: what every reader takes.
    pub fn try_lock_shared(&self) -> bool {
        if !self.lock(PENDING, Shared) {
            return false;
        }
        let got = self.lock(SHARED, Shared);
        self.release(&PENDING);
        got
    }

    /// RESERVED: what a writer takes first, beside its SHARED.
    pub fn try_lock_reserved(&self) -> bool {
        self.lock(RESERVED, Exclusive)
    }

    /// EXCLUSIVE: PENDING, then the whole shared range. A PENDING that was got is kept.
    pub fn try_lock_exclusive(&self) -> bool {
        self.lock(PENDING, Exclusive) && self.lock(SHARED, Exclusive)
    }

    /// Whether somebody else holds RESERVED or more, which makes a journal not hot.
    #[must_use]
    pub fn is_reserved_elsewhere(&self) -> bool {
        self.locks(|locks, owner| locks.conflict(owner, &RESERVED, Exclusive).is_some())
    }

    /// Takes or converts a lock on any bytes.
    pub fn lock(&self, range: Range<u64>, kind: LockKind) -> bool {
        self.locks(|locks, owner| locks.try_lock(owner, range, kind))
    }

    /// Releases all its locks.
    pub fn unlock(&self) {
        self.release(&(0..u64::MAX));
    }

    fn release(&self, range: &Range<u64>) {
        self.locks(|locks, owner| {
            locks.unlock(owner, range);
            true
        });
    }

    fn locks(&self, act: impl FnOnce(&mut Locks, Owner) -> bool) -> bool {
        let mut state = self.machine.state();
        state
            .inode_mut(self.key)
            .is_ok_and(|inode| act(&mut inode.locks, Owner::Stock(self.process)))
    }
}

impl Drop for StockDescriptor {
    fn drop(&mut self) {
        self.unlock();
        self.machine.state().release(self.key);
    }
}
