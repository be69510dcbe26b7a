//! `HostFile`: a file of the host's VFS, with all of its methods.
//!
//! Owns the memory of the host's handle and a claim on its name. Invariants: the host's handle
//! never moves; its methods are called only while it is open; of its method table nothing is read
//! that its version lacks; it is closed exactly once.

use crate::code::{Code, OK};
use crate::control::{FileControl, Handled};
use crate::error::{Error, Result};
use crate::file::{File, PagePointer, SharedRegion, ShmMapping};
use crate::flags::{DeviceCharacteristics, LockLevel, OpenFlags, ShmLock, SyncFlags};
use crate::host::HostVfs;
use crate::name::{Lease, OwnName};
use crate::sys::RawFile;
use core::ffi::{c_char, c_int, c_void};
use core::fmt;
use core::ptr::{NonNull, null_mut};

/// A file that the host's VFS opened. Dropping it closes it.
pub struct HostFile {
    /// The host's handle; its `methods` are not null while the file is open.
    handle: NonNull<RawFile>,
    /// What `handle` lies in.
    memory: *mut [Word],
    /// What keeps the memory of the name: SQLite, or we ourselves.
    _name: Option<NameOwner>,
}

/// Memory for the host's handle comes in units of the strictest alignment that C's malloc grants.
#[repr(C, align(16))]
#[derive(Clone, Copy)]
struct Word([u8; 16]);

/// Who keeps the name that the host's file goes on pointing to.
#[expect(dead_code, reason = "held for their memory only")]
pub(crate) enum NameOwner {
    /// SQLite, until `xClose` returns.
    Sqlite(Lease),
    /// The file itself.
    Own(OwnName),
}

impl From<Lease> for NameOwner {
    fn from(lease: Lease) -> Self {
        Self::Sqlite(lease)
    }
}

impl From<OwnName> for NameOwner {
    fn from(name: OwnName) -> Self {
        Self::Own(name)
    }
}

// SAFETY: SQLite uses a file handle from whichever thread runs its connection, one at a time; `&mut
// self` gives the same guarantee here, and the name's memory is bound to no thread.
unsafe impl Send for HostFile {}

/// Calls a method that the host's table has since a version, or yields `$absent` if it lacks it.
macro_rules! call {
    ($self:ident, $since:literal, $method:ident($($argument:expr),*) or $absent:expr) => {{
        let file = $self.handle.as_ptr();
        // SAFETY: the file is open, so it has a method table, which begins with its version; a
        // field is read only from a table of a version that has it. The method gets its own file,
        // and arguments as sqlite3.h describes them.
        unsafe {
            let methods = (*file).methods;
            match if (*methods).version >= $since { (*methods).$method } else { None } {
                Some(method) => method(file, $($argument),*),
                None => $absent,
            }
        }
    }};
}

impl HostFile {
    /// Opens a file of the host.
    ///
    /// # Safety
    ///
    /// `name` is null, or a file name with SQLite's layout that stays in place while `owner` lives.
    pub(crate) unsafe fn open(
        host: &HostVfs,
        name: *const c_char,
        flags: OpenFlags,
        owner: Option<NameOwner>,
    ) -> Result<(Self, OpenFlags)> {
        let words = host.file_size().max(size_of::<RawFile>()).div_ceil(size_of::<Word>());
        let memory = Box::into_raw(vec![Word([0; 16]); words].into_boxed_slice());
        let handle = NonNull::new(memory.cast::<RawFile>()).ok_or(Code::NOMEM)?;
        let file = Self { handle, memory, _name: owner };
        let mut out = 0;
        // SAFETY: the host's own VFS pointer, a name as the caller states, and zeroed memory of the
        // size that the host asks for.
        let code = unsafe {
            match (*host.as_ptr()).open {
                Some(open) => open(host.as_ptr(), name, handle.as_ptr(), flags.raw(), &raw mut out),
                None => Code::CANTOPEN.raw(),
            }
        };
        // On failure a host leaves `methods` null, or else it wants to be closed: dropping does
        // both.
        Error::check(code)?;
        if !file.is_open() {
            return Err(Error::new(Code::CANTOPEN, "the host's VFS opened a file without methods"));
        }
        // A VFS need not fill in the flags: then the file is as it was asked for.
        Ok((file, if out == 0 { flags } else { OpenFlags::from_raw(out) }))
    }

