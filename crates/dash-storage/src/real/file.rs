//! An open file: positioned I/O until all is done, allocation, flushes, locks, memory.

use std::fs;
use std::io::{self, ErrorKind, IoSlice};
use std::ops::Range;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::uio::pwritev;
use nix::unistd::{Whence, lseek};
use rustix::io::{ReadWriteFlags, pwritev2};

use super::descriptor::{self, Descriptor};
use super::memory::{Map, Memory};
use super::metadata::{nanos, not_regular, stat};
use super::persistent::Persistent;
use super::retry::uninterrupted;
use super::{access, cache, clone, direct, in_place, initialize};
use super::{lease, lock, owners, space};
use crate::{File as _, FileId, FileKind, LockKind, Metadata, REGION};

/// More buffers than this the kernel refuses in one call.
const MOST_BUFFERS: usize = 1024;

/// An open file description.
pub struct File {
    pub(super) descriptor: Descriptor,
    id: FileId,
    writable: bool,
    locked: AtomicBool,
    /// Nobody else takes locks of it.
    is_unlocked: AtomicBool,
    /// The block of a direct description, 0 if it is not direct.
    direct: AtomicU32,
}

impl File {
    pub(super) fn new(mut descriptor: Descriptor, id: FileId, writable: bool) -> Self {
        descriptor.is_of(id);
        let [locked, is_unlocked] = [false; 2].map(AtomicBool::new);
        Self { descriptor, id, writable, locked, is_unlocked, direct: AtomicU32::new(0) }
    }

    /// Asks a descriptor what file it is of.
    pub(super) fn identify(descriptor: Descriptor, writable: bool) -> io::Result<Self> {
        // If this can't be told, the descriptor is of no inode we could have locks on either.
        let found = stat(descriptor.file()?)?;
        if !found.is_file() {
            let kind = found.file_type();
            return Err(not_regular(match () {
                () if kind.is_fifo() => "a named pipe",
                () if kind.is_dir() => "a folder",
                () => "a device",
            }));
        }
        Ok(Self::new(descriptor, id(&found), writable))
    }

    fn write_all(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.write_with(fs::File::write_at, data, offset)
    }

