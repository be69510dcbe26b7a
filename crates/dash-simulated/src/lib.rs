//! The simulated home: a machine whose power can be cut, with several processes on it.
//!
//! A [`Machine`] holds inodes. [`Machine::process`] gives a [`Simulated`], the storage handle of a
//! new process; [`Machine::power_loss`] makes a new machine of what a [`Survivors`] lets survive.
//! Everything is deterministic. The device is the weakest that the engines are meant for:
//!
//! 1. *Cache.* A write changes the page cache, which all processes read. A killed process takes
//!    its locks and descriptors with it; the cache stays.
//! 2. *Sectors.* After a power loss each tearing unit (512 bytes, or 4 KiB) has the value it was
//!    last made durable with or **any** it was given since, independently of every other.
//! 3. *Flush.* A flush makes one file's dirty sectors and its length durable, and nothing else.
//! 4. *Failed flush.* A lost flush ([`Effect::LostFlush`]) leaves sectors clean: they read back,
//!    the next flush passes over them, and what the device has of them stays open until they are
//!    written again and flushed. So does the length, until a write beyond the durable end or a
//!    call that sets it.
//! 5. *Length.* After a power loss a file has its durable length or any it had since; what lies
//!    behind what was ever written reads as zeros. Cutting writes zeros over what is cut, unless a
//!    cut survives as a whole ([`Machine::set_whole_cuts`]).
//! 6. *Names.* Of the operations on a directory since its last flush a prefix survives,
//!    independently of data and of other directories. Only a directory's flush makes names durable;
//!    a failed one leaves them as they were. Without a journal ([`Metadata`]) a name and what it
//!    stands for survive apart: an inode survives that was flushed itself (a file by its flush, a
//!    directory by its own), any other perhaps, and so does one that lost its last name; and where
//!    entries don't share a sector each name has any of the values since the directory's last
//!    flush. What `e2fsck` leaves is what there is: a name without its inode is removed, an inode
//!    without a name is gone, an inode with two names has two.
//! 7. *Inodes* live as long as a name, a descriptor, or a possible survivor needs them.
//! 8. *Shared memory* survives a kill, not a power loss, and is apart from the file's contents.
//! 9. *Locks* belong to open descriptions, and go with them.
//! 10. *Direct* I/O must be aligned, and is no more durable than that of the cache: what was
//!     written waits for a flush, or is there before it.
//! 11. *Durable writes* make their own sectors durable, and a length that has them. The power may
//!     go in between: they are two operations, [`OperationKind::Write`] and
//!     [`OperationKind::WriteDurable`].
//! 12. *Byte-addressable memory* ([`Machine::set_byte_addressable`], or that of one folder)
//!     tears in words of 8 bytes: a store is a write of words, and waits for a flush, or for its
//!     lines to be written back and the same thread's fence after that. A word that was stored to
//!     in between stays as uncertain as it was. What survives is asked line by line, and of a torn
//!     line word by word. A killed process has stored what it stored; its write-backs count only if
//!     it fenced.

mod data;
mod directory;
mod enumerate;
mod fault;
mod file;
mod inode;
mod journal;
mod key;
mod locks;
mod machine;
mod memory;
mod names;
mod page;
mod persistent;
mod power;
mod process;
mod settings;
mod state;
mod stock;
mod storage;
mod survivors;

#[cfg(test)]
mod tests;

pub use directory::Directory;
pub use enumerate::Enumerate;
pub use fault::{Effect, Fault};
pub use file::{File, NoMap};
pub use journal::{Entry, Journal, Operation, OperationKind};
pub use machine::Machine;
pub use memory::Memory;
pub use persistent::Persistent;
pub use process::Simulated;
pub use settings::Metadata;
pub use stock::StockDescriptor;
pub use survivors::{Everything, Nothing, Question, Random, Replay, Survivors};

use std::io;

/// An error with a number, as every error of this home is.
fn errno(number: i32) -> io::Error {
    io::Error::from_raw_os_error(number)
}

/// A step of the splitmix64 generator: a different number for each `state`, and well mixed.
fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
