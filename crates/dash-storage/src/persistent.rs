//! Byte-addressable memory: a file's bytes as the processor stores them, made durable line by line.
//!
//! What is stored is in the processor's caches, where every process sees it. It becomes durable in
//! two steps: its cache lines are written back, and a fence waits until they are. A line may also
//! go out early, at any moment. After a power loss each word, 8 bytes, that was stored to since it
//! was durable has one of the values that it had since, whatever became of the others.

use std::io;
use std::ops::Range;

/// Bytes of a cache line, which is written back as a whole.
pub const LINE: u64 = 64;

/// Bytes of a word, which is stored as a whole: stores begin and end at multiples of it.
pub const WORD: u64 = 8;

/// What lies under a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Persistence {
    /// Persistent memory, mapped so that the file system owes nothing (`MAP_SYNC`): what was
    /// written back and fenced survives a power loss.
    Synchronous,
    /// Memory that is gone with the power (tmpfs): all of it survives the death of processes. It
    /// takes the same calls, so it stands in for persistent memory in tests and figures.
    Volatile,
}

/// A mapping of a file's beginning that is stored to. It is good as long as its file is open.
///
/// Every call answers [`io::ErrorKind::InvalidInput`] for what is not within the mapping, or is no
/// whole word, and ENXIO for what is behind the end of the file: somebody cut it. In the real home
/// a SIGBUS remains, which ends the process: where the file is cut just then, where a block was
/// never allocated and there is no room for it, and where the memory is broken.
pub trait PersistentMemory: Send + Sync + 'static {
    /// What lies under it.
    fn persistence(&self) -> Persistence;

    /// Bytes that are mapped.
    fn len(&self) -> u64;

    /// Whether nothing is mapped.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Stores `bytes`, whole words, at `offset`: every process sees them, and nothing more is
    /// promised. An error may leave any words of it done.
    fn store(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Loads whole words from `offset` on.
    fn load(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Has the cache lines of `range` written back, whoever stored to them. That has only begun
    /// when this returns; a word that is stored to before the fence stays in doubt.
    fn write_back(&self, range: Range<u64>) -> io::Result<()>;

    /// Waits until all is durable that this thread has had written back through this mapping.
    fn fence(&self) -> io::Result<()>;

    /// All three of what is stored here: durable when this returns.
    fn store_durable(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.store(bytes, offset)?;
        let len = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.write_back(offset..offset.saturating_add(len))?;
        self.fence()
    }
}
