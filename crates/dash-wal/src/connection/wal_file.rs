//! `-wal` as SQLite uses it, and what its calls tell of transactions (wal.c `walFrames`).

use crate::connection::files::Files;
use crate::connection::state::Connection;
use crate::connection::transaction::{CommitFrame, Transaction};
use crate::connection::wal::{Backfill, OwnFrames};
use crate::context::{WAL_HEADER, salts_word};
use crate::frames::{FRAME_HEADER, FrameHeader, Place, is_unsummed, place_of, unpack};
use crate::index;
use crate::memory::wal::WalFile;
use crate::mutation::{Mutation, broken};
use crate::shared::coordination::Word;
use dash_engine::beside::{open_made, open_or_make};
use dash_engine::error::{Context, Operation, Result};
use dash_engine::locks::LockLevel;
use dash_log::session::with_log_waiting;
use dash_storage::{Directory, File, Storage};
use std::sync::Arc;

impl<S: Storage> Connection<S> {
    /// Opens it, a new one if there is none.
    ///
    /// # Errors
    ///
    /// `CantOpen` for one that is another file, too; those of the directory.
    pub fn wal_open(&mut self) -> Result<()> {
        self.wal.check_not_left(&self.files)?;
        let (storage, names) = (&self.files.storage, &self.files.names);
        let (directory, database) = (&*self.files.directory, &**self.files.database.file());
        let (named, c) = ((&*names.wal, &**names.shown_wal()), &self.files.shared);
        // The last user who deletes it says that first, and may be killed in between.
        let is_of_session = c.is(Word::Session) && !c.is(Word::HeadVoid);
        let wal = match is_of_session && self.wal.memory.is_none() {
            true => open_made(storage, directory, named, database).map(|wal| Some((wal?, false))),
            false => open_or_make(storage, directory, named, database).map(Some),
        };
        let Some((wal, is_made)) = wal.map_err(|error| self.files.explained(error))? else {
            // An empty one would say that there is nothing which the log's commits belong to.
            self.wal.is_refused = true;
            return Err(self.files.lost_wal());
        };
        if self.index.open.is_none()
            && let Err(refused) = self.files.check_joined_wal(wal.id())
        {
            if is_made {
                drop(directory.unlink(&names.wal));
            }
            return Err(refused);
        }
        // A stock reader must not take a name fence for a hot journal, nor a stock writer begin
        // (WAL-17).
        self.files.database.hold_reserved()?;
        if self.index.open.is_none() && self.files.database.level() == LockLevel::Exclusive {
            // Under locking_mode=EXCLUSIVE there is no wal-index at which that would be done.
            self.wal.refuse_exclusive(&self.files)?;
            self.look_again(None)?;
        }
        let bytes = self.wal.memory.as_ref().map(|memory| Arc::clone(&memory.wal));
        self.wal.open = Some(WalFile::new(wal, bytes));
        self.wal.backfill = Backfill::OPENED;
        Ok(())
    }

    /// Closes it.
    ///
    /// # Errors
    ///
    /// None; what was to be said is said by the calls before.
    pub fn wal_close(&mut self) -> Result<()> {
        self.wal.own = OwnFrames::default();
        self.transaction.unsay(&self.process.notes);
        // Out of WAL mode the database can get pages of another size.
        self.reads.size = None;
        self.wal.file_bytes += self.wal.open.take().map_or(0, |wal| wal.written());
        let Transaction { undeferred, saying, .. } = std::mem::take(&mut self.transaction);
        self.transaction = Transaction { undeferred, saying, ..Transaction::default() };
        Ok(())
    }

    /// Reads; fewer bytes at the end.
    ///
    /// # Errors
    ///
    /// Those of the file.
    pub fn wal_read(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        if self.is_of_no_use(offset) {
            buffer.fill(0);
            return Ok(buffer.len());
        }
        let offset = self.wal_place(offset);
        self.read_wal_file(buffer, offset)
    }

    pub(super) fn read_wal_file(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.wal.write_held(&self.files)?;
        let wal = self.wal.file(&self.files)?;
        wal.read_some(buffer, offset).during(Operation::Read, self.files.names.shown_wal())
    }

    /// Its length in bytes.
    ///
    /// # Errors
    ///
    /// Those of the file.
    pub fn wal_size(&mut self) -> Result<u64> {
        self.wal.write_held(&self.files)?;
        self.wal.file(&self.files)?.len().during(Operation::Stat, self.files.names.shown_wal())
    }

    /// Cuts it. To nothing: the generation ends. To more: `journal_size_limit`, within the first
    /// commit of a generation that goes on.
    ///
    /// # Errors
    ///
    /// Those of the file, and of the log.
    pub fn wal_truncate(&mut self, size: u64) -> Result<()> {
        if self.view.is_some() {
            // By numbers that are not the true ones, and later commits are there.
            return Ok(());
        }
        self.wal.spoil_own(&self.files)?;
        if size == 0 {
            self.wal.note_backfill(self.index.open.as_ref());
            self.wal.check_backfilled(&self.files)?;
        }
        let ends = size == 0 || broken(Mutation::TruncationEndsGeneration);
        if ends {
            self.end_generation()?;
        }
        let wal = self.wal.file(&self.files)?;
        wal.set_len(size).during(Operation::Resize, self.files.names.shown_wal())?;
        // What was cut must not come back, whatever the database is made of next.
        let Files { shared, directory, .. } = &self.files;
        let returns = shared.is(Word::Promised) || !directory.keeps_order();
        match ends && returns {
            true => with_log_waiting(self, |connection, _| connection.flush_wal_file()),
            false => Ok(()),
        }
    }

