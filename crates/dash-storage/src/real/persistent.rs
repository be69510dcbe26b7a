//! Mappings of files in byte-addressable memory, which are stored to and written back.
//!
//! The kernel says what lies under a file: it grants `MAP_SYNC` where it is persistent memory that
//! the file system hands out as it is (DAX), and then owes nothing of it once lines were written
//! back. The files of a tmpfs are memory, too. Everywhere else the answer is that it can't be done,
//! as stores would be in the page cache, and no fence makes that durable.
//!
//! A mapping whose file is cut ends the process at its next touch (SIGBUS). So the file's length
//! is looked at before each one, once for what is stored and written back at once. What remains:
//! a cut in the very moment between look and touch, a block that was never allocated and finds
//! no room, and memory that is broken.

#![expect(unsafe_code, reason = "maps, and touches what is mapped")]

use std::fs;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::errno::Errno;
use nix::sys::statfs::{TMPFS_MAGIC, fstatfs};

use super::descriptor::Descriptor;
use super::fork::{self, Extent, MAPPINGS};
use super::table::Entry;
use super::write_back::{self, Instruction};
use super::{direct, retry::uninterrupted};
use crate::{FileId, LINE, Persistence, PersistentMemory, WORD};

/// A mapping of a file's beginning, to be stored to.
pub struct Persistent {
    start: NonNull<u8>,
    len: usize,
    persistence: Persistence,
    instruction: Instruction,
    entry: &'static Entry<Extent>,
    generation: u64,
    /// A second number of the file's description, to ask for its length.
    descriptor: Descriptor,
}

// SAFETY: the pointer is to a mapping that the value owns, and that is touched by atomic words
// only.
unsafe impl Send for Persistent {}
// SAFETY: as above.
unsafe impl Sync for Persistent {}

impl Persistent {
    /// Maps the first `len` bytes of a file that is open for writing.
    pub(super) fn new(file: &fs::File, id: FileId, len: u64) -> io::Result<Self> {
        let instruction = write_back::best().ok_or(Errno::EOPNOTSUPP)?;
        if len == 0 || !len.is_multiple_of(WORD) {
            return Err(Errno::EINVAL.into());
        }
        check_length(file, len)?;
        let mut descriptor = Descriptor::open(|| Ok(file.try_clone()?.into()))?;
        descriptor.is_of(id);
        let len = usize::try_from(len).map_err(|_| Errno::EOVERFLOW)?;
        let _inside = fork::inside();
        let (start, persistence) = map(file, len)?;
        let entry = MAPPINGS.claim();
        entry.value.set(start.as_ptr().addr(), len);
        let generation = fork::forks();
        Ok(Self { start, len, persistence, instruction, entry, generation, descriptor })
    }

    /// The first byte of a range of words that can be touched now.
    fn place(&self, range: &Range<u64>) -> io::Result<NonNull<u8>> {
        let whole = range.start.is_multiple_of(WORD) && range.end.is_multiple_of(WORD);
        if !whole || range.start > range.end || range.end > self.len() {
            return Err(Errno::EINVAL.into());
        }
        // In a forked child it fails: there the mapping shows zeros of the child's own.
        check_length(self.descriptor.file()?, range.end)?;
        let at = usize::try_from(range.start).map_err(|_| Errno::EINVAL)?;
        // SAFETY: it is within the mapping, or right behind it.
        Ok(unsafe { self.start.add(at) })
    }

    fn words(&self, offset: u64, len: usize) -> io::Result<&[AtomicU64]> {
        let bytes = u64::try_from(len).map_err(|_| Errno::EINVAL)?;
        let end = offset.checked_add(bytes).ok_or(Errno::EINVAL)?;
        let place = self.place(&(offset..end))?;
        // SAFETY: so many bytes from there on are mapped, readable and writable, for as long as
        // `self` lives; the mapping begins at a page, so the place is that of a word. Every access
        // of this process is atomic; other processes' accesses are outside the memory model, as
        // with any shared memory. If the file is cut meanwhile, the access is a SIGBUS, not
        // undefined.
        Ok(unsafe { std::slice::from_raw_parts(place.as_ptr().cast(), len / size_of::<u64>()) })
    }
}

impl PersistentMemory for Persistent {
    fn persistence(&self) -> Persistence {
        self.persistence
    }