    fn is_open(&self) -> bool {
        // SAFETY: the memory is ours and at least as large as the head of a handle.
        unsafe { !(*self.handle.as_ptr()).methods.is_null() }
    }

    fn close_once(&mut self) -> c_int {
        if !self.is_open() {
            return OK;
        }
        let code = call!(self, 1, close() or OK);
        // SAFETY: the memory is ours; the host is done with it.
        unsafe { (*self.handle.as_ptr()).methods = core::ptr::null() };
        code
    }

    /// Passes on a file control that has no variant in [`FileControl`].
    ///
    /// # Errors
    ///
    /// The host's code; `SQLITE_NOTFOUND` is [`Handled::No`].
    ///
    /// # Safety
    ///
    /// `argument` is what the host expects for `op`.
    pub unsafe fn file_control_raw(&mut self, op: i32, argument: *mut c_void) -> Result<Handled> {
        let code = call!(self, 1, file_control(op, argument) or Code::NOTFOUND.raw());
        match Code::from_raw(code) {
            None => Ok(Handled::Yes),
            Some(Code::NOTFOUND) => Ok(Handled::No),
            Some(code) => Err(code.into()),
        }
    }
}

/// A size or an offset as C knows it.
fn c_offset(value: u64, code: Code) -> Result<i64> {
    i64::try_from(value).map_err(|_| code.into())
}

/// A length as C knows it.
fn c_length(value: usize, code: Code) -> Result<c_int> {
    c_int::try_from(value).map_err(|_| code.into())
}

