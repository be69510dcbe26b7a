//! An open file of a simulated process.

use std::io::{self, IoSlice};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use dash_storage::{FileId, LockKind, Metadata, REGION, ReadMap};

use crate::errno;
use crate::fault::Effect;
use crate::journal::{Operation, OperationKind};
use crate::key::Key;
use crate::locks::Owner;
use crate::memory::Memory;
use crate::page::PAGE;
use crate::persistent::Persistent;
use crate::process::Simulated;
use crate::state::State;

/// An open file description.
pub struct File {
    pub(crate) process: Simulated,
    pub(crate) key: Key,
    pub(crate) id: FileId,
    pub(crate) description: u64,
    pub(crate) writable: bool,
    /// The block of a direct description, 0 if it is not direct.
    pub(crate) direct: AtomicU32,
}

/// The mapping that simulated files don't have.
pub enum NoMap {}

impl ReadMap for NoMap {
    fn as_ptr(&self) -> *const u8 {
        match *self {}
    }

    fn len(&self) -> u64 {
        match *self {}
    }
}

impl File {
    fn operate<T>(
        &self,
        kind: OperationKind,
        range: Option<Range<u64>>,
        act: impl FnOnce(&mut State, Option<Effect>) -> io::Result<T>,
    ) -> io::Result<T> {
        let operation = Operation { range, ..Operation::new(kind, self.id.inode) };
        self.process.machine.operate(self.process.process, operation, act)
    }

    fn operate_on_lock<T>(
        &self,
        kind: OperationKind,
        range: &Range<u64>,
        lock: LockKind,
        act: impl FnOnce(&mut State) -> io::Result<T>,
    ) -> io::Result<T> {
        let operation = Operation::new(kind, self.id.inode).range(range.clone()).lock(lock);
        self.process.operate(operation, act)
    }

    /// An operation that needs a file that is open for writing on a machine that can be written.
    fn change<T>(
        &self,
        kind: OperationKind,
        range: Range<u64>,
        act: impl FnOnce(&mut State, Option<Effect>) -> io::Result<T>,
    ) -> io::Result<T> {
        self.operate(kind, Some(range), |state, effect| {
            if !self.writable {
                return Err(errno(libc::EBADF));
            }
            state.check_writable()?;
            act(state, effect)
        })
    }

    fn owner(&self) -> Owner {
        Owner::Description(self.description)
    }

    /// EINVAL for what is not to be read or written through a direct description. Of memory only
    /// the address and the length count.
    fn check_memory(&self, memory: &[u8], offset: u64) -> io::Result<()> {
        if memory.is_empty() {
            return Ok(());
        }
        self.check_aligned([memory.as_ptr().addr() as u64, offset, memory.len() as u64])
    }

    fn check_aligned<const N: usize>(&self, numbers: [u64; N]) -> io::Result<()> {
        let block = u64::from(self.direct.load(Ordering::Relaxed));
        let aligned = block == 0 || numbers.iter().all(|number| number.is_multiple_of(block));
        if aligned { Ok(()) } else { Err(errno(libc::EINVAL)) }
    }

    /// One operation for all of the parts.
    fn write(&self, parts: &[IoSlice<'_>], offset: u64) -> io::Result<()> {
        let data = parts.iter().map(|part| &**part).collect::<Vec<_>>().concat();
        let range = offset..end(offset, data.len() as u64)?;
        self.change(OperationKind::Write, range, |state, effect| {
            // Behind a part that is aligned the next one is, too.
            parts.iter().try_for_each(|part| self.check_memory(part, offset))?;
            let (data, result) = match effect {
                Some(Effect::ShortWrite(len, number)) => {
                    (&data[..len.min(data.len())], Err(errno(number)))
                }
                _ => (&data[..], Ok(())),
            };
            if !data.is_empty() {
                state.write(self.key, data, offset)?;
            }
            result
        })
    }

    /// The file's bytes give the words their first values; afterwards what is read and written is
    /// the words, and what is cut off is zeros in them.
    fn share(&self, kind: OperationKind, offset: u64, words: usize) -> io::Result<Memory> {
        let overflow = || errno(libc::EOVERFLOW);
        let len = (words as u64).checked_mul(8).ok_or_else(overflow)?;
        let end = end(offset, len)?;
        self.change(kind, offset..end, |state, _| {
            if !offset.is_multiple_of(REGION) {
                return Err(errno(libc::EINVAL));
            }
            let first = usize::try_from(offset / REGION).map_err(|_| overflow())?;
            if state.data(self.key)?.len() < end {
                self.reserve(state, end)?;
            }
            let data = state.data(self.key)?.clone();
            let read = |bytes: &mut [u8], offset| {
                data.read(bytes, offset);
            };
            let is_region = kind == OperationKind::SharedRegion;
            let of = (Arc::clone(&self.process.dead), is_region);
            Ok(state.inode_mut(self.key)?.words.share(first, words, of, read))
        })
    }

    /// Extends with space reserved; part of two operations.
    fn reserve(&self, state: &mut State, len: u64) -> io::Result<()> {
        state.check_space(self.key, 0, len)?;
        state.data_mut(self.key)?.allocate(len);
        Ok(())
    }
}

impl dash_storage::File for File {
    type Map = NoMap;
    type Memory = Memory;
    type Persistent = Persistent;

