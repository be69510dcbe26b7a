//! The trampolines of `sqlite3_vfs`: from SQLite's calls to [`Vfs`](crate::Vfs), or to the host's
//! VFS.
//!
//! Invariants: `app_data` of our `sqlite3_vfs` is the number of a slot; after a failed `xOpen` the
//! handle's methods are null, so that SQLite does not close what was not opened.

use crate::cell::FileCell;
use crate::clock;
use crate::code::{Code, OK};
use crate::error::{Error, Result, answer, forget, report};
use crate::file_calls::Handle;
use crate::flags::{AccessCheck, FileKind, OpenFlags};
use crate::guard::guarded;
use crate::host::HostVfs;
use crate::name::{FileName, Lease, path};
use crate::slot::Slot;
use crate::sys::{OK_SYMLINK, RawFile, RawVfs, SystemCall};
use crate::vfs::Opened;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::{null, null_mut};
use core::time::Duration;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Our `sqlite3_vfs` for a slot.
pub(crate) fn raw_vfs(slot: usize, name: &'static CStr, host: &HostVfs) -> RawVfs {
    let max_pathname = c_int::try_from(host.max_pathname()).unwrap_or(c_int::MAX);
    RawVfs {
        version: 3,
        file_size: const { FILE_SIZE },
        max_pathname,
        next: null_mut(),
        name: name.as_ptr(),
        app_data: core::ptr::without_provenance_mut(slot),
        open: Some(x_open),
        delete: Some(x_delete),
        access: Some(x_access),
        full_pathname: Some(x_full_pathname),
        dl_open: Some(x_dl_open),
        dl_error: Some(x_dl_error),
        dl_sym: Some(x_dl_sym),
        dl_close: Some(x_dl_close),
        randomness: Some(x_randomness),
        sleep: Some(x_sleep),
        current_time: Some(x_current_time),
        get_last_error: Some(x_get_last_error),
        current_time_int64: Some(x_current_time_int64),
        set_system_call: Some(x_set_system_call),
        get_system_call: Some(x_get_system_call),
        next_system_call: Some(x_next_system_call),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "two pointers, known when compiled"
)]
const FILE_SIZE: c_int = size_of::<Handle>() as c_int;

/// The slot of a VFS of ours.
///
/// # Safety
///
/// `vfs` is null or one that [`raw_vfs`] made.
unsafe fn slot(vfs: *mut RawVfs) -> Option<&'static Slot> {
    if vfs.is_null() {
        return None;
    }
    // SAFETY: ours, as the caller states, and SQLite does not change `app_data`.
    Slot::at(unsafe { (*vfs).app_data }.addr())
}

