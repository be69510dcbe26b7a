//! The trampolines of `sqlite3_io_methods`: from SQLite's calls to [`File`].
//!
//! Each does the same: null check, wall against panics, door (`FileCell`), call, error to number.
//! Owns the handle that SQLite allocates for us and the two method tables.
//!
//! Invariants: a handle whose `methods` is one of our tables holds a `FileCell`; `xClose` takes it
//! out.

use crate::arguments::{asked, asked_of_index, count, store, unsigned};
use crate::cell::{FileCell, Way};
use crate::code::{Code, OK};
use crate::error::{Error, Result, answer};
use crate::file::{File, PagePointer};
use crate::flags::{LockLevel, ShmLock, SyncFlags};
use crate::guard::guarded;
use crate::sys::{IoMethods, RawFile};
use crate::window::Window;
use core::ffi::{c_int, c_void};
use core::mem::offset_of;
use core::ptr::{NonNull, null};
use core::sync::atomic::{AtomicPtr, Ordering};

/// What SQLite allocates for each file (`szOsFile`): the head that it knows, then ours.
#[repr(C)]
pub(crate) struct Handle {
    head: RawFile,
    cell: *mut FileCell,
}

const _: () = assert!(offset_of!(Handle, head) == 0);

impl Handle {
    /// Makes a handle a file of ours.
    ///
    /// # Safety
    ///
    /// `file` points to memory for a [`Handle`] that no open file is in.
    pub(crate) unsafe fn fill(file: *mut RawFile, cell: FileCell, has_shared_memory: bool) {
        let head = RawFile { methods: table(has_shared_memory) };
        let cell = Box::into_raw(Box::new(cell));
        // SAFETY: memory for a handle, as the caller states.
        unsafe { file.cast::<Handle>().write(Handle { head, cell }) };
    }

    /// Gives the handle the table for a file with shared memory, or for one without.
    ///
    /// # Safety
    ///
    /// `file` is an open handle of ours; SQLite has no log of it open if shared memory goes away.
    pub(crate) unsafe fn fit(file: *mut RawFile, has_shared_memory: bool) {
        // SAFETY: an open handle; others only read the field, and either table will do for them.
        let place = unsafe { AtomicPtr::from_ptr((&raw mut (*file).methods).cast()) };
        place.store(table(has_shared_memory).cast_mut(), Ordering::Relaxed);
    }

    /// The file in a handle; `None` if it isn't one of ours.
    ///
    /// # Safety
    ///
    /// `file` is null or points to an `sqlite3_file`, open or with null methods, which stays open
    /// for `'a`.
    pub(crate) unsafe fn cell<'a>(file: *mut RawFile) -> Option<&'a FileCell> {
        if file.is_null() {
            return None;
        }
        // SAFETY: not null, so there is at least the head.
        let methods = unsafe { (*file).methods };
        if methods != &raw const METHODS && methods != &raw const METHODS_WITHOUT_SHM {
            return None;
        }
        // SAFETY: with our methods it is our handle, whose cell lives until `xClose`.
        Some(unsafe { &*(*file.cast::<Handle>()).cell })
    }
}

/// With it WAL mode is possible.
static METHODS: IoMethods = IoMethods {
    version: 3,
    close: Some(x_close),
    read: Some(x_read),
    write: Some(x_write),
    truncate: Some(x_truncate),
    sync: Some(x_sync),
    file_size: Some(x_file_size),
    lock: Some(x_lock),
    unlock: Some(x_unlock),
    check_reserved_lock: Some(x_check_reserved_lock),
    file_control: Some(crate::control_calls::x_file_control),
    sector_size: Some(x_sector_size),
    device_characteristics: Some(x_device_characteristics),
    shm_map: Some(x_shm_map),
    shm_lock: Some(x_shm_lock),
    shm_barrier: Some(x_shm_barrier),
    shm_unmap: Some(x_shm_unmap),
    fetch: Some(x_fetch),
    unfetch: Some(x_unfetch),
};