    fn len(&self) -> u64 {
        // A usize of any platform we run on fits.
        u64::try_from(self.len).unwrap_or(u64::MAX)
    }

    fn store(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        store(self.words(offset, bytes.len())?, bytes);
        Ok(())
    }

    fn load(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let words = self.words(offset, buffer.len())?;
        for (word, bytes) in words.iter().zip(buffer.as_chunks_mut().0) {
            *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
        }
        Ok(())
    }

    fn write_back(&self, range: Range<u64>) -> io::Result<()> {
        let place = self.place(&range)?;
        self.write_lines_back(place, &range)
    }

    fn fence(&self) -> io::Result<()> {
        self.descriptor.file()?;
        write_back::fence();
        Ok(())
    }

    fn store_durable(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let words = self.words(offset, bytes.len())?;
        store(words, bytes);
        let range = offset..offset + u64::try_from(bytes.len()).map_err(|_| Errno::EINVAL)?;
        self.write_lines_back(NonNull::from(words).cast(), &range)?;
        write_back::fence();
        Ok(())
    }
}

impl Persistent {
    /// Has the lines of a range written back that was looked at, and begins at `place`.
    fn write_lines_back(&self, place: NonNull<u8>, range: &Range<u64>) -> io::Result<()> {
        // The first line begins before the range, perhaps, and within its page.
        let before = range.start % LINE;
        let lead = usize::try_from(before).map_err(|_| Errno::EINVAL)?;
        let len = usize::try_from(range.end - range.start + before).map_err(|_| Errno::EINVAL)?;
        let line = usize::try_from(LINE).map_err(|_| Errno::EINVAL)?;
        // SAFETY: a mapping begins with a line.
        let first = unsafe { place.sub(lead) };
        for at in (0..len).step_by(line) {
            // SAFETY: the byte is mapped, as `words` says, and `best` found the instruction.
            unsafe { self.instruction.write_back(first.as_ptr().add(at)) };
        }
        Ok(())
    }
}

/// Stores whole words.
fn store(words: &[AtomicU64], bytes: &[u8]) {
    for (word, bytes) in words.iter().zip(bytes.as_chunks().0) {
        word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
    }
}

/// ENXIO if the file ends before `end`.
fn check_length(file: &fs::File, end: u64) -> io::Result<()> {
    let len = uninterrupted(|| file.metadata())?.len();
    if len < end { Err(Errno::ENXIO.into()) } else { Ok(()) }
}

/// Maps the first `len` bytes, and says what they are.
fn map(file: &fs::File, len: usize) -> io::Result<(NonNull<u8>, Persistence)> {
    const PROTECTION: i32 = libc::PROT_READ | libc::PROT_WRITE;
    let memory = uninterrupted(|| Ok(fstatfs(file)?))?.filesystem_type() == TMPFS_MAGIC;
    let (flags, persistence) = if memory {
        (libc::MAP_SHARED, Persistence::Volatile)
    } else {
        (libc::MAP_SHARED_VALIDATE | libc::MAP_SYNC, Persistence::Synchronous)
    };
    let null = std::ptr::null_mut();
    let mapped = uninterrupted(|| {
        // SAFETY: the kernel chooses a place where nothing is.
        let mapped = unsafe { libc::mmap(null, len, PROTECTION, flags, file.as_raw_fd(), 0) };
        match mapped {
            libc::MAP_FAILED => Err(io::Error::last_os_error()),
            mapped => NonNull::new(mapped.cast()).ok_or_else(|| Errno::ENOMEM.into()),
        }
    });
    match mapped {
        Ok(start) => Ok((start, persistence)),
        // Linux before 4.15 does not know the flags.
        Err(error) if !memory && error.raw_os_error() == Some(Errno::EINVAL as i32) => {
            Err(Errno::EOPNOTSUPP.into())
        }
        Err(error) => Err(error),
    }
}

impl Drop for Persistent {
    fn drop(&mut self) {
        let inside = fork::inside();
        // In a forked child something else may lie there by now.
        if self.generation == fork::forks() {
            // SAFETY: the mapping is this value's own, and nothing borrowed from it is left.
            unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
            self.entry.value.take();
            self.entry.release();
        }
        drop(inside);
        self.descriptor.close_or_park(true, |file| {
            // As of a file that is closed; who takes it over wants one that is not direct.
            let _ = direct::unmake(file);
        });
    }
}
