//! The trampoline of `xFileControl`: from a number and a pointer to [`FileControl`], and back.
//!
//! Rules that hold here, whatever the file does: VFSNAME names our VFS before what the file
//! answers; the message of an error on a PRAGMA becomes the text that the user reads; statements
//! that a file wants run for a PRAGMA run outside the file; what a file does not handle is
//! `SQLITE_NOTFOUND`.

use crate::api::{Api, c_text};
use crate::cell::FileCell;
use crate::code::{Code, OK};
use crate::connection::{ConnectionHandle, ConnectionRef};
use crate::control::{
    BusyHandler, FileControl, Handled, Pragma, TempFilename, UnknownControl, VfsName,
};
use crate::errand::{Errand, Place};
use crate::error::{Error, Result};
use crate::file_calls::{Handle, enter};
use crate::name::path;
use crate::op;
use crate::slot::Slot;
use crate::sys::RawFile;
use core::ffi::{CStr, c_char, c_int, c_void};

pub(crate) unsafe extern "C" fn x_file_control(
    file: *mut RawFile,
    op: c_int,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: SQLite passes an open file of ours.
    let Some(cell) = (unsafe { Handle::cell(file) }) else {
        return Code::MISUSE.raw();
    };
    // SAFETY: SQLite and applications pass what sqlite3.h states for `op`.
    let result = unsafe {
        match op {
            op::VFSNAME if !argument.is_null() => vfs_name(cell, argument.cast()),
            op::PRAGMA if !argument.is_null() => {
                let result = pragma(cell, file, argument.cast());
                fit(cell, file);
                result
            }
            op::FILE_BELOW
                if argument.cast::<Sought>().as_mut().is_some_and(|it| it.is(cell, file)) =>
            {
                Ok(Handled::Yes)
            }
            op::HAS_MOVED if !argument.is_null() => has_moved(cell, argument.cast()),
            _ => plain(cell, op, argument),
        }
    };
    match result {
        Ok(Handled::Yes) => OK,
        Ok(Handled::No) => Code::NOTFOUND.raw(),
        Err(error) => cell.report(error),
    }
}

/// Sends a control to the file.
fn send(cell: &FileCell, control: FileControl<'_>) -> Result<Handled> {
    enter(cell, "xFileControl", |file| file.file_control(control))
}

/// What `FILE_BELOW` asks for: the file of an extension's VFS.
#[repr(C)]
pub(crate) struct Sought {
    pub(crate) slot: *const Slot,
    pub(crate) file: *mut RawFile,
}

impl Sought {
    /// Whether it is this one, which is noted then.
    fn is(&mut self, cell: &FileCell, file: *mut RawFile) -> bool {
        let is_it = core::ptr::eq(self.slot, cell.slot);
        if is_it {
            self.file = file;
        }
        is_it
    }
}

/// Controls that need nothing done before or after.
///
/// # Safety
///
/// `argument` is what sqlite3.h states for `op`, or null.
unsafe fn plain(cell: &FileCell, op: c_int, argument: *mut c_void) -> Result<Handled> {
    // SAFETY: as the caller states; each control reads its own argument as sqlite3.h types it, and
    // only if it is not null.
    let control = unsafe { decode(cell, op, argument) };
    send(cell, control.unwrap_or_else(|| FileControl::Unknown(UnknownControl::new(op, argument))))
}

/// The control, if it is known and has the argument that it needs.
///
/// # Safety
///
/// `argument` is what sqlite3.h states for `op`, or null, and stays so for `'a`.
unsafe fn decode<'a>(
    cell: &'a FileCell,
    op: c_int,
    argument: *mut c_void,
) -> Option<FileControl<'a>> {
    let api: &Api = cell.slot.api;
    // SAFETY: the types are those that sqlite3.h states for the control at hand.
    unsafe {
        Some(match op {
            op::LOCKSTATE => FileControl::LockState(argument.cast::<i32>().as_mut()?),
            op::LAST_ERRNO => FileControl::LastErrno(argument.cast::<i32>().as_mut()?),
            op::SIZE_HINT => FileControl::SizeHint(*argument.cast::<i64>().as_ref()?),
            op::CHUNK_SIZE => FileControl::ChunkSize(*argument.cast::<i32>().as_ref()?),
            op::PERSIST_WAL => FileControl::PersistWal(argument.cast::<i32>().as_mut()?),
            op::OVERWRITE => FileControl::Overwrite(argument.cast::<i64>().as_ref().copied()),
            op::POWERSAFE_OVERWRITE => {
                FileControl::PowersafeOverwrite(argument.cast::<i32>().as_mut()?)
            }
            op::BUSYHANDLER if !argument.is_null() => {
                FileControl::BusyHandler(BusyHandler::new(argument, cell.gate()))
            }
            op::TEMPFILENAME => {
                let place = argument.cast::<*mut c_char>().as_mut()?;
                FileControl::TempFilename(TempFilename::new(place, api))
            }
            op::MMAP_SIZE => FileControl::MmapSize(argument.cast::<i64>().as_mut()?),
            op::TRACE if !argument.is_null() => FileControl::Trace(CStr::from_ptr(argument.cast())),
            op::SYNC if argument.is_null() => FileControl::Sync { super_journal: None },
            op::SYNC => {
                FileControl::Sync { super_journal: Some(path(CStr::from_ptr(argument.cast()))) }
            }
            op::COMMIT_PHASETWO => FileControl::CommitPhaseTwo,
            op::PDB if !argument.is_null() => {
                cell.belongs_to(argument.cast());
                FileControl::Pdb(ConnectionHandle::new(argument.cast(), cell))
            }
            op::BEGIN_ATOMIC_WRITE => FileControl::BeginAtomicWrite,
            op::COMMIT_ATOMIC_WRITE => FileControl::CommitAtomicWrite,
            op::ROLLBACK_ATOMIC_WRITE => FileControl::RollbackAtomicWrite,
            op::LOCK_TIMEOUT => FileControl::LockTimeout(argument.cast::<i32>().as_mut()?),
            op::SIZE_LIMIT => FileControl::SizeLimit(argument.cast::<i64>().as_mut()?),
            op::CKPT_DONE => FileControl::CheckpointDone,
            op::CKPT_START => FileControl::CheckpointStart,
            op::EXTERNAL_READER => FileControl::ExternalReader(argument.cast::<i32>().as_mut()?),
            _ => return None,
        })
    }
}