/// Without shared memory SQLite answers `PRAGMA journal_mode=WAL` with the mode it keeps.
static METHODS_WITHOUT_SHM: IoMethods =
    IoMethods { shm_map: None, shm_lock: None, shm_barrier: None, shm_unmap: None, ..METHODS };

/// The table for a file.
fn table(has_shared_memory: bool) -> *const IoMethods {
    if has_shared_memory { &raw const METHODS } else { &raw const METHODS_WITHOUT_SHM }
}

/// Calls the file of a handle behind the wall, and answers the number for SQLite.
///
/// # Safety
///
/// As for [`Handle::cell`]; SQLite keeps a file open during its methods.
unsafe fn call(
    file: *mut RawFile,
    what: &str,
    f: impl FnOnce(&mut dyn File) -> Result<()>,
) -> c_int {
    // SAFETY: as the caller states.
    let Some(cell) = (unsafe { Handle::cell(file) }) else {
        return Code::MISUSE.raw();
    };
    enter(cell, what, f).map_or_else(|error| cell.report(error), |()| OK)
}

/// Calls a file behind the wall; a panic latches it.
///
/// # Errors
///
/// Those of `f` and of the door; `SQLITE_IOERR` after a panic.
pub(crate) fn enter<R>(
    cell: &FileCell,
    what: &str,
    f: impl FnOnce(&mut dyn File) -> Result<R>,
) -> Result<R> {
    guarded(what, Code::IOERR, || cell.enter(Way::Callback, f), |cause| cell.latch(cause))
}

unsafe extern "C" fn x_close(file: *mut RawFile) -> c_int {
    // SAFETY: SQLite passes a handle that it opened.
    let Some(cell) = (unsafe { Handle::cell(file) }) else {
        return OK;
    };
    let slot = cell.slot;
    // SAFETY: ours, made by `fill` with `Box::into_raw`; null methods make sure that this is the
    // only time.
    let cell = unsafe {
        (*file).methods = null();
        Box::from_raw((*file.cast::<Handle>()).cell)
    };
    let (inner, lease) = cell.take();
    let close = || inner.map_or(Ok(()), |file| file.close());
    let code = answer(slot.api, guarded("xClose", Code::IOERR_CLOSE, close, |_| ()));
    lease.end();
    slot.closed();
    code
}

unsafe extern "C" fn x_read(file: *mut RawFile, to: *mut c_void, amount: c_int, at: i64) -> c_int {
    // SAFETY: SQLite passes an open file of ours.
    let Some(cell) = (unsafe { Handle::cell(file) }) else {
        return Code::MISUSE.raw();
    };
    let read = |file: &mut dyn File| {
        let (length, offset) = (count(amount)?, unsigned(at)?);
        if to.is_null() {
            return Err(Code::MISUSE.into());
        }
        // SAFETY: SQLite passes `amount` bytes to be written, which nobody else touches meanwhile.
        let buffer = unsafe { core::slice::from_raw_parts_mut(to.cast::<u8>(), length) };
        let there = file.read(buffer, offset)?;
        let rest = buffer.get_mut(there..).ok_or_else(|| {
            Error::new(
                Code::IOERR_READ,
                format!("{there} bytes read where {length} were asked for"),
            )
        })?;
        rest.fill(0);
        Ok(rest.is_empty())
    };
    match enter(cell, "xRead", read) {
        Ok(true) => OK,
        Ok(false) => Code::IOERR_SHORT_READ.raw(),
        Err(error) => cell.report(error),
    }
}

unsafe extern "C" fn x_write(
    file: *mut RawFile,
    from: *const c_void,
    amount: c_int,
    at: i64,
) -> c_int {
    let write = |file: &mut dyn File| {
        let (length, offset) = (count(amount)?, unsigned(at)?);
        if from.is_null() {
            return Err(Code::MISUSE.into());
        }
        // SAFETY: SQLite passes `amount` bytes to be read, which nobody writes meanwhile.
        file.write(unsafe { core::slice::from_raw_parts(from.cast::<u8>(), length) }, offset)
    };
    // SAFETY: SQLite passes an open file of ours.
    unsafe { call(file, "xWrite", write) }
}

