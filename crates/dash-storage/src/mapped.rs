//! A file in memory: mapped to be read, or as words that processes share.

use std::io;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// A read-only mapping whose contents other processes may change.
pub trait ReadMap: Send + Sync + 'static {
    /// First byte.
    fn as_ptr(&self) -> *const u8;
    /// Bytes mapped.
    fn len(&self) -> u64;
    /// Whether nothing is mapped.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// 64-bit words shared between processes.
pub trait SharedMemory: Send + Sync + 'static {
    /// Word `index`; panics if it is out of range.
    fn word(&self, index: usize) -> &AtomicU64;
    /// Number of words.
    fn len(&self) -> usize;
    /// First byte of the words, which lie one behind the other: all of them in the real home, those
    /// of one [`REGION`](crate::REGION) of the file in simulated ones. Stays where it is as long
    /// as this lives.
    fn start(&self) -> *mut u8;
    /// Puts memory of this process's own, with what the words are now, in their place. The words
    /// themselves go on at another one, which is given back. [`io::ErrorKind::Unsupported`] in
    /// homes where a file's words have one place for all.
    fn cover(&self) -> io::Result<Self>
    where
        Self: Sized,
    {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Puts the words back, which [`SharedMemory::cover`] has given. After an error they stay
    /// covered.
    fn uncover(&self, _words: &Self) -> io::Result<()>
    where
        Self: Sized,
    {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Waits while word `index` has the value `while_is`, until somebody changes it and calls
    /// [`SharedMemory::wake`]; values are told apart by their lower 32 bits (`futex(2)`). `false`
    /// if `time` was over first; in simulated homes it is over at once.
    fn wait(&self, index: usize, while_is: u64, time: Duration) -> bool;
    /// Wakes all who wait for word `index`, in every process.
    fn wake(&self, index: usize);
    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
