//! `-wal` as a connection has it: a file, or one whose beginning is in memory.
//!
//! What is in memory gets into the file when it is flushed, and only then; a header that is to be
//! durable does at once. So the file is always what a page cache might have left of it after a
//! power loss. Behind [`Bytes::new`]'s length frames are in the file alone: memory is bounded,
//! however long a reader holds checkpoints up.
//!
//! While commits may be in the log that the file lacks, the header there is sealed (WAL-45).
//!
//! The file has room for all of it (`fallocate`): what is full is found out where a transaction
//! writes, and not where its commit is to be recovered (WAL-42). Where a file system has no journal
//! a power loss may take blocks that were given so, with what was written into them, durably; it is
//! given none there.

use crate::context::WAL_HEADER;
use crate::frames::seal;
use crate::mutation::{Mutation, broken};
use dash_engine::io::{read_padded, read_some};
use dash_storage::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Bytes written back at once.
const PIECE: usize = 256 << 10;

/// Memory that is kept from one generation to the next. What a long reader or a large transaction
/// took beyond that is given back.
const KEPT: usize = 8 << 20;

/// Room that the file is given at the least.
const ROOM: u64 = 256 << 10;

/// The beginning of `-wal`, in memory.
pub(crate) struct Bytes {
    /// So many at most.
    limit: u64,
    /// The file is given room.
    reserves: bool,
    held: RwLock<Held>,
    /// Held by whoever writes back: a second one has to wait until what it takes for written is.
    writes_back: Mutex<()>,
}

#[derive(Default)]
struct Held {
    bytes: Vec<u8>,
    /// What the file lacks.
    unwritten: Option<Range<usize>>,
    /// So many bytes the file has room for.
    room: u64,
    /// The file's header keeps stock SQLite out.
    is_sealed: bool,
}

impl Held {
    fn lacks(&mut self, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        self.unwritten = Some(match self.unwritten.take() {
            Some(before) => before.start.min(range.start)..before.end.max(range.end),
            None => range,
        });
    }

    /// Sees to it that the file may be so long, and that it has room for that where it is given
    /// any: twice as much as it has, if that can be had, so that this is seldom.
    fn reserve<F: File>(&mut self, file: &F, len: u64, memory: &Bytes) -> io::Result<()> {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull, Unsupported};
        if len <= self.room || broken(Mutation::MemoryWithoutRoom) {
            return Ok(());
        }
        let longest = file.length_limit()?;
        if len > longest {
            return Err(FileTooLarge.into());
        }
        let limit = memory.limit;
        let wanted = (2 * self.room).clamp(ROOM.min(limit), limit).min(longest).max(len);
        if !memory.reserves {
            self.room = wanted;
            return Ok(());
        }
        let is_full =
            |error: &io::Error| matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge);
        self.room = match file.make_room(0..wanted) {
            // There a full disk is found out when it is written back.
            Err(error) if error.kind() == Unsupported => u64::MAX,
            Err(error) if is_full(&error) => file.make_room(0..len).map(|()| len)?,
            made => made.map(|()| wanted)?,
        };
        Ok(())
    }

    /// Makes it so long, with zeros.
    fn reach(&mut self, len: usize) -> io::Result<()> {
        if let Some(more) = len.checked_sub(self.bytes.len()) {
            self.bytes.try_reserve(more).map_err(|_| io::ErrorKind::OutOfMemory)?;
            self.bytes.resize(len, 0);
        }
        Ok(())
    }
}

impl Bytes {
    /// Nothing, and never more than `limit` bytes. `reserves`: the file is given room for them.
    pub(crate) fn new(limit: u64, reserves: bool) -> Self {
        Self { limit, reserves, held: RwLock::default(), writes_back: Mutex::default() }
    }