unsafe extern "C" fn x_truncate(file: *mut RawFile, size: i64) -> c_int {
    // SAFETY: SQLite passes an open file of ours.
    unsafe { call(file, "xTruncate", |file| file.truncate(unsigned(size)?)) }
}

unsafe extern "C" fn x_sync(file: *mut RawFile, flags: c_int) -> c_int {
    // SAFETY: SQLite passes an open file of ours.
    unsafe { call(file, "xSync", |file| file.sync(SyncFlags::from_raw(flags))) }
}

unsafe extern "C" fn x_file_size(file: *mut RawFile, size: *mut i64) -> c_int {
    let answer = |file: &mut dyn File| {
        let value = i64::try_from(file.size()?).map_err(|_| Code::IOERR_FSTAT)?;
        // SAFETY: SQLite passes a place for the answer.
        unsafe { store(size, value) };
        Ok(())
    };
    // SAFETY: SQLite passes an open file of ours.
    unsafe { call(file, "xFileSize", answer) }
}

/// Calls the file, and gives the handle the method table that it needs then: a change of its locks
/// may have changed its mode.
///
/// # Safety
///
/// As for [`call`].
unsafe fn call_and_fit(
    file: *mut RawFile,
    what: &str,
    f: impl FnOnce(&mut dyn File) -> Result<()>,
) -> c_int {
    let mut has = None;
    let call_and_ask = |file: &mut dyn File| {
        f(file)?;
        has = Some(file.has_shared_memory());
        Ok(())
    };
    // SAFETY: as the caller states.
    let code = unsafe { call(file, what, call_and_ask) };
    // SAFETY: as above; a file keeps its shared memory while SQLite has a log of it open.
    has.inspect(|has| unsafe { Handle::fit(file, *has) });
    code
}

unsafe extern "C" fn x_lock(file: *mut RawFile, level: c_int) -> c_int {
    // SAFETY: SQLite passes an open file of ours.
    unsafe { call_and_fit(file, "xLock", |file| file.lock(asked(LockLevel::from_raw(level)?))) }
}

unsafe extern "C" fn x_unlock(file: *mut RawFile, level: c_int) -> c_int {
    // SAFETY: SQLite passes an open file of ours.
    unsafe { call_and_fit(file, "xUnlock", |file| file.unlock(LockLevel::from_raw(level)?)) }
}

unsafe extern "C" fn x_check_reserved_lock(file: *mut RawFile, reserved: *mut c_int) -> c_int {
    let answer = |file: &mut dyn File| {
        let value = c_int::from(file.check_reserved_lock()?);
        // SAFETY: SQLite passes a place for the answer.
        unsafe { store(reserved, value) };
        Ok(())
    };
    // SAFETY: SQLite passes an open file of ours.
    unsafe { call(file, "xCheckReservedLock", answer) }
}

/// SQLite's own default, for a file that can't be asked.
const DEFAULT_SECTOR_SIZE: c_int = 4096;

unsafe extern "C" fn x_sector_size(file: *mut RawFile) -> c_int {
    let mut size = DEFAULT_SECTOR_SIZE;
    let ask = |file: &mut dyn File| {
        size = c_int::try_from(file.sector_size()).unwrap_or(DEFAULT_SECTOR_SIZE);
        Ok(())
    };
    // SAFETY: SQLite passes an open file of ours.
    unsafe { call(file, "xSectorSize", ask) };
    size
}

unsafe extern "C" fn x_device_characteristics(file: *mut RawFile) -> c_int {
    let mut promises = 0;
    let ask = |file: &mut dyn File| {
        promises = file.device_characteristics().raw();
        Ok(())
    };
    // SAFETY: SQLite passes an open file of ours.
    unsafe { call(file, "xDeviceCharacteristics", ask) };
    promises
}

