//! Mappings of files: one to read, one to share words in.
//!
//! A mapping is listed for the fork handler like a descriptor, because it holds the open file
//! description, and so its locks, too. In a forked child both show zeros; the child may map a file
//! in the place of shared memory that came over the fork, for whoever keeps pointers into it.

#![expect(unsafe_code, reason = "words of a mapping are references into it; maps at a place")]

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use memmap2::{MmapOptions, MmapRaw};
use nix::errno::Errno;

use super::fork::{self, Extent, MAPPINGS};
use super::futex;
use super::retry::uninterrupted;
use super::table::Entry;
use crate::{ReadMap, SharedMemory};

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
        let (start, skip, len) = extent(offset, words)?;
        let region = Region::new(|| MmapOptions::new().offset(start).len(len).map_raw(file))?;
        Ok(Self { region, skip })
    }

    /// The same, in the place of `old`, which came over a fork and had the same words of its file.
    pub(super) fn in_place_of(
        old: Self,
        file: &fs::File,
        offset: u64,
        words: usize,
    ) -> io::Result<Self> {
        let (start, skip, len) = extent(offset, words)?;
        if (old.skip, old.region.len) != (skip, len) {
            return Err(Errno::EINVAL.into());
        }
        let region = Region::in_place_of(old.region, file, start)?;
        Ok(Self { region, skip })
    }

    /// `words` words of no file, all 0.
    ///
    /// # Errors
    ///
    /// Mapping fails.
    pub fn of_no_file(words: usize) -> io::Result<Self> {
        let (_, skip, len) = extent(0, words)?;
        let region = Region::new(|| MmapOptions::new().len(len).map_anon().map(MmapRaw::from))?;
        region.replace(libc::MAP_SHARED | libc::MAP_ANONYMOUS)?;
        Ok(Self { region, skip })
    }

    /// Its words at another place, too.
    ///
    /// # Errors
    ///
    /// Mapping fails.
    pub fn again(&self) -> io::Result<Self> {
        let len = self.region.len;
        let region = Region::new(|| MmapOptions::new().len(len).map_anon().map(MmapRaw::from))?;
        region.map_again(&self.region)?;
        Ok(Self { region, skip: self.skip })
    }
}

/// Where the mapping begins in the file, the bytes before the first word, and its length.
fn extent(offset: u64, words: usize) -> io::Result<(u64, usize, usize)> {
    let skip = usize::try_from(offset % LARGEST_PAGE).map_err(|_| Errno::EOVERFLOW)?;
    let len = words.checked_mul(size_of::<AtomicU64>()).and_then(|len| len.checked_add(skip));
    Ok((offset - offset % LARGEST_PAGE, skip, len.ok_or(Errno::EOVERFLOW)?))
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

    fn cover(&self) -> io::Result<Self> {
        let words = self.again()?;
        self.region.replace(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS)?;
        for index in 0..self.len() {
            self.word(index).store(words.word(index).load(Ordering::SeqCst), Ordering::SeqCst);
        }
        Ok(words)
    }

    fn uncover(&self, words: &Self) -> io::Result<()> {
        match (words.skip, words.region.len) == (self.skip, self.region.len) {
            true => self.region.map_again(&words.region),
            false => Err(Errno::EINVAL.into()),
        }
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
        Ok(Self::list(mapping))
    }

    fn list(mapping: MmapRaw) -> Self {
        let entry = MAPPINGS.claim();
        // An empty region is one mapped byte.
        entry.value.set(mapping.as_ptr().addr(), mapping.len().max(1));
        let generation = fork::forks();
        Self { len: mapping.len(), mapping: Some(mapping), entry, generation }
    }

    /// Maps a part of `file` where `old` is, which came over a fork. An error leaves the zeros
    /// there, for ever.
    fn in_place_of(mut old: Self, file: &fs::File, start: u64) -> io::Result<Self> {
        let _inside = fork::inside();
        if old.generation == fork::forks() || old.len == 0 {
            return Err(Errno::EINVAL.into());
        }
        // Nothing takes one out that came over a fork; the fork handler has put private zeros
        // there, so that no entry of the list is about it.
        let mapping = old.mapping.take().ok_or(Errno::EINVAL)?;
        if let Err(error) = map_over(&mapping, libc::MAP_SHARED, file.as_raw_fd(), start) {
            std::mem::forget(mapping);
            return Err(error);
        }
        Ok(Self::list(mapping))
    }

    /// Its mapping, if it has come over no fork.
    fn own(&self) -> io::Result<&MmapRaw> {
        let own = self.mapping.as_ref().filter(|_| self.generation == fork::forks());
        own.ok_or_else(|| Errno::EINVAL.into())
    }

    /// Maps memory of no file in its place.
    fn replace(&self, flags: i32) -> io::Result<()> {
        let _inside = fork::inside();
        map_over(self.own()?, flags, -1, 0)
    }

    /// Maps in its place what `other` has, which is shared memory of the same length.
    fn map_again(&self, other: &Self) -> io::Result<()> {
        const FLAGS: i32 = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        let _inside = fork::inside();
        let (from, to) = (other.own()?.as_mut_ptr().cast(), self.own()?.as_mut_ptr());
        let len = self.len;
        uninterrupted(|| {
            // SAFETY: both are mappings of ours, of `len` bytes; of a length of 0 the first one
            // stays as it is, being shared. Whoever has pointers into the second one takes it for
            // memory that others change: all accesses are atomic.
            match unsafe { libc::mremap(from, 0, len, FLAGS, to.cast::<libc::c_void>()) } {
                libc::MAP_FAILED => Err(io::Error::last_os_error()),
                _ => Ok(()),
            }
        })
    }

    fn start(&self) -> *mut u8 {
        self.mapping.as_ref().map_or(std::ptr::null_mut(), MmapRaw::as_mut_ptr)
    }
}

/// Maps something else where `mapping` is.
fn map_over(mapping: &MmapRaw, flags: i32, file: RawFd, start: u64) -> io::Result<()> {
    const PROTECTION: i32 = libc::PROT_READ | libc::PROT_WRITE;
    let start = libc::off_t::try_from(start).map_err(|_| Errno::EOVERFLOW)?;
    let (place, len) = (mapping.as_mut_ptr().cast(), mapping.len());
    uninterrupted(|| {
        // SAFETY: the extent is one mapping of ours, which `mapping` owns. Whoever has pointers
        // into it takes it for memory that others change: all accesses are atomic.
        match unsafe { libc::mmap(place, len, PROTECTION, flags | libc::MAP_FIXED, file, start) } {
            libc::MAP_FAILED => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    })
}

impl Drop for Region {
    fn drop(&mut self) {
        let _inside = fork::inside();
        if self.generation == fork::forks() {
            drop(self.mapping.take());
            self.entry.value.take();
            self.entry.release();
        } else {
            // Zeros, or something else by now; pointers into it may have come over the fork, too.
            std::mem::forget(self.mapping.take());
        }
    }
}