    fn read(&self) -> RwLockReadGuard<'_, Held> {
        self.held.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Held> {
        self.held.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets everything: the file goes.
    pub(crate) fn clear(&self) {
        *self.write() = Held::default();
    }

    /// Takes the place of a file that is there, as it is.
    ///
    /// # Errors
    ///
    /// Those of reading it.
    pub(crate) fn load<F: File>(&self, file: Option<&F>) -> io::Result<()> {
        let mut held = Held::default();
        if let Some(file) = file {
            let len = file.metadata()?.len;
            held.reach(index(len.min(self.limit))?)?;
            held.room = len;
            read_padded(file, &mut held.bytes, 0)?;
            if let Some(header) = held.bytes.first_chunk_mut() {
                *header = seal::opened(header);
            }
        }
        *self.write() = held;
        Ok(())
    }

    /// How much of `len` bytes from `offset` on is in memory: the length of that part.
    fn part(&self, offset: u64, len: usize) -> usize {
        let room = self.limit.saturating_sub(offset);
        usize::try_from(room).map_or(len, |room| room.min(len))
    }

    /// Writes what the file lacks into it, and flushes it; how many bytes that were. `unseals`: it
    /// is for stock SQLite to read from then on.
    ///
    /// # Errors
    ///
    /// Those of the file; it is still known what that lacked.
    pub(crate) fn write_back<F: File>(&self, file: &F, unseals: bool) -> io::Result<usize> {
        let _alone = self.writes_back.lock().unwrap_or_else(PoisonError::into_inner);
        if broken(Mutation::MemoryNotWritten) {
            return file.flush().map(|()| 0);
        }
        let lacked = self.write().unwritten.take();
        let written = lacked.clone().map_or(Ok(()), |range| self.copy(file, range));
        let written = match unseals {
            true => written.and_then(|()| self.unseal(|header| file.write_at(header, 0))),
            false => written,
        };
        let flushed = written.and_then(|()| file.flush());
        let lacked = lacked.unwrap_or_default();
        if flushed.is_err() {
            self.write().lacks(lacked.clone());
        }
        flushed.map(|()| lacked.len())
    }

    /// The file is to have the header as SQLite wrote it, from now on; `write` puts it there.
    fn unseal(&self, write: impl FnOnce(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let mut held = self.write();
        if let Some(header) = held.bytes.get(..WAL_HEADER).filter(|_| held.is_sealed) {
            write(header)?;
        }
        held.is_sealed = false;
        Ok(())
    }

    fn copy<F: File>(&self, file: &F, range: Range<usize>) -> io::Result<()> {
        let mut piece = Vec::new();
        let mut at = range.start;
        while at < range.end {
            piece.clear();
            {
                let held = self.read();
                let end = range.end.min(at + PIECE).min(held.bytes.len());
                piece.extend_from_slice(held.bytes.get(at..end).unwrap_or_default());
            }
            if piece.is_empty() {
                // It was cut meanwhile.
                break;
            }
            file.write_at(&piece, at as u64)?;
            at += piece.len();
        }
        Ok(())
    }
}

/// `-wal`, while SQLite has it open.
pub(crate) struct WalFile<F> {
    file: Arc<F>,
    memory: Option<Arc<Bytes>>,
    /// Bytes that have reached the file.
    written: AtomicU64,
}

impl<F: File> WalFile<F> {
    /// Around a file, whose beginning may be in memory.
    pub(crate) fn new(file: F, memory: Option<Arc<Bytes>>) -> Self {
        Self { file: Arc::new(file), memory, written: AtomicU64::new(0) }
    }

    /// The file by itself.
    pub(crate) fn file(&self) -> &Arc<F> {
        &self.file
    }

    /// Bytes written to the file through this.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Relaxed)
    }

    fn count(&self, bytes: usize) {
        self.written.fetch_add(bytes as u64, Relaxed);
    }

    /// Reads `buffer.len()` bytes or up to the end; how many.
    pub(crate) fn read_some(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let Some(memory) = &self.memory else { return read_some(&self.file, buffer, offset) };
        let part = memory.part(offset, buffer.len());
        let mut done = 0;
        if part > 0 {
            let held = memory.read();
            let there = held.bytes.get(index(offset)?..).unwrap_or_default();
            done = there.len().min(part);
            buffer[..done].copy_from_slice(&there[..done]);
        }
        match done == part && part < buffer.len() {
            true => Ok(done + read_some(&self.file, &mut buffer[part..], offset + part as u64)?),
            false => Ok(done),
        }
    }

    /// Reads all of the buffer; `false` where it ends before.
    pub(crate) fn read_exact(&self, buffer: &mut [u8], offset: u64) -> io::Result<bool> {
        Ok(self.read_some(buffer, offset)? == buffer.len())
    }

    /// Writes, into the page cache or what takes its place.
    pub(crate) fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        let sealed = self.sealed(data, offset);
        let part = self.keep(data, offset, sealed.is_none())?;
        if let Some(header) = sealed {
            self.count(header.len());
            return self.file.write_at(&header, 0);
        }
        match part < data.len() {
            true => {
                self.count(data.len() - part);
                self.file.write_at(&data[part..], offset + part as u64)
            }
            false => Ok(()),
        }
    }