unsafe extern "C" fn x_shm_map(
    file: *mut RawFile,
    region: c_int,
    size: c_int,
    extend: c_int,
    address: *mut *mut c_void,
) -> c_int {
    let map = |file: &mut dyn File| {
        let mapping = file.shm_map(count(region)?, count(size)?, extend != 0)?;
        let start = mapping.region.map_or(core::ptr::null_mut(), |r| r.address().as_ptr().cast());
        // SAFETY: SQLite passes a place for the answer.
        unsafe { store(address, start) };
        if mapping.read_only { Err(Code::READONLY.into()) } else { Ok(()) }
    };
    // SAFETY: SQLite passes an open file of ours.
    unsafe { call(file, "xShmMap", map) }
}

unsafe extern "C" fn x_shm_lock(file: *mut RawFile, slot: c_int, n: c_int, flags: c_int) -> c_int {
    let lock = |file: &mut dyn File| {
        let slot = count(slot)?;
        file.shm_lock(slot, count(n)?, asked_of_index(slot, ShmLock::from_raw(flags)?))
    };
    // SAFETY: SQLite passes an open file of ours.
    unsafe { call(file, "xShmLock", lock) }
}

unsafe extern "C" fn x_shm_barrier(file: *mut RawFile) {
    let barrier = |file: &mut dyn File| {
        file.shm_barrier();
        Ok(())
    };
    // SAFETY: SQLite passes an open file of ours.
    unsafe { call(file, "xShmBarrier", barrier) };
}

unsafe extern "C" fn x_shm_unmap(file: *mut RawFile, delete: c_int) -> c_int {
    // SAFETY: SQLite passes an open file of ours.
    unsafe { call(file, "xShmUnmap", |file| file.shm_unmap(delete != 0)) }
}

unsafe extern "C" fn x_fetch(
    file: *mut RawFile,
    at: i64,
    amount: c_int,
    address: *mut *mut c_void,
) -> c_int {
    // SAFETY: SQLite passes an open file of ours.
    let window = unsafe { Handle::cell(file) }.and_then(FileCell::window);
    if !address.is_null()
        && let Some(page) = window.and_then(|window| window.page(at, amount))
    {
        // SAFETY: not null, so SQLite's place for the answer.
        unsafe { address.write(page.as_ptr().cast()) };
        return OK;
    }
    // SAFETY: as SQLite called us.
    unsafe { fetch_from_file(file, at, amount, address) }
}

/// `xFetch` of what is not in the window; apart, so that what is costs no stack frame.
#[inline(never)]
unsafe fn fetch_from_file(
    file: *mut RawFile,
    at: i64,
    amount: c_int,
    address: *mut *mut c_void,
) -> c_int {
    // SAFETY: SQLite passes a place for the answer, which is null unless the file says otherwise.
    unsafe { store(address, core::ptr::null_mut()) };
    let fetch = |file: &mut dyn File| {
        if let Some(page) = file.fetch(unsigned(at)?, count(amount)?)? {
            // SAFETY: as above.
            unsafe { store(address, page.address().as_ptr().cast()) };
        }
        Ok(())
    };
    // SAFETY: SQLite passes an open file of ours.
    unsafe { call(file, "xFetch", fetch) }
}

unsafe extern "C" fn x_unfetch(file: *mut RawFile, at: i64, address: *mut c_void) -> c_int {
    // SAFETY: SQLite passes an open file of ours.
    let window = unsafe { Handle::cell(file) }.and_then(FileCell::window);
    if !address.is_null() && window.is_some_and(Window::take_back) {
        return OK;
    }
    // SAFETY: as SQLite called us.
    unsafe { give_back_to_file(file, at, address) }
}

/// `xUnfetch` of what the window does not count.
#[inline(never)]
unsafe fn give_back_to_file(file: *mut RawFile, at: i64, address: *mut c_void) -> c_int {
    // SAFETY: SQLite gives back what `xFetch` handed out, on the same terms.
    let page = NonNull::new(address.cast()).map(|at| unsafe { PagePointer::new(at) });
    // SAFETY: SQLite passes an open file of ours.
    unsafe { call(file, "xUnfetch", |file| file.unfetch(unsigned(at)?, page)) }
}
