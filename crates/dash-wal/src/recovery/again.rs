//! What a killed process left in the caches looks like what is on the disk, and may be on none: it
//! is written again, so that a flush of it counts (WAL-11).

use super::Recovery;
use super::look::Log;
use crate::frames::{FrameHeader, HEADER, WalHeader, frame_offset, frames_in, is_unsummed};
use crate::mutation::{Mutation, broken};
use crate::shared::coordination::Word;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::io::{read_exact, read_some};
use dash_engine::memory::zeros;
use dash_log::scan::Condition;
use dash_storage::{File, Storage};
use std::sync::Arc;

/// Bytes that are written together, about.
const STRIDE: u64 = 1 << 20;

impl<S: Storage> Recovery<'_, S> {
    /// Writes what a killed process left in the caches, so that a flush of it counts. Not a log in
    /// use whose `-wal` is gone: it is closed, durably, or refused as it is; and the time at which
    /// it was written last says whether anybody has copied it since (WAL-16).
    pub(super) fn write_again(
        &self,
        log: Option<&Log<S::File>>,
        wal: Option<&S::File>,
    ) -> Result<()> {
        let name = Arc::clone(self.files.names.shown_wal());
        let is_blank = |wal| Ok::<_, Error>(WalHeader::read(wal, &name)?.is_none());
        let is_gone = wal.map_or(Ok(true), is_blank)?;
        let left = is_gone && log.is_some_and(|log| log.chain.is_some());
        // Before the log, which is so the newer one of both still.
        if wal.is_some() && !left {
            self.write_header_again()?;
        }
        if let Some(log) = log.filter(|_| !left && !broken(Mutation::LogTrustedAfterKill)) {
            self.keep_time(log)?;
            log.write_again()?;
        }
        // Also without a log: a flush of it may have failed, after which the pages look clean.
        let Some(wal) = wal.filter(|_| !left) else { return Ok(()) };
        if !broken(Mutation::WalNotRewritten) {
            write_frames_again(wal, &name)?;
        }
        wal.flush().during(Operation::Flush, &name)
    }

    /// Remembers when the log was written: if this is cut off, that says still whether somebody has
    /// copied it since.
    fn keep_time(&self, log: &Log<S::File>) -> Result<()> {
        let shared = &self.files.shared;
        if !shared.is(Word::LogWritten) {
            let found = log.file.file().metadata().during(Operation::Stat, log.file.name())?;
            shared.set(Word::LogWritten, found.written);
        }
        Ok(())
    }

    /// The same for the beginning of the database: a checkpoint's flush may have failed, and the
    /// log is going to say what the database is like, which is flushed before that. Whatever else
    /// of it is on no device is in `-wal`.
    fn write_header_again(&self) -> Result<()> {
        let mut sector = [0; 512];
        let len = self.files.database.read(&mut sector, 0)?;
        self.files.database.write(&sector[..len], 0)
    }
}

/// The header of `-wal`, and its frames as far as they may count: with a page, and with the salts
/// of the header, or none yet (WAL-19). A file may be long, and empty behind that.
fn write_frames_again<F: File>(wal: &F, name: &str) -> Result<()> {
    let (Some(bytes), Some(header)) = (raw(wal, name)?, WalHeader::read(wal, name)?) else {
        return Ok(());
    };
    wal.write_at(&bytes, 0).during(Operation::Write, name)?;
    let size = usize::try_from(header.frame_size()).map_err(|_| Error::OutOfMemory)?;
    let len = wal.metadata().during(Operation::Stat, name)?.len;
    let frames = u64::from(frames_in(len, header.page_size));
    let at_once = (STRIDE / header.frame_size()).max(1).min(frames);
    let mut buffer = zeros(at_once * header.frame_size())?;
    let may_count = |frame: &&[u8]| {
        frame.first_chunk().is_some_and(|bytes| {
            let frame = FrameHeader::decode(bytes);
            frame.page != 0 && (frame.salts == header.salts || is_unsummed(bytes))
        })
    };
    let mut number = 1;
    loop {
        let at = frame_offset(number, header.page_size);
        let read = read_some(wal, &mut buffer, at).during(Operation::Read, name)?;
        let found = buffer[..read].chunks_exact(size).take_while(may_count).count();
        if found == 0 {
            return Ok(());
        }
        wal.write_at(&buffer[..found * size], at).during(Operation::Write, name)?;
        number = match number.checked_add(u32::try_from(found).unwrap_or(u32::MAX)) {
            Some(next) if found * size == buffer.len() => next,
            _ => return Ok(()),
        };
    }
}

/// What a file has in the place of its header.
fn raw<F: File>(wal: &F, name: &str) -> Result<Option<[u8; HEADER]>> {
    let mut bytes = [0; HEADER];
    let whole = read_exact(wal, &mut bytes, 0).during(Operation::Read, name)?;
    Ok(whole.then_some(bytes))
}

impl<F: File> Log<F> {
    /// Writes the head and the chain again, and flushes them.
    fn write_again(&self) -> Result<()> {
        if self.scan.condition == Condition::Whole {
            self.file.write_head(&self.scan.head)?;
        }
        self.scan.rewrite(&self.file)?;
        self.file.flush()
    }
}
