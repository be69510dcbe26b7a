//! Calls that find somebody in the way, as steps of a checkpoint may: that is no failure to SQLite
//! (wal.c `walCheckpoint`).

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use dash_ffi::{Code, Result};

/// Which call of a kind it is, from 1; 0: none.
#[derive(Debug, Default)]
pub(super) struct Busy {
    flush: AtomicUsize,
    write: AtomicUsize,
}

impl Busy {
    /// `flush 1`: the next flush of `-wal`; `write 3`: the third write of the database from now on.
    pub(super) fn ask_for(&self, what: &str) {
        let (kind, number) = what.split_once(' ').unwrap_or((what, ""));
        let call = if kind == "flush" { &self.flush } else { &self.write };
        call.store(number.parse().unwrap_or(0), SeqCst);
    }

    /// `-wal` is about to be flushed.
    pub(super) fn flushes(&self) -> Result<()> {
        next(&self.flush)
    }

    /// The database is about to be written.
    pub(super) fn writes(&self) -> Result<()> {
        next(&self.write)
    }
}

fn next(call: &AtomicUsize) -> Result<()> {
    match call.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)) {
        Ok(1) => Err(Code::BUSY.into()),
        _ => Ok(()),
    }
}