    /// Writes into `-wal`: a header, a frame's header, or a page.
    ///
    /// # Errors
    ///
    /// Those of the file, and of what a new generation needs.
    pub fn wal_write(&mut self, data: &[u8], offset: u64) -> Result<()> {
        if data.len() == FRAME_HEADER
            && let Some(page) = data.first_chunk().map(|page| u32::from_be_bytes(*page))
        {
            self.reads.pages.insert(page);
        }
        if self.index.open.is_some() && !self.index.holds(index::WRITE) {
            self.reads.lose();
        }
        match self.view.is_some() {
            true => self.view_write(data, offset),
            false => self.write_wal_file(data, offset),
        }
    }

    pub(super) fn write_wal_file(&mut self, data: &[u8], offset: u64) -> Result<()> {
        self.files.check_sound()?;
        let header = <&[u8; WAL_HEADER]>::try_from(data).ok().filter(|_| offset == 0);
        if let Some(header) = header {
            self.begin_generation(header)?;
            self.wal.backfill = Backfill::Whole;
        }
        let c = &self.files.shared;
        if header.is_none() && c.is(Word::HeaderNew) && c.is(Word::Promised) {
            // Under `synchronous=OFF` SQLite has not asked for that.
            self.settle_header()?;
        }
        // No frame of a generation is in the log without its header on the device: whoever finds an
        // older one there finds another `-wal` (WAL-10).
        let durable = header.is_some()
            && self.files.shared.is(Word::Session)
            && !broken(Mutation::HeaderNotFlushed);
        // A flush that SQLite asked for before, such as the one of a new header, was not for this.
        self.checkpoint.barrier &= broken(Mutation::BarrierOutlivesFrames);
        // Without a shared index nothing tells where a transaction begins.
        let may_be_taken = header.is_none() && self.index.open.is_some();
        if !may_be_taken || !self.wal.take_frame(data, offset, &self.files)? {
            self.wal.spoil_own(&self.files)?;
            let wal = self.wal.file(&self.files)?;
            let written = match durable {
                true => wal.write_durable_at(data, offset),
                false => wal.write_at(data, offset),
            };
            written.during(Operation::Write, self.files.names.shown_wal())?;
            if let Some(header) = header.filter(|_| durable) {
                self.files.shared.set(Word::Settled, salts_word(header));
            }
        }
        self.wal.flushes += u64::from(durable);
        self.counters.own.wal_bytes += data.len() as u64;
        if data.len() != FRAME_HEADER {
            self.transaction.written_to = offset + data.len() as u64;
        }
        if header.is_none() && data.len() == FRAME_HEADER {
            self.note_frame(data, offset)?;
        }
        Ok(())
    }

    /// Remembers the frame that ends a transaction: number and salts of one's own, for the shared
    /// index may be torn, or further on (WAL-2).
    fn note_frame(&mut self, header: &[u8], offset: u64) -> Result<()> {
        let Ok(header) = header.try_into() else { return Ok(()) };
        let (mut frame, unsummed) = (FrameHeader::decode(header), is_unsummed(header));
        let is_plain = !frame.is_commit() && !unsummed;
        if is_plain && self.transaction.first != 0 && self.transaction.unsummed == 0 {
            return Ok(());
        }
        let Some(page) = self.wal.page_size(&self.files)? else { return Ok(()) };
        let Some(Place::Frame { number, within: 0 }) = place_of(offset, page) else {
            return Ok(());
        };
        let c = &self.files.shared;
        let transaction = &mut self.transaction;
        if transaction.first == 0 {
            transaction.first = number;
            self.wal.backfill.is_written_from(number);
        }
        if unsummed {
            transaction.note_unsummed(number, self.index.open.is_some(), c);
            frame.salts = unpack(c.get(Word::Salts));
        } else {
            transaction.note_summed(number);
        }
        if frame.is_commit() {
            let frames = number.saturating_sub(transaction.first) + 1;
            transaction.frame = Some(CommitFrame { number, frames, salts: frame.salts });
            if let Some(said) = transaction.saying.next.take() {
                transaction.note_said(number, header, said, &self.process.notes, c);
            }
        }
        Ok(())
    }

    /// `xSync` of `-wal`. While a commit frame was written and WRITER is held it is the commit's,
    /// which COMMIT_PHASETWO makes good; else it is a barrier (WAL-14).
    ///
    /// # Errors
    ///
    /// Those of the flush.
    pub fn wal_sync(&mut self) -> Result<()> {
        if !self.has_view_committed() {
            return Ok(());
        }
        self.wal.write_held(&self.files)?;
        if self.transaction.unsummed != 0 {
            self.sum_up()?;
        }
        match self.transaction.frame {
            Some(frame) if self.transaction.undeferred => {
                self.transaction.synced = false;
                let begun = self.files.storage.monotonic_nanos();
                self.flush_wal_undeferred(frame)?;
                self.transaction.flushed = Some(self.files.storage.monotonic_nanos() - begun);
                Ok(())
            }
            Some(_) => {
                self.transaction.synced = true;
                Ok(())
            }
            None if self.files.shared.is(Word::HeaderNew) => self.settle_header(),
            None => self.barrier(),
        }
    }

    /// WRITER is given up.
    pub(super) fn writer_released(&mut self) {
        self.transaction.writer_released();
        if self.transaction.pending.is_none() {
            self.wal.own.end();
        }
    }

    /// The read lock falls: nothing is asked of the transaction any more.
    pub(super) fn read_released(&mut self) {
        self.wal.own.end();
        if self.transaction.saying.noted.is_some() {
            self.transaction.unsay(&self.process.notes);
        }
        self.transaction.pending = None;
        self.transaction.synced = false;
        if !broken(Mutation::BarrierTakenForCommit) {
            self.transaction.frame = None;
        }
    }
}