    /// Writes all of it, with as many calls as that takes.
    fn write_with(
        &self,
        write: impl Fn(&fs::File, &[u8], u64) -> io::Result<usize>,
        mut data: &[u8],
        mut offset: u64,
    ) -> io::Result<()> {
        let file = self.descriptor.file()?;
        while !data.is_empty() {
            match write(file, data, offset) {
                Ok(0) => return Err(Errno::EIO.into()),
                Ok(written) => {
                    data = data.get(written..).unwrap_or_default();
                    offset = advance(offset, written)?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// One `pwritev`, then what it left over buffer by buffer; returns where it ended.
    fn write_buffers(&self, buffers: &[IoSlice<'_>], offset: u64) -> io::Result<u64> {
        let place = libc::off_t::try_from(offset).map_err(|_| Errno::EINVAL)?;
        let mut written = loop {
            match pwritev(self.descriptor.file()?, buffers, place) {
                Err(Errno::EINTR) => {}
                result => break result?,
            }
        };
        let mut offset = offset;
        for buffer in buffers {
            let done = written.min(buffer.len());
            written -= done;
            self.write_all(&buffer[done..], advance(offset, done)?)?;
            offset = advance(offset, buffer.len())?;
        }
        Ok(offset)
    }
}

impl crate::File for File {
    type Map = Map;
    type Memory = Memory;
    type Persistent = Persistent;

    fn id(&self) -> FileId {
        self.id
    }

    fn metadata(&self) -> io::Result<Metadata> {
        let found = stat(self.descriptor.file()?)?;
        let kind = match found.file_type() {
            kind if kind.is_file() => FileKind::Regular,
            kind if kind.is_dir() => FileKind::Directory,
            _ => FileKind::Other,
        };
        Ok(Metadata {
            id: id(&found),
            kind,
            len: found.len(),
            links: found.nlink(),
            permissions: found.mode() & 0o7777,
            owner: found.uid(),
            group: found.gid(),
            changed: nanos(found.ctime(), found.ctime_nsec()),
            written: nanos(found.mtime(), found.mtime_nsec()),
        })
    }

    fn cache_life(&self) -> Option<u64> {
        cache::life(self.descriptor.file().ok()?)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let file = self.descriptor.file()?;
        let block = usize::try_from(self.direct.load(Ordering::Relaxed)).unwrap_or(0);
        let at_block = |done: usize| block == 0 || done.is_multiple_of(block);
        let mut done = 0;
        while done < buffer.len() {
            match file.read_at(&mut buffer[done..], advance(offset, done)?) {
                Ok(0) => break,
                Ok(read) => {
                    done += read;
                    // The end of the file; going on from there would not be a multiple.
                    if !at_block(done) {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.write_all(data, offset)
    }

    fn write_vectored_at(&self, data: &[IoSlice<'_>], offset: u64) -> io::Result<()> {
        let mut offset = offset;
        for buffers in data.chunks(MOST_BUFFERS) {
            offset = self.write_buffers(buffers, offset)?;
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.descriptor.file()?.set_len(len)
    }

    /// The descriptor's own place is nobody's business: all reading and writing here names its
    /// offset.
    fn data_from(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        let file = self.descriptor.file()?;
        let len = stat(file)?.len();
        let seek = |from: u64, whence| {
            let from = libc::off_t::try_from(from).map_err(|_| Errno::EINVAL)?;
            lseek(file, from, whence).map(|at| u64::try_from(at).unwrap_or(len))
        };
        if offset >= len {
            return Ok(None);
        }
        let start = match seek(offset, Whence::SeekData) {
            Ok(start) => start,
            Err(Errno::ENXIO) => return Ok(None),
            Err(Errno::EINVAL | Errno::EOPNOTSUPP) => return Ok(Some(offset..len)),
            Err(error) => return Err(error.into()),
        };
        let end = seek(start, Whence::SeekHole).unwrap_or(len);
        Ok(Some(start..end.clamp(start + 1, len.max(start + 1))))
    }

    fn punch(&self, range: Range<u64>) -> io::Result<()> {
        space::punch(self.descriptor.file()?, &range)
    }

    fn length_limit(&self) -> io::Result<u64> {
        Ok(getrlimit(Resource::RLIMIT_FSIZE)?.0)
    }

    fn free_space(&self) -> io::Result<u64> {
        space::free(self.descriptor.file()?)
    }

    /// `fallocate(2)` rather than glibc's `posix_fallocate`, which reads and writes back every
    /// block where the file system can't: that would undo what another process writes meanwhile.
    fn allocate(&self, len: u64) -> io::Result<()> {
        initialize::check_limit(len)?;
        space::extend(self.descriptor.file()?, len)
    }

    fn make_room(&self, range: Range<u64>) -> io::Result<()> {
        initialize::check_limit(range.end)?;
        space::make_room(self.descriptor.file()?, &range)
    }

    fn initialize(&self, range: Range<u64>) -> io::Result<()> {
        let file = self.descriptor.file()?;
        initialize::initialize(file, range, |zeros, at| self.write_all(zeros, at))
    }

    fn make_direct(&self) -> io::Result<Option<u32>> {
        let block = direct::make(self.descriptor.file()?)?;
        if let Some(block) = block {
            self.direct.store(block, Ordering::Relaxed);
        }
        Ok(block)
    }

    fn write_durable_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        let write = |file: &fs::File, data: &[u8], offset| {
            // The largest number means the descriptor's own place there.
            libc::off_t::try_from(offset).map_err(|_| Errno::EINVAL)?;
            Ok(pwritev2(file, &[IoSlice::new(data)], offset, ReadWriteFlags::DSYNC)?)
        };
        match self.write_with(write, data, offset) {
            Err(error) if error.raw_os_error() == Some(Errno::ENOSYS as i32) => {}
            Err(error) if error.raw_os_error() == Some(Errno::EOPNOTSUPP as i32) => {}
            result => return result,
        }
        self.write_all(data, offset)?;
        self.flush()
    }

    fn flush(&self) -> io::Result<()> {
        self.descriptor.file()?.sync_data()
    }

    fn try_lock(&self, range: Range<u64>, kind: LockKind) -> io::Result<bool> {
        let file = self.descriptor.file()?;
        self.locked.store(true, Ordering::Relaxed);
        lock::try_lock(file, range, kind)
    }

    fn unlock(&self, range: Range<u64>) -> io::Result<()> {
        let stays = range != lock::ALL;
        lock::unlock(self.descriptor.file()?, range)?;
        self.locked.fetch_and(stays, Ordering::Relaxed);
        Ok(())
    }

    fn lock_conflict(&self, range: Range<u64>, kind: LockKind) -> io::Result<Option<i32>> {
        lock::conflict(self.descriptor.file()?, range, kind)
    }

    fn lock_owners(&self, range: Range<u64>) -> io::Result<Vec<i32>> {
        owners::of_locks(self.descriptor.file()?, &range)
    }

    fn open_elsewhere(&self) -> io::Result<bool> {
        descriptor::close_parked(Some(self.id));
        lease::open_elsewhere(self.descriptor.file()?)
    }

    fn clone_range(&self, source: &Self, range: Range<u64>) -> io::Result<()> {
        clone::clone_range(self.descriptor.file()?, source.descriptor.file()?, range)
    }

    fn copy_access(&self, other: &Self) -> io::Result<bool> {
        uninterrupted(|| access::copy(self.descriptor.file()?, other.descriptor.file()?))
    }

    fn has_copied_access_of(&self, other: &Self) -> io::Result<bool> {
        uninterrupted(|| access::is_copied(self.descriptor.file()?, other.descriptor.file()?))
    }

    fn has_users_of(&self, other: &Self) -> io::Result<bool> {
        uninterrupted(|| access::has_users_of(self.descriptor.file()?, other.descriptor.file()?))
    }

    fn has_list_of(&self, other: &Self) -> io::Result<bool> {
        uninterrupted(|| access::have_one_list(self.descriptor.file()?, other.descriptor.file()?))
    }

    fn mark_unlocked(&self) {
        let found = self.descriptor.file().and_then(stat);
        self.is_unlocked.store(found.is_ok_and(|found| found.nlink() == 1), Ordering::Relaxed);
    }

    fn lets_write(&self, user: u32, group: u32) -> io::Result<bool> {
        access::lets_write(self.descriptor.file()?, user, group)
    }

    fn lets_all_write(&self) -> io::Result<bool> {
        access::lets_all_write(self.descriptor.file()?)
    }

    fn map(&self, len: u64) -> io::Result<Map> {
        Map::new(self.descriptor.file()?, len)
    }

    fn map_persistent(&self, len: u64) -> io::Result<Persistent> {
        Persistent::new(self.descriptor.file()?, self.id, len)
    }

    fn shared_memory(&self, words: usize) -> io::Result<Memory> {
        self.shared_region(0, words)
    }

    fn shared_region(&self, offset: u64, words: usize) -> io::Result<Memory> {
        let file = self.descriptor.file()?;
        self.extend_for(file, offset, words)?;
        Memory::new(file, offset, words)
    }

    fn shared_region_in_place_of(
        &self,
        old: Memory,
        offset: u64,
        words: usize,
    ) -> io::Result<Memory> {
        let file = self.descriptor.file()?;
        self.extend_for(file, offset, words)?;
        Memory::in_place_of(old, file, offset, words)
    }
}

impl File {
    /// Writes zeros rather than cuts to length, so that touching a word can't run out of space, and
    /// rather than allocates: blocks that are never written back need not be freed (or discarded on
    /// the device, at milliseconds) when the file is removed. Only Btrfs needs the blocks first.
    fn extend_for(&self, file: &fs::File, offset: u64, words: usize) -> io::Result<()> {
        if !offset.is_multiple_of(REGION) {
            return Err(Errno::EINVAL.into());
        }
        let len = u64::try_from(words).ok().and_then(|words| words.checked_mul(8));
        let end = len.and_then(|len| offset.checked_add(len)).ok_or(Errno::EOVERFLOW)?;
        let found = stat(file)?;
        let old = found.len();
        if old >= end {
            return space::fill_holes(file, &found, end);
        }
        initialize::check_limit(end)?;
        if old == 0 && in_place::keep(file).unwrap_or(false) {
            return self.allocate(end);
        }
        initialize::write_zeros(old..end, |zeros, at| self.write_all(zeros, at))
    }
}

impl Drop for File {
    /// Releases the locks (a mapping may keep the description alive), then closes or parks.
    fn drop(&mut self) {
        let Ok(file) = self.descriptor.file() else {
            return;
        };
        if *self.locked.get_mut() {
            // Nothing could be done about a failure, and the kernel releases at the last close.
            let _ = lock::unlock(file, lock::ALL);
        }
        if *self.is_unlocked.get_mut() {
            return self.descriptor.close();
        }
        let is_direct = *self.direct.get_mut() != 0;
        self.descriptor.close_or_park(self.writable, |file| {
            if is_direct {
                // Who takes it over wants a usual one. Dropping a flag doesn't fail.
                let _ = direct::unmake(file);
            }
        });
    }
}

fn id(found: &fs::Metadata) -> FileId {
    FileId { device: found.dev(), inode: found.ino() }
}

fn advance(offset: u64, by: usize) -> io::Result<u64> {
    let by = u64::try_from(by).map_err(|_| Errno::EFBIG)?;
    Ok(offset.checked_add(by).ok_or(Errno::EFBIG)?)
}
