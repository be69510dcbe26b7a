//! The real home: Linux system calls, nothing remembered that the kernel knows.
//!
//! One idea a file: [`Directory`] (names), [`File`] (positioned I/O, locks), [`Map`] and [`Memory`]
//! (mappings), `descriptor` (who owns an open descriptor), `closing` (when closing one would drop
//! SQLite's own locks), `fork` (what a forked child may keep), `table` (the lock-free lists these
//! need), `clone` (shared extents), `in_place` (files that are not copied on write), `futex`
//! (waiting for a shared word), `direct` (around the page cache), `initialize` (blocks that are
//! written), `journal` (whether a file system keeps one), `cache` (whether it is still the one of
//! before), `lease` (who else has a file open), [`holders`] (who has locks on one), `file_system`
//! (which one it is), `access` and `list` (whose a file is), `per_process` (statics that a forked
//! child begins anew), `persistent` (byte-addressable memory), `write_back` (its cache lines),
//! `random`, `space` (what is left, and what is given back), `retry` (calls that a signal
//! interrupts), `metadata` (what the kernel says of an open file), `standard` (the numbers of the
//! standard streams).
//!
//! Invariants:
//!
//! 1. Every descriptor is close-on-exec, and is closed in a forked child before `fork` returns.
//! 2. No descriptor is closed while others in this process have its inode open, who may have POSIX
//!    locks on it.
//! 3. A handle used in a forked child fails with EBADF, whatever its number stands for there.

mod access;
mod cache;
mod clone;
mod closing;
mod descriptor;
mod direct;
mod directory;
mod ending;
mod file;
mod file_system;
mod files;
mod fork;
mod futex;
pub mod holders;
mod in_place;
mod initialize;
mod journal;
mod lease;
mod list;
mod lock;
mod memory;
mod metadata;
mod owners;
mod per_process;
mod persistent;
mod random;
mod retry;
mod space;
mod standard;
mod table;
mod unwaiting;
mod write_back;

#[cfg(test)]
mod tests;

pub use closing::{WhileNobodyOpens, keep_out, processor_time};
pub use directory::Directory;
pub use ending::{is_signal_blocked, lock, process_ends, start_thread};
pub use file::File;
pub use file_system::{FileSystem, is_read_only, may_be_read};
pub use fork::{forks, without_fork};
pub use initialize::check_limit;
pub use memory::{Map, Memory};
pub use per_process::PerProcess;
pub use persistent::Persistent;
pub use standard::keep_off_standard_streams;
pub use unwaiting::write_without_waiting;

use std::io;
use std::path::Path;
use std::time::Duration;

use nix::time::ClockId;

use crate::Storage;

/// Closes what was left open because others in this process had it open, and have no more. Costs a
/// load where there is nothing.
pub fn close_left() {
    descriptor::close_parked(None);
}

/// The operating system this process runs on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Real;

impl Storage for Real {
    type Directory = Directory;
    type File = File;

    /// An empty path is the working directory, as `Path::parent` of a bare name gives it.
    fn open_directory(&self, path: &Path) -> io::Result<Directory> {
        Directory::open_path(path)
    }

    fn random(&self) -> u64 {
        random::draw()
    }

    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }

    fn monotonic_nanos(&self) -> u64 {
        // The clock can't fail: it is one every kernel has.
        let now = ClockId::CLOCK_MONOTONIC.now().map(Duration::from);
        now.map_or(0, |now| u64::try_from(now.as_nanos()).unwrap_or(u64::MAX))
    }

    fn pid_namespace(&self) -> u64 {
        space::pid_namespace()
    }

    fn user(&self) -> u32 {
        nix::unistd::geteuid().as_raw()
    }
}