    fn id(&self) -> FileId {
        self.id
    }

    fn metadata(&self) -> io::Result<Metadata> {
        self.operate(OperationKind::Metadata, None, |state, _| state.metadata(self.key))
    }

    fn cache_life(&self) -> Option<u64> {
        Some(self.process.machine.lives())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let range = offset..end(offset, buffer.len() as u64)?;
        self.operate(OperationKind::Read, Some(range), |state, effect| {
            self.check_memory(buffer, offset)?;
            let len = match effect {
                Some(Effect::ShortRead(len)) => len.min(buffer.len()),
                _ => buffer.len(),
            };
            let read = state.data(self.key)?.read(&mut buffer[..len], offset);
            state.inode(self.key)?.words.overlay(&mut buffer[..read], offset);
            Ok(read)
        })
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.write(&[IoSlice::new(data)], offset)
    }

    /// One operation; its parts may survive a power loss apart from each other, as those of any.
    fn write_vectored_at(&self, data: &[IoSlice<'_>], offset: u64) -> io::Result<()> {
        self.write(data, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(OperationKind::SetLen, 0..end(len, 0)?, |state, _| {
            let whole = state.settings.whole_cuts;
            match state.data_mut(self.key)? {
                data if whole && len < data.len() => data.cut_whole(len),
                data => data.set_len(len),
            }
            state.inode(self.key)?.words.zero(len..u64::MAX);
            Ok(())
        })
    }

    /// As if the file system were slow about it: the zeros are written.
    fn punch(&self, range: Range<u64>) -> io::Result<()> {
        let len = self.metadata()?.len;
        let range = range.start.min(len)..range.end.min(len);
        let zeros = usize::try_from(range.end - range.start).map(|len| vec![0; len]);
        let zeros = zeros.map_err(|_| errno(libc::EOVERFLOW))?;
        if zeros.is_empty() { Ok(()) } else { self.write_at(&zeros, range.start) }
    }

    /// Holes are not told from zeros here.
    fn data_from(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        let len = self.metadata()?.len;
        Ok((offset < len).then_some(offset..len))
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.change(OperationKind::Allocate, 0..end(len, 0)?, |state, _| self.reserve(state, len))
    }

    fn make_room(&self, range: Range<u64>) -> io::Result<()> {
        end(range.end, 0)?;
        self.change(OperationKind::Allocate, range.clone(), |state, _| {
            state.check_space(self.key, range.start, range.end - range.start)?;
            state.data_mut(self.key)?.make_room(range.end);
            Ok(())
        })
    }

    fn initialize(&self, range: Range<u64>) -> io::Result<()> {
        end(range.end, 0)?;
        self.change(OperationKind::Initialize, range.clone(), |state, _| {
            if range.is_empty() {
                return Ok(());
            }
            self.check_aligned([range.start, range.end])?;
            state.check_space(self.key, 0, range.end)?;
            state.data_mut(self.key)?.initialize(&range);
            state.inode(self.key)?.words.zero(range);
            Ok(())
        })
    }

    fn make_direct(&self) -> io::Result<Option<u32>> {
        self.operate(OperationKind::MakeDirect, None, |state, _| {
            let block = state.settings.direct;
            self.direct.store(block.unwrap_or(0), Ordering::Relaxed);
            Ok(block)
        })
    }

    /// Two operations, as the power may go in between.
    fn write_durable_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.write_at(data, offset)?;
        let range = offset..end(offset, data.len() as u64)?;
        self.change(OperationKind::WriteDurable, range.clone(), |state, effect| {
            if range.is_empty() {
                return Ok(());
            }
            let data = state.data_mut(self.key)?;
            if let Some(Effect::LostFlush(number)) = effect {
                data.lose_range(&range);
                return Err(errno(number));
            }
            data.flush_range(&range);
            state.keep(self.key)
        })
    }

    fn flush(&self) -> io::Result<()> {
        self.operate(OperationKind::Flush, None, |state, effect| {
            if !state.data(self.key)?.is_dirty() {
                return match effect {
                    Some(Effect::LostFlush(number)) => Err(errno(number)),
                    _ => state.keep(self.key),
                };
            }
            state.check_writable()?;
            let data = state.data_mut(self.key)?;
            if let Some(Effect::LostFlush(number)) = effect {
                data.lose_flush();
                return Err(errno(number));
            }
            data.flush();
            state.keep(self.key)
        })
    }

    fn try_lock(&self, range: Range<u64>, kind: LockKind) -> io::Result<bool> {
        self.operate_on_lock(OperationKind::Lock, &range, kind, |state| {
            if kind == LockKind::Exclusive && !self.writable {
                return Err(errno(libc::EBADF));
            }
            let locks = &mut state.inode_mut(self.key)?.locks;
            Ok(locks.try_lock(self.owner(), range.clone(), kind))
        })
    }

    fn unlock(&self, range: Range<u64>) -> io::Result<()> {
        self.operate(OperationKind::Unlock, Some(range.clone()), |state, _| {
            state.inode_mut(self.key)?.locks.unlock(self.owner(), &range);
            Ok(())
        })
    }

    fn lock_conflict(&self, range: Range<u64>, kind: LockKind) -> io::Result<Option<i32>> {
        self.operate_on_lock(OperationKind::LockConflict, &range, kind, |state| {
            let conflict = state.inode(self.key)?.locks.conflict(self.owner(), &range, kind);
            Ok(conflict.map(|owner| match owner {
                Owner::Stock(process) => process,
                Owner::Description(_) => 0,
            }))
        })
    }

    fn lock_owners(&self, range: Range<u64>) -> io::Result<Vec<i32>> {
        let state = self.process.machine.state();
        Ok(state.inode(self.key)?.locks.posix_owners(&range))
    }

    fn open_elsewhere(&self) -> io::Result<bool> {
        self.operate(OperationKind::OpenElsewhere, None, |state, _| {
            Ok(state.inode(self.key)?.opens() > 1)
        })
    }

    /// A write, to everything but the space it needs: the clone survives in any part.
    /// All files of a machine have one owner.
    fn copy_access(&self, other: &Self) -> io::Result<bool> {
        let mut state = self.process.machine.state();
        state.inode_mut(self.key)?.permissions = state.inode(other.key)?.permissions;
        Ok(true)
    }

    fn clone_range(&self, source: &Self, range: Range<u64>) -> io::Result<()> {
        self.change(OperationKind::CloneRange, range.clone(), |state, _| {
            let data = state.data(source.key)?;
            let whole = range.end.is_multiple_of(PAGE) || range.end == data.len();
            if !state.settings.clone || !range.start.is_multiple_of(PAGE) || !whole {
                return Err(errno(libc::EOPNOTSUPP));
            }
            let len = range.end.saturating_sub(range.start);
            let mut bytes = vec![0; usize::try_from(len).map_err(|_| errno(libc::EFBIG))?];
            let read = data.read(&mut bytes, range.start);
            if read != bytes.len() || self.key == source.key {
                return Err(errno(libc::EOPNOTSUPP));
            }
            if read > 0 {
                state.data_mut(self.key)?.write(&bytes, range.start);
            }
            Ok(())
        })
    }

    fn map(&self, len: u64) -> io::Result<NoMap> {
        self.operate(OperationKind::Map, Some(0..len), |_, _| Err(errno(libc::EOPNOTSUPP)))
    }

    fn map_persistent(&self, len: u64) -> io::Result<Persistent> {
        self.change(OperationKind::MapPersistent, 0..len, |state, _| {
            let process = self.process.clone();
            Persistent::map(state, process, (self.key, self.id.inode), len)
        })
    }

    fn shared_memory(&self, words: usize) -> io::Result<Memory> {
        self.share(OperationKind::SharedMemory, 0, words)
    }

    fn shared_region(&self, offset: u64, words: usize) -> io::Result<Memory> {
        self.share(OperationKind::SharedRegion, offset, words)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.process.machine.state().close(self.description);
    }
}

/// Where a range ends; offsets are as limited as `off_t`.
fn end(offset: u64, len: u64) -> io::Result<u64> {
    let end = offset.checked_add(len).filter(|&end| i64::try_from(end).is_ok());
    end.ok_or_else(|| errno(libc::EINVAL))
}
