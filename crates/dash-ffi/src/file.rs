//! `File`: what a VFS makes of `sqlite3_io_methods`, as a safe trait.
//!
//! One method for each callback of version 3; the trampolines in `file_calls` are its only callers
//! besides [`ConnectionRef::with_file`](crate::ConnectionRef::with_file). A file is called by one
//! thread at a time and never again after [`File::close`].

use crate::cell::Door;
use crate::code::Code;
use crate::control::{FileControl, Handled};
use crate::error::{Error, Result};
use crate::flags::{DeviceCharacteristics, LockLevel, ShmLock, SyncFlags};
use crate::window::Window;
use core::any::Any;
use core::ptr::NonNull;
use std::sync::Arc;

/// An open file.
///
/// A panic in any method becomes `SQLITE_IOERR`, and the file answers nothing else from then on; it
/// can still be closed.
pub trait File: Any + Send {
    /// Reads into `buffer` from `offset`. Answers how many bytes were read: if fewer than asked
    /// for, the rest of the buffer is zeroed and SQLite gets `SQLITE_IOERR_SHORT_READ`, which it
    /// takes for the end of the file, so a failed read must be an error.
    ///
    /// # Errors
    ///
    /// `SQLITE_IOERR_READ`, or what the engine finds.
    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize>;

    /// Writes all of `data` at `offset`.
    ///
    /// # Errors
    ///
    /// `SQLITE_FULL` if there is no space, `SQLITE_IOERR_WRITE`; never `SQLITE_BUSY`, which SQLite
    /// does not expect here.
    fn write(&mut self, data: &[u8], offset: u64) -> Result<()>;

    /// Makes the file `size` bytes long.
    ///
    /// # Errors
    ///
    /// `SQLITE_IOERR_TRUNCATE`.
    fn truncate(&mut self, size: u64) -> Result<()>;

    /// Makes what was written durable.
    ///
    /// # Errors
    ///
    /// `SQLITE_IOERR_FSYNC`.
    fn sync(&mut self, flags: SyncFlags) -> Result<()>;

    /// The length of the file in bytes.
    ///
    /// # Errors
    ///
    /// `SQLITE_IOERR_FSTAT`.
    fn size(&mut self) -> Result<u64>;

    /// Raises the lock to `level`. SQLite locks databases only: by default the lock is had.
    ///
    /// # Errors
    ///
    /// `SQLITE_BUSY` (best without a message) while another holds a lock in the way.
    fn lock(&mut self, level: LockLevel) -> Result<()> {
        let _ = level;
        Ok(())
    }

    /// Lowers the lock to `level`, which is `Shared` or `None`.
    ///
    /// # Errors
    ///
    /// `SQLITE_IOERR_UNLOCK`.
    fn unlock(&mut self, level: LockLevel) -> Result<()> {
        let _ = level;
        Ok(())
    }

    /// Whether any connection, in any process, holds a reserved lock or a stronger one. By default
    /// none does.
    ///
    /// # Errors
    ///
    /// `SQLITE_IOERR_CHECKRESERVEDLOCK`.
    fn check_reserved_lock(&mut self) -> Result<bool> {
        Ok(false)
    }

    /// Answers a file control. What isn't known must be passed to a wrapped file, or answered
    /// [`Handled::No`], which SQLite gets as `SQLITE_NOTFOUND`, and which is the default.
    ///
    /// # Errors
    ///
    /// The error's code is the result; for a PRAGMA its message is what the user reads.
    fn file_control(&mut self, control: FileControl<'_>) -> Result<Handled> {
        let _ = control;
        Ok(Handled::No)
    }

    /// The unit of a write that power loss can tear, in bytes.
    fn sector_size(&mut self) -> u32;

    /// What is promised about the device. There is no default: each flag lets SQLite leave out
    /// work.
    fn device_characteristics(&mut self) -> DeviceCharacteristics;

    /// Whether WAL mode is possible, asked after opening, and after every `unlock` and PRAGMA.
    /// Without shared memory SQLite keeps its rollback mode when asked for WAL, as it does for a
    /// stock VFS that lacks it. The answer stays while SQLite has a log of the file open.
    fn has_shared_memory(&self) -> bool {
        false
    }

    /// Maps a region of the wal-index; with `extend`, makes it first if it is missing.
    ///
    /// # Errors
    ///
    /// `SQLITE_IOERR_SHMMAP` by default.
    fn shm_map(&mut self, region: usize, size: usize, extend: bool) -> Result<ShmMapping> {
        let _ = (region, size, extend);
        Err(Code::IOERR_SHMMAP.into())
    }