    /// Writes a header, durably.
    pub(crate) fn write_durable_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        let part = self.keep(data, offset, false)?;
        if part == data.len() && broken(Mutation::HeaderInMemory) {
            return Ok(());
        }
        self.count(data.len());
        match self.sealed(data, offset) {
            Some(header) => self.file.write_durable_at(&header, 0),
            None => self.file.write_durable_at(data, offset),
        }
    }

    /// What the file gets in the place of a header.
    fn sealed(&self, data: &[u8], offset: u64) -> Option<[u8; WAL_HEADER]> {
        let memory = self.memory.as_ref().filter(|_| offset == 0)?;
        let header = data.try_into().ok()?;
        Some(if memory.read().is_sealed { seal::sealed(header) } else { *header })
    }

    /// Keeps stock SQLite out of the file from here on, if it has not what is in memory.
    ///
    /// # Errors
    ///
    /// Those of the file.
    pub(crate) fn seal(&self) -> io::Result<()> {
        let Some(memory) = &self.memory else { return Ok(()) };
        if memory.read().is_sealed || broken(Mutation::WalNotSealed) {
            return Ok(());
        }
        let mut held = memory.write();
        if let Some(header) = held.bytes.first_chunk() {
            self.file.write_at(&seal::sealed(header), 0)?;
        }
        held.is_sealed = true;
        Ok(())
    }

    /// Lets it in again, durably: the file has all that is in memory.
    ///
    /// # Errors
    ///
    /// Those of the file.
    pub(crate) fn unseal(&self) -> io::Result<()> {
        let Some(memory) = &self.memory else { return Ok(()) };
        memory.unseal(|header| self.file.write_durable_at(header, 0))
    }

    /// Puts the beginning of `data` into memory, as far as it belongs there; how much that is.
    /// `unwritten`: the file does not get it now.
    fn keep(&self, data: &[u8], offset: u64, unwritten: bool) -> io::Result<usize> {
        let Some(memory) = &self.memory else { return Ok(0) };
        let part = memory.part(offset, data.len());
        if part == 0 {
            return Ok(0);
        }
        let start = index(offset)?;
        let mut held = memory.write();
        if start == 0 && data.len() == WAL_HEADER {
            // The frames behind another header count no more, and need not get into the file.
            held.unwritten = None;
            if held.bytes.len() > KEPT {
                held.bytes = Vec::new();
            }
        }
        held.reserve(&self.file, (start + part) as u64, memory)?;
        held.reach(start + part)?;
        held.bytes[start..start + part].copy_from_slice(&data[..part]);
        if unwritten {
            held.lacks(start..start + part);
        }
        Ok(part)
    }

    /// Its length in bytes.
    pub(crate) fn len(&self) -> io::Result<u64> {
        let Some(memory) = &self.memory else { return Ok(self.file.metadata()?.len) };
        let len = memory.read().bytes.len() as u64;
        if len < memory.limit { Ok(len) } else { Ok(self.file.metadata()?.len.max(len)) }
    }

    /// Whether all of it is in memory.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.memory.as_ref().is_some_and(|memory| (memory.read().bytes.len() as u64) < memory.limit)
    }

    /// Cuts it.
    pub(crate) fn set_len(&self, len: u64) -> io::Result<()> {
        if let Some(memory) = &self.memory {
            let kept = index(len.min(memory.limit))?;
            let mut held = memory.write();
            held.reach(kept)?;
            held.bytes.truncate(kept);
            let left = |range: Range<usize>| range.start.min(kept)..range.end.min(kept);
            held.unwritten = held.unwritten.take().map(left).filter(|range| !range.is_empty());
            held.room = held.room.min(len);
        }
        self.file.set_len(len)
    }

    /// Makes it durable.
    pub(crate) fn flush(&self) -> io::Result<()> {
        match &self.memory {
            Some(memory) => memory.write_back(&self.file, false).map(|bytes| self.count(bytes)),
            None => self.file.flush(),
        }
    }
}

fn index(at: u64) -> io::Result<usize> {
    usize::try_from(at).map_err(|_| io::ErrorKind::OutOfMemory.into())
}

#[cfg(test)]
mod tests;