/// VFSNAME: "dash/unix", "dash/cksmvfs/unix": each VFS puts its name before that of the one below.
///
/// # Safety
///
/// `place` may be written; SQLite frees what is stored there.
unsafe fn vfs_name(cell: &FileCell, place: *mut *mut c_char) -> Result<Handled> {
    let api: &Api = cell.slot.api;
    let mut below: *mut c_char = core::ptr::null_mut();
    // SAFETY: `below` is null, and only ever holds a text of this SQLite.
    let asked = send(cell, FileControl::VfsName(unsafe { VfsName::new(&mut below, api) }));
    let below_name = if below.is_null() {
        cell.slot.host.name().to_string_lossy().into_owned()
    } else {
        // SAFETY: a C string that the file or its host just filled in.
        unsafe { CStr::from_ptr(below) }.to_string_lossy().into_owned()
    };
    let name = format!("{}/{below_name}", cell.slot.name.to_string_lossy());
    // SAFETY: a text of this SQLite, or null, which is used no longer; and a place to write to.
    unsafe {
        api.replace(&mut below, core::ptr::null_mut());
        place.write(api.allocate(&name));
    }
    asked.map(|_| Handled::Yes)
}

/// The connection that a PRAGMA is given on, if it is known, and the file it is about.
struct Home<'a> {
    connection: Option<ConnectionRef<'a>>,
    file: *mut RawFile,
}

impl Place for Home<'_> {
    fn schema(&self) -> Option<String> {
        self.connection.as_ref()?.schema_of(self.file)
    }

    fn run(&self, sql: &str) -> Result<()> {
        match &self.connection {
            Some(connection) => connection.run(sql),
            None => Err(Error::from(Code::MISUSE)),
        }
    }
}

/// PRAGMA: the file's answer, or the message of its error, is what the user reads. It is sent again
/// when the statements have run that the file asked for.
///
/// # Safety
///
/// `file` is that of the cell, and open. `texts` points to three C strings: a place for the answer,
/// which SQLite frees if the control is handled, the name, and the value or null.
unsafe fn pragma(cell: &FileCell, file: *mut RawFile, texts: *mut *mut c_char) -> Result<Handled> {
    let api: &Api = cell.slot.api;
    // SAFETY: SQLite sends a PRAGMA to the file of a b-tree, on the connection that it belongs to;
    // so the place that it has told is good, and the connection this thread's.
    let connection = unsafe {
        let place = cell.connection();
        if place.is_null() { None } else { ConnectionRef::new(*place, cell.slot) }
    };
    let home = Home { connection, file };
    let errand = Errand::new(&home);
    let ask = || {
        // SAFETY: as the caller states.
        let control = match unsafe { Pragma::new(texts, api, &errand) } {
            Some(pragma) => FileControl::Pragma(pragma),
            None => FileControl::Unknown(UnknownControl::new(op::PRAGMA, texts.cast())),
        };
        send(cell, control)
    };
    let mut result = ask();
    if errand.run() {
        result = ask();
        // What it wants to have put right after a failure.
        errand.run();
    }
    // SAFETY: the first text is null or was allocated by this SQLite; the pragma is gone.
    unsafe {
        match &result {
            Ok(Handled::Yes) => {}
            // SQLite does not look at the answer then, so it would not free it either.
            Ok(Handled::No) => api.replace(&mut *texts, core::ptr::null_mut()),
            // An error without a message may come from a VFS below, which left its own text.
            Err(error) => {
                if let Some(message) = &error.message {
                    api.replace(&mut *texts, api.allocate_bytes(&c_text(message)));
                }
            }
        }
    }
    result
}

/// Gives a file the method table that it needs after a PRAGMA, which may have changed its mode.
///
/// # Safety
///
/// `file` is that of the cell, and open.
unsafe fn fit(cell: &FileCell, file: *mut RawFile) {
    if let Ok(has) = enter(cell, "xFileControl", |file| Ok(file.has_shared_memory())) {
        // SAFETY: as the caller states.
        unsafe { Handle::fit(file, has) };
    }
}

/// HAS_MOVED: an int for C, a truth value for the file.
///
/// # Safety
///
/// `answer` may be read and written.
unsafe fn has_moved(cell: &FileCell, answer: *mut c_int) -> Result<Handled> {
    // SAFETY: as the caller states.
    let mut moved = unsafe { *answer } != 0;
    let handled = send(cell, FileControl::HasMoved(&mut moved))?;
    // SAFETY: as the caller states.
    unsafe { *answer = c_int::from(moved) };
    Ok(handled)
}
