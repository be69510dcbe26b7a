//! Mappings of files: one to read, one to share words in.
//!
//! A mapping is listed for the fork handler like a descriptor, because it holds the open file
//! description, and so its locks, too. In a forked child both show zeros.

#![expect(unsafe_code, reason = "words of a mapping are references into it")]

use std::fs;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use memmap2::{MmapOptions, MmapRaw};
use nix::errno::Errno;

use super::fork::{self, Extent};
use super::futex;
use super::table::{Entry, Table};
use super::uninterrupted;
use crate::{ReadMap, SharedMemory};

/// All mappings of this process's handles.
pub(super) static MAPPINGS: Table<Extent> = Table::new();

/// A read-only mapping of a file's beginning.
pub struct Map(Region);

impl Map {
    pub(super) fn new(file: &fs::File, len: u64) -> io::Result<Self> {
        let len = usize::try_from(len).map_err(|_| Errno::EOVERFLOW)?;
        Region::new(|| MmapOptions::new().len(len).map_raw_read_only(file)).map(Self)
    }
}

impl ReadMap for Map {
    fn as_ptr(&self) -> *const u8 {
        self.0.start()
    }

    fn len(&self) -> u64 {
        // A usize of any platform we run on fits.
        u64::try_from(self.0.len).unwrap_or(u64::MAX)
    }
}

/// A part of a file as words that processes share.
pub struct Memory {
    region: Region,
    /// Bytes of the region before the first word.
    skip: usize,
}

/// The largest page of memory that Linux has: mappings begin at a multiple of it, so that the fork
/// handler can put something else in their place.
const LARGEST_PAGE: u64 = 64 * 1024;

impl Memory {
    /// Maps `words` words of a file that has them at `offset`, a multiple of 8.
    pub(super) fn new(file: &fs::File, offset: u64, words: usize) -> io::Result<Self> {
        let skip = usize::try_from(offset % LARGEST_PAGE).map_err(|_| Errno::EOVERFLOW)?;
        let len = words.checked_mul(size_of::<AtomicU64>()).and_then(|len| len.checked_add(skip));
        let (start, len) = (offset - offset % LARGEST_PAGE, len.ok_or(Errno::EOVERFLOW)?);
        let region = Region::new(|| MmapOptions::new().offset(start).len(len).map_raw(file))?;
        Ok(Self { region, skip })
    }
}

impl SharedMemory for Memory {
    fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < self.len(), "word {index} of {}", self.len());
        // SAFETY: the region is mapped readable and writable for as long as `self` lives (only its
        // destructor, which nobody can borrow from, takes the mapping out), starts on a page
        // boundary, from which the first word is a multiple of 8 away, and has the word, by the
        // assertion. Every access of this process is atomic;
        // other processes' accesses are outside the memory model, as with any shared memory. That
        // nobody cuts the file below what was allocated is the protocol's promise; if broken, the
        // access is a SIGBUS, not undefined.
        unsafe { &*self.start().cast::<AtomicU64>().add(index) }
    }

    fn len(&self) -> usize {
        (self.region.len - self.skip) / size_of::<AtomicU64>()
    }

    fn start(&self) -> *mut u8 {
        self.region.start().wrapping_add(self.skip)
    }

    fn wait(&self, index: usize, while_is: u64, time: Duration) -> bool {
        let word = self.word(index);
        futex::wait(word, while_is, time);
        word.load(Ordering::SeqCst) != while_is
    }

    fn wake(&self, index: usize) {
        futex::wake(self.word(index));
    }
}

/// A mapping and its place in the list; the mapping is there until the region is dropped.
struct Region {
    mapping: Option<MmapRaw>,
    len: usize,
    entry: &'static Entry<Extent>,
    generation: u64,
}

impl Region {
    fn new(map: impl FnMut() -> io::Result<MmapRaw>) -> io::Result<Self> {
        let _inside = fork::inside();
        let mapping = uninterrupted(map)?;
        let entry = MAPPINGS.claim();
        // An empty region is one mapped byte.
        entry.value.set(mapping.as_ptr().addr(), mapping.len().max(1));
        let generation = fork::generation();
        Ok(Self { len: mapping.len(), mapping: Some(mapping), entry, generation })
    }

    fn start(&self) -> *mut u8 {
        self.mapping.as_ref().map_or(std::ptr::null_mut(), MmapRaw::as_mut_ptr)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let _inside = fork::inside();
        drop(self.mapping.take());
        if self.generation == fork::generation() {
            self.entry.value.take();
            self.entry.release();
        }
    }
}