/// Makes a call behind the wall.
///
/// # Errors
///
/// Those of `call`; `code` after a panic, for a missing slot or for a null path.
///
/// # Safety
///
/// `vfs` as for [`slot`]; `name` is null or a C string.
unsafe fn with_path<R>(
    vfs: *mut RawVfs,
    name: *const c_char,
    (what, code): (&str, Code),
    call: impl FnOnce(&'static Slot, &CStr) -> Result<R>,
) -> core::result::Result<R, c_int> {
    // SAFETY: as the caller states.
    let Some(slot) = (unsafe { slot(vfs) }) else {
        return Err(Code::MISUSE.raw());
    };
    if name.is_null() {
        return Err(Code::MISUSE.raw());
    }
    // SAFETY: not null, and a C string, as the caller states.
    let name = unsafe { CStr::from_ptr(name) };
    guarded(what, code, || call(slot, name), |_| ()).map_err(|error| report(slot.api, &error))
}

/// The number of a result that was reported already.
fn number(result: core::result::Result<c_int, c_int>) -> c_int {
    result.unwrap_or_else(|code| code)
}

unsafe extern "C" fn x_open(
    vfs: *mut RawVfs,
    name: *const c_char,
    file: *mut RawFile,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    if file.is_null() {
        return Code::MISUSE.raw();
    }
    // SAFETY: SQLite passes `szOsFile` bytes for our handle.
    unsafe { (*file).methods = null() };
    // SAFETY: SQLite passes a VFS of ours.
    let Some(slot) = (unsafe { slot(vfs) }) else {
        return Code::MISUSE.raw();
    };
    let lease = Lease::default();
    let path = match name.is_null() {
        true => PathBuf::new(),
        // SAFETY: SQLite's own name, a C string.
        false => path(unsafe { CStr::from_ptr(name) }).to_owned(),
    };
    let flags = OpenFlags::from_raw(flags);
    if flags.kind() == Some(FileKind::MainDb) {
        forget();
    }
    let open = || {
        // SAFETY: SQLite's own name, which it keeps until `xClose`, or until a failed `xOpen`
        // returns.
        let name = unsafe { FileName::new(name, flags, slot.api, &lease) };
        let opened = slot.vfs.open(&slot.host, name, flags)?;
        let has_shared_memory = opened.file.has_shared_memory();
        Ok((opened, has_shared_memory))
    };
    // Counted from here on: what fails to open closes what it has opened.
    slot.opened();
    match guarded("xOpen", Code::CANTOPEN, open, |_| ()) {
        Ok((Opened { file: inner, flags }, has_shared_memory)) => {
            let cell = FileCell::new(slot, inner, (lease, path));
            // SAFETY: SQLite passes memory for our handle, and a place for the flags or null.
            unsafe {
                Handle::fill(file, cell, has_shared_memory);
                if !out_flags.is_null() {
                    out_flags.write(flags.raw());
                }
            }
            OK
        }
        Err(error) => {
            lease.end();
            slot.closed();
            report(slot.api, &error.in_folder_of(&path))
        }
    }
}

unsafe extern "C" fn x_delete(vfs: *mut RawVfs, name: *const c_char, sync_dir: c_int) -> c_int {
    let delete = |slot: &'static Slot, name: &CStr| {
        slot.vfs.delete(&slot.host, path(name), sync_dir != 0).map(|()| OK)
    };
    // SAFETY: SQLite passes a VFS of ours and a path.
    number(unsafe { with_path(vfs, name, ("xDelete", Code::IOERR_DELETE), delete) })
}

unsafe extern "C" fn x_access(
    vfs: *mut RawVfs,
    name: *const c_char,
    flags: c_int,
    result: *mut c_int,
) -> c_int {
    let access = |slot: &'static Slot, name: &CStr| {
        let check = AccessCheck::from_raw(flags);
        let value = slot.vfs.access(&slot.host, path(name), check)?;
        if !result.is_null() {
            // SAFETY: SQLite passes a place for the answer.
            unsafe { result.write(c_int::from(value)) };
        }
        Ok(OK)
    };
    // SAFETY: SQLite passes a VFS of ours and a path.
    number(unsafe { with_path(vfs, name, ("xAccess", Code::IOERR_ACCESS), access) })
}

unsafe extern "C" fn x_full_pathname(
    vfs: *mut RawVfs,
    name: *const c_char,
    size: c_int,
    to: *mut c_char,
) -> c_int {
    let full = |slot: &'static Slot, name: &CStr| {
        let full = slot.vfs.full_pathname(&slot.host, path(name))?;
        let bytes = full.path.as_os_str().as_bytes();
        // One byte for the zero at the end.
        if to.is_null() || usize::try_from(size).is_ok_and(|size| bytes.len() >= size) || size <= 0
        {
            let message = format!("{}: the path is too long", full.path.display());
            return Err(Error::new(Code::CANTOPEN_FULLPATH, message));
        }
        // SAFETY: `size` bytes may be written, more than the path has.
        unsafe {
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast(), bytes.len());
            to.add(bytes.len()).write(0);
        }
        Ok(if full.symlink { OK_SYMLINK } else { OK })
    };
    // SAFETY: SQLite passes a VFS of ours and a path.
    number(unsafe { with_path(vfs, name, ("xFullPathname", Code::CANTOPEN_FULLPATH), full) })
}

