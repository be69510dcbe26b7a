//! Passing a typed file control on to the host's file: from [`FileControl`] back to what C passed.
//!
//! The inverse of `control_calls`: for every variant the host gets the number and an argument of
//! the type that sqlite3.h states for it.

use crate::code::Code;
use crate::control::{FileControl, Handled};
use crate::error::Result;
use crate::host_file::HostFile;
use crate::name::c_path;
use crate::op;
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;

/// A pointer as the argument of a control.
fn argument<T>(value: &mut T) -> *mut c_void {
    (&raw mut *value).cast()
}

/// Sends a control to the host's file.
pub(crate) fn forward(file: &mut HostFile, control: FileControl<'_>) -> Result<Handled> {
    let mut send = |op, argument| {
        // SAFETY: each call below pairs a control with the argument that sqlite3.h states for it,
        // made by SQLite or from a value of that type which outlives the call.
        unsafe { file.file_control_raw(op, argument) }
    };
    match control {
        FileControl::LockState(level) => send(op::LOCKSTATE, argument(level)),
        FileControl::LastErrno(errno) => send(op::LAST_ERRNO, argument(errno)),
        FileControl::SizeHint(mut size) => send(op::SIZE_HINT, argument(&mut size)),
        FileControl::ChunkSize(mut size) => send(op::CHUNK_SIZE, argument(&mut size)),
        FileControl::PersistWal(setting) => send(op::PERSIST_WAL, argument(setting)),
        FileControl::Overwrite(mut size) => {
            send(op::OVERWRITE, size.as_mut().map_or(null_mut(), argument))
        }
        FileControl::VfsName(mut name) => send(op::VFSNAME, name.raw()),
        FileControl::PowersafeOverwrite(setting) => {
            send(op::POWERSAFE_OVERWRITE, argument(setting))
        }
        FileControl::Pragma(mut pragma) => send(op::PRAGMA, pragma.raw()),
        FileControl::BusyHandler(handler) => match handler.raw() {
            Some(raw) => send(op::BUSYHANDLER, raw),
            None => Ok(Handled::No),
        },
        FileControl::TempFilename(mut path) => send(op::TEMPFILENAME, path.raw()),
        FileControl::MmapSize(size) => send(op::MMAP_SIZE, argument(size)),
        FileControl::Trace(text) => send(op::TRACE, text.as_ptr().cast_mut().cast()),
        FileControl::HasMoved(moved) => {
            let mut answer = c_int::from(*moved);
            let handled = send(op::HAS_MOVED, argument(&mut answer))?;
            *moved = answer != 0;
            Ok(handled)
        }
        FileControl::Sync { super_journal: None } => send(op::SYNC, null_mut()),
        FileControl::Sync { super_journal: Some(path) } => {
            let path = c_path(path, Code::IOERR_FSYNC)?;
            send(op::SYNC, path.as_ptr().cast_mut().cast())
        }
        FileControl::CommitPhaseTwo => send(op::COMMIT_PHASETWO, null_mut()),
        FileControl::Pdb(connection) => send(op::PDB, connection.raw()),
        FileControl::BeginAtomicWrite => send(op::BEGIN_ATOMIC_WRITE, null_mut()),
        FileControl::CommitAtomicWrite => send(op::COMMIT_ATOMIC_WRITE, null_mut()),
        FileControl::RollbackAtomicWrite => send(op::ROLLBACK_ATOMIC_WRITE, null_mut()),
        FileControl::LockTimeout(time) => send(op::LOCK_TIMEOUT, argument(time)),
        FileControl::SizeLimit(size) => send(op::SIZE_LIMIT, argument(size)),
        FileControl::CheckpointDone => send(op::CKPT_DONE, null_mut()),
        FileControl::CheckpointStart => send(op::CKPT_START, null_mut()),
        FileControl::ExternalReader(reader) => send(op::EXTERNAL_READER, argument(reader)),
        FileControl::Unknown(unknown) => send(unknown.op(), unknown.argument()),
    }
}