    /// Locks or unlocks `count` slots of the wal-index from `slot`.
    ///
    /// # Errors
    ///
    /// `SQLITE_BUSY`; `SQLITE_IOERR_SHMMAP` by default.
    fn shm_lock(&mut self, slot: usize, count: usize, lock: ShmLock) -> Result<()> {
        let _ = (slot, count, lock);
        Err(Code::IOERR_SHMMAP.into())
    }

    /// Orders memory accesses to the wal-index before and after it.
    fn shm_barrier(&mut self) {
        core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst);
    }

    /// Gives up the wal-index; with `delete`, removes it if nobody else has it.
    ///
    /// # Errors
    ///
    /// None by default.
    fn shm_unmap(&mut self, delete: bool) -> Result<()> {
        let _ = delete;
        Ok(())
    }

    /// A pointer to `amount` bytes of the file in memory, or `None`, and SQLite reads instead.
    ///
    /// # Errors
    ///
    /// `SQLITE_IOERR_MMAP`.
    fn fetch(&mut self, offset: u64, amount: usize) -> Result<Option<PagePointer>> {
        let _ = (offset, amount);
        Ok(None)
    }

    /// Takes back a pointer that `fetch` gave out; with `None`, the mapping may be stale from
    /// `offset` on.
    ///
    /// # Errors
    ///
    /// None by default; SQLite does not look at them.
    fn unfetch(&mut self, offset: u64, page: Option<PagePointer>) -> Result<()> {
        let _ = (offset, page);
        Ok(())
    }

    /// Where the file will say which of its pages lie in memory, asked once, after opening. Pages
    /// from the window are given out and taken back without a call of the file.
    fn window(&self) -> Option<Arc<Window>> {
        None
    }

    /// The door of a file that this one shares, asked once, after opening; `None`: its own.
    fn door(&self) -> Option<Door> {
        None
    }

    /// Closes the file. Everything that belongs to it, a wrapped [`HostFile`](crate::HostFile)
    /// above all, must be gone when this returns.
    ///
    /// # Errors
    ///
    /// `SQLITE_IOERR_CLOSE`; the file is closed all the same.
    fn close(self: Box<Self>) -> Result<()>;
}

impl dyn File {
    /// This file, where it is one of that type.
    pub fn downcast_mut<T: File>(&mut self) -> Option<&mut T> {
        (self as &mut dyn Any).downcast_mut()
    }
}

impl core::fmt::Debug for dyn File {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("File")
    }
}

/// What `shm_map` found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShmMapping {
    /// The region, or `None` if it does not exist and was not to be made.
    pub region: Option<SharedRegion>,
    /// Whether it may only be read: SQLite is told `SQLITE_READONLY` along with the region.
    pub read_only: bool,
}

/// A region of the wal-index in memory that processes share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedRegion(NonNull<u8>);

// SAFETY: an address; what may be done with the bytes is stated where it is made, not bound to a
// thread.
unsafe impl Send for SharedRegion {}

impl SharedRegion {
    /// A region at an address.
    ///
    /// # Safety
    ///
    /// From `address` on, as many bytes as `shm_map` was asked for stay mapped, and writable unless
    /// the mapping is read-only, until `shm_unmap` or `close`; they are accessed as shared memory
    /// only.
    #[must_use]
    pub const unsafe fn new(address: NonNull<u8>) -> Self {
        Self(address)
    }

    /// The address.
    #[must_use]
    pub const fn address(self) -> NonNull<u8> {
        self.0
    }
}

/// Bytes of a file in memory, given out by `fetch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagePointer(NonNull<u8>);

// SAFETY: an address; what may be done with the bytes is stated where it is made, not bound to a
// thread.
unsafe impl Send for PagePointer {}

impl PagePointer {
    /// Bytes at an address.
    ///
    /// # Safety
    ///
    /// From `address` on, as many bytes as `fetch` was asked for stay mapped and readable until
    /// `unfetch` takes this pointer back or the file is closed, and they are what `read` would
    /// give.
    #[must_use]
    pub const unsafe fn new(address: NonNull<u8>) -> Self {
        Self(address)
    }

    /// The address.
    #[must_use]
    pub const fn address(self) -> NonNull<u8> {
        self.0
    }
}

/// The error of a callback on a file that a panic has latched.
pub(crate) fn latched(cause: &str) -> Error {
    Error::new(Code::IOERR, format!("the file is out of use after an internal error: {cause}"))
}