unsafe extern "C" fn x_sleep(vfs: *mut RawVfs, micros: c_int) -> c_int {
    // SAFETY: SQLite passes a VFS of ours.
    let Some(slot) = (unsafe { slot(vfs) }) else {
        return 0;
    };
    let time = Duration::from_micros(u64::try_from(micros).unwrap_or(0));
    let sleep = || Ok(slot.vfs.sleep(&slot.host, time));
    match guarded("xSleep", Code::INTERNAL, sleep, |_| ()) {
        Ok(slept) => c_int::try_from(slept.as_micros()).unwrap_or(c_int::MAX),
        Err(error) => {
            report(slot.api, &error);
            0
        }
    }
}

unsafe extern "C" fn x_get_last_error(vfs: *mut RawVfs, size: c_int, to: *mut c_char) -> c_int {
    // SAFETY: SQLite passes a VFS of ours.
    let Some(slot) = (unsafe { slot(vfs) }) else {
        return 0;
    };
    if size > 0 && !to.is_null() {
        // SAFETY: at least one byte may be written: an empty text, as the stock VFS gives.
        unsafe { to.write(0) };
    }
    let errno = || Ok(slot.vfs.last_error(&slot.host));
    guarded("xGetLastError", Code::INTERNAL, errno, |_| ()).unwrap_or(0)
}

unsafe extern "C" fn x_current_time_int64(vfs: *mut RawVfs, time: *mut i64) -> c_int {
    // SAFETY: SQLite passes a VFS of ours.
    let Some(slot) = (unsafe { slot(vfs) }) else {
        return Code::MISUSE.raw();
    };
    let result = slot.host.current_time().map(|now| {
        clock::note(now);
        if !time.is_null() {
            // SAFETY: SQLite passes a place for the answer.
            unsafe { time.write(now) };
        }
    });
    answer(slot.api, result)
}

/// Methods that the host's VFS answers in our place, and what they answer if the host lacks them.
macro_rules! host_methods {
    ($($name:ident, $since:literal, $method:ident($($argument:ident: $type:ty),*)
        $(-> $result:ty, $absent:expr)?;)*) => {$(
        unsafe extern "C" fn $name(vfs: *mut RawVfs, $($argument: $type),*) $(-> $result)? {
            // SAFETY: SQLite passes a VFS of ours; the field is read only from a host whose version
            // has it; the host's method gets its own VFS, and the arguments that SQLite passed.
            unsafe {
                let host = slot(vfs).map(|slot| slot.host).filter(|host| host.version() >= $since);
                let method = host.and_then(|host| Some((host.as_ptr(), (*host.as_ptr()).$method?)));
                match method {
                    Some((host, method)) => method(host, $($argument),*),
                    None => { $($absent)? }
                }
            }
        }
    )*};
}

host_methods! {
    x_dl_open, 1, dl_open(name: *const c_char) -> *mut c_void, null_mut();
    x_dl_error, 1, dl_error(size: c_int, to: *mut c_char);
    x_dl_sym, 1, dl_sym(library: *mut c_void, symbol: *const c_char) -> SystemCall, None;
    x_dl_close, 1, dl_close(library: *mut c_void);
    x_randomness, 1, randomness(size: c_int, to: *mut c_char) -> c_int, 0;
    x_current_time, 1, current_time(days: *mut f64) -> c_int, Code::ERROR.raw();
    x_set_system_call, 3, set_system_call(name: *const c_char, call: SystemCall) -> c_int,
        Code::NOTFOUND.raw();
    x_get_system_call, 3, get_system_call(name: *const c_char) -> SystemCall, None;
    x_next_system_call, 3, next_system_call(name: *const c_char) -> *const c_char, null();
}