impl File for HostFile {
    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        const CODE: Code = Code::IOERR_READ;
        let (length, at) = (c_length(buffer.len(), CODE)?, c_offset(offset, CODE)?);
        let code = call!(self, 1, read(buffer.as_mut_ptr().cast(), length, at) or CODE.raw());
        if code != Code::IOERR_SHORT_READ.raw() {
            return Error::check(code).map(|()| buffer.len());
        }
        // The host zeroed the rest but does not say how much that is: the size of the file does.
        let there = usize::try_from(self.size()?.saturating_sub(offset)).unwrap_or(usize::MAX);
        Ok(there.min(buffer.len().saturating_sub(1)))
    }

    fn write(&mut self, data: &[u8], offset: u64) -> Result<()> {
        const CODE: Code = Code::IOERR_WRITE;
        let (length, at) = (c_length(data.len(), CODE)?, c_offset(offset, CODE)?);
        Error::check(call!(self, 1, write(data.as_ptr().cast(), length, at) or CODE.raw()))
    }

    fn truncate(&mut self, size: u64) -> Result<()> {
        const CODE: Code = Code::IOERR_TRUNCATE;
        let size = c_offset(size, CODE)?;
        Error::check(call!(self, 1, truncate(size) or CODE.raw()))
    }

    fn sync(&mut self, flags: SyncFlags) -> Result<()> {
        Error::check(call!(self, 1, sync(flags.raw()) or Code::IOERR_FSYNC.raw()))
    }

    fn size(&mut self) -> Result<u64> {
        const CODE: Code = Code::IOERR_FSTAT;
        let mut size = 0;
        Error::check(call!(self, 1, file_size(&raw mut size) or CODE.raw()))?;
        u64::try_from(size).map_err(|_| CODE.into())
    }

    fn lock(&mut self, level: LockLevel) -> Result<()> {
        Error::check(call!(self, 1, lock(level.raw()) or OK))
    }

    fn unlock(&mut self, level: LockLevel) -> Result<()> {
        Error::check(call!(self, 1, unlock(level.raw()) or OK))
    }

    fn check_reserved_lock(&mut self) -> Result<bool> {
        let mut reserved = 0;
        Error::check(call!(self, 1, check_reserved_lock(&raw mut reserved) or OK))?;
        Ok(reserved != 0)
    }

    fn file_control(&mut self, control: FileControl<'_>) -> Result<Handled> {
        crate::host_control::forward(self, control)
    }

    fn sector_size(&mut self) -> u32 {
        // SQLite's own default, where a host has no opinion.
        u32::try_from(call!(self, 1, sector_size() or 4096)).unwrap_or(4096)
    }

    fn device_characteristics(&mut self) -> DeviceCharacteristics {
        DeviceCharacteristics::from_raw(call!(self, 1, device_characteristics() or 0))
    }

    fn has_shared_memory(&self) -> bool {
        // SAFETY: the file is open, so it has a method table, which begins with its version, and
        // from version 2 on has this field.
        unsafe {
            let methods = (*self.handle.as_ptr()).methods;
            (*methods).version >= 2 && (*methods).shm_map.is_some()
        }
    }

    fn shm_map(&mut self, region: usize, size: usize, extend: bool) -> Result<ShmMapping> {
        const CODE: Code = Code::IOERR_SHMMAP;
        let (region, size) = (c_length(region, CODE)?, c_length(size, CODE)?);
        let mut address: *mut c_void = null_mut();
        let extend = c_int::from(extend);
        let code = call!(self, 2, shm_map(region, size, extend, &raw mut address) or CODE.raw());
        let read_only = code == Code::READONLY.raw();
        if !read_only {
            Error::check(code)?;
        }
        // SAFETY: the host maps the region for SQLite, under the same terms as are asked of us.
        let region = NonNull::new(address.cast()).map(|at| unsafe { SharedRegion::new(at) });
        Ok(ShmMapping { region, read_only })
    }

    fn shm_lock(&mut self, slot: usize, count: usize, lock: ShmLock) -> Result<()> {
        const CODE: Code = Code::IOERR_SHMLOCK;
        let (slot, count) = (c_length(slot, CODE)?, c_length(count, CODE)?);
        Error::check(call!(self, 2, shm_lock(slot, count, lock.raw()) or CODE.raw()))
    }

    fn shm_barrier(&mut self) {
        call!(self, 2, shm_barrier() or ());
    }

    fn shm_unmap(&mut self, delete: bool) -> Result<()> {
        Error::check(call!(self, 2, shm_unmap(c_int::from(delete)) or OK))
    }

    fn fetch(&mut self, offset: u64, amount: usize) -> Result<Option<PagePointer>> {
        const CODE: Code = Code::IOERR_MMAP;
        let (at, amount) = (c_offset(offset, CODE)?, c_length(amount, CODE)?);
        let mut address: *mut c_void = null_mut();
        Error::check(call!(self, 3, fetch(at, amount, &raw mut address) or OK))?;
        // SAFETY: the host maps the bytes for SQLite, under the same terms as are asked of us.
        Ok(NonNull::new(address.cast()).map(|at| unsafe { PagePointer::new(at) }))
    }

    fn unfetch(&mut self, offset: u64, page: Option<PagePointer>) -> Result<()> {
        let at = c_offset(offset, Code::IOERR_MMAP)?;
        let address = page.map_or(null_mut(), |page| page.address().as_ptr().cast::<c_void>());
        Error::check(call!(self, 3, unfetch(at, address) or OK))
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        Error::check(self.close_once())
    }
}

impl Drop for HostFile {
    fn drop(&mut self) {
        self.close_once();
        // SAFETY: made by `Box::into_raw` in `open`, and freed only here.
        drop(unsafe { Box::from_raw(self.memory) });
    }
}

impl fmt::Debug for HostFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostFile").field("open", &self.is_open()).finish_non_exhaustive()
    }
}
