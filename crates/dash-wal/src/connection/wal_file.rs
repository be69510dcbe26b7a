//! `-wal` as SQLite uses it, and what its calls tell of transactions (wal.c `walFrames`).

use crate::bounds::is_page_size;
use crate::connection::own::OwnFrames;
use crate::connection::state::{Backfill, CommitFrame, Connection, Transaction};
use crate::connection::sums::is_unsummed;
use crate::context::{WAL_HEADER, page_of};
use crate::frames::{FRAME_HEADER, FrameHeader, Place, place_of};
use crate::memory::wal::WalFile;
use crate::mutation::{Mutation, broken};
use crate::rights::explained;
use crate::shared::coordination::Word;
use crate::shared::durable::unpack;
use dash_engine::beside::open_or_make;
use dash_engine::error::{Context, Operation, Result};
use dash_engine::locks::LockLevel;
use dash_engine::open::{ATTEMPTS, is_named_so, is_surely_named_so, open_if_there, replaced};
use dash_log::session::with_log_waiting;
use dash_storage::{Directory, OpenMode, Storage};
use std::sync::Arc;

impl<S: Storage> Connection<S> {
    /// Opens it, a new one if there is none.
    ///
    /// # Errors
    ///
    /// `CantOpen` for one that is another file, too; those of the directory.
    pub fn wal_open(&mut self) -> Result<()> {
        self.check_not_left()?;
        let name = Arc::clone(self.names.shown_wal());
        let (directory, database) = (&*self.directory, &**self.database.file());
        let wal = open_or_make(&self.storage, directory, (&self.names.wal, &name), database)
            .map_err(|error| explained(error, &self.storage, &self.session.path, &self.names))?
            .0;
        // A stock reader must not take a name fence for a hot journal, nor a stock writer begin
        // (WAL-17).
        self.database.hold_reserved()?;
        if self.index.is_none() && self.database.level() == LockLevel::Exclusive {
            // Under locking_mode=EXCLUSIVE there is no wal-index at which that would be done.
            self.refuse_exclusive()?;
            self.look_again(None)?;
        }
        let bytes = self.memory.as_ref().map(|memory| Arc::clone(&memory.wal));
        self.wal = Some(WalFile::new(wal, bytes));
        self.backfill = Backfill::OPENED;
        Ok(())
    }

    /// `-wal` by its name, if it is there, for what is read and written beside SQLite: as SQLite
    /// has it open, if it has, since each descriptor more costs at its closing.
    ///
    /// # Errors
    ///
    /// `CantOpen` for one that is another file, too: whatever lay there before, it may be by now;
    /// or for one that somebody goes on replacing.
    pub(crate) fn find_wal(&self) -> Result<Option<Arc<S::File>>> {
        let (name, shown) = (&self.names.wal, self.names.shown_wal());
        if let Some(open) = self.wal.as_ref().map(WalFile::file)
            && is_named_so(&*self.directory, (name, shown), &**open)?
        {
            return Ok(Some(Arc::clone(open)));
        }
        for _ in 0..ATTEMPTS {
            let wal = open_if_there::<S>(&self.directory, name, OpenMode::ReadWrite)?;
            match &wal {
                Some(file) if !is_surely_named_so(&*self.directory, (name, shown), file)? => {}
                _ => return Ok(wal.map(Arc::new)),
            }
        }
        Err(replaced(shown))
    }

    /// Closes it.
    ///
    /// # Errors
    ///
    /// None; what was to be said is said by the calls before.
    pub fn wal_close(&mut self) -> Result<()> {
        self.own = OwnFrames::default();
        self.unsay();
        self.statistics.wal_file_bytes = self.counted().wal_file_bytes;
        self.wal = None;
        self.transaction =
            Transaction { undeferred: self.transaction.undeferred, ..Transaction::default() };
        Ok(())
    }

    /// Reads; fewer bytes at the end.
    ///
    /// # Errors
    ///
    /// Those of the file.
    pub fn wal_read(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.write_held()?;
        let wal = self.wal()?;
        wal.read_some(buffer, offset).during(Operation::Read, self.names.shown_wal())
    }

    /// Its length in bytes.
    ///
    /// # Errors
    ///
    /// Those of the file.
    pub fn wal_size(&mut self) -> Result<u64> {
        self.write_held()?;
        self.wal()?.len().during(Operation::Stat, self.names.shown_wal())
    }

    /// Writes a header, a frame's header, or a page.
    ///
    /// # Errors
    ///
    /// Those of the file, and of what a new generation needs.
    pub fn wal_write(&mut self, data: &[u8], offset: u64) -> Result<()> {
        self.check_sound()?;
        let header = <&[u8; WAL_HEADER]>::try_from(data).ok().filter(|_| offset == 0);
        if let Some(header) = header {
            self.begin_generation(header)?;
            self.backfill = Backfill::Whole;
        }
        if header.is_none()
            && self.coordination.is(Word::HeaderNew)
            && self.coordination.is(Word::Promised)
        {
            // Under `synchronous=OFF` SQLite has not asked for that.
            self.settle_header()?;
        }
        // No frame of a generation is in the log without its header on the device: whoever finds an
        // older one there finds another `-wal` (WAL-10).
        let durable = header.is_some()
            && self.coordination.is(Word::Session)
            && !broken(Mutation::HeaderNotFlushed);
        // A flush that SQLite asked for before, such as the one of a new header, was not for this.
        self.checkpoint.barrier &= broken(Mutation::BarrierOutlivesFrames);
        if header.is_some() || !self.take_frame(data, offset)? {
            self.spoil_own_frames()?;
            let wal = self.wal()?;
            let written = match durable {
                true => wal.write_durable_at(data, offset),
                false => wal.write_at(data, offset),
            };
            written.during(Operation::Write, self.names.shown_wal())?;
        }
        self.statistics.wal_flushes += u64::from(durable);
        self.statistics.wal_bytes += data.len() as u64;
        if data.len() != FRAME_HEADER {
            self.transaction.written_to = offset + data.len() as u64;
        }
        if header.is_none() && data.len() == FRAME_HEADER {
            self.note_frame(data, offset)?;
        }
        Ok(())
    }

    /// Takes what SQLite writes, if it is a new frame's header, which waits for its page, or that
    /// page.
    fn take_frame(&mut self, data: &[u8], offset: u64) -> Result<bool> {
        // Without a shared index nothing tells where a transaction begins.
        if self.index.is_none() {
            return Ok(false);
        }
        let Some(page) = self.page_size()? else { return Ok(false) };
        if data.len() == page as usize {
            let Some(wal) = &self.wal else { return Ok(false) };
            let Some((frame, at)) = self.own.complete(data, offset)? else { return Ok(false) };
            let written = wal.write_at(frame, at).during(Operation::Write, self.names.shown_wal());
            if written.is_err() {
                self.own.spoil();
            }
            return written.map(|()| true);
        }
        let header = <&[u8; FRAME_HEADER]>::try_from(data).ok();
        match (header, place_of(offset, page)) {
            (Some(header), Some(Place::Frame { number, within: 0 })) => {
                self.write_held()?;
                if is_unsummed(header) {
                    self.own.pass(number);
                    return Ok(false);
                }
                self.own.hold(header, number, offset)
            }
            _ => Ok(false),
        }
    }

    /// Writes a header whose page has not come, before anything else is done with `-wal`.
    pub(crate) fn write_held(&mut self) -> Result<()> {
        let Some((header, at)) = self.own.take_held() else { return Ok(()) };
        let Some(wal) = &self.wal else { return Ok(()) };
        wal.write_at(header, at).during(Operation::Write, self.names.shown_wal())
    }

    /// The same, where what is written next is no new frame.
    pub(crate) fn spoil_own_frames(&mut self) -> Result<()> {
        self.write_held()?;
        self.own.spoil();
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
        let Some(page) = self.page_size()? else { return Ok(()) };
        let Some(Place::Frame { number, within: 0 }) = place_of(offset, page) else {
            return Ok(());
        };
        if self.transaction.first == 0 {
            self.transaction.first = number;
            self.backfill.is_written_from(number);
        }
        if unsummed {
            self.note_unsummed(number);
            frame.salts = unpack(self.coordination.get(Word::Salts));
        } else {
            self.note_summed(number);
        }
        if frame.is_commit() {
            let frames = number.saturating_sub(self.transaction.first) + 1;
            self.transaction.frame = Some(CommitFrame { number, frames, salts: frame.salts });
            self.note_said(number, header, unsummed);
        }
        Ok(())
    }

    /// Bytes of a page in `-wal`; `None`: it has no header.
    pub(crate) fn page_size(&mut self) -> Result<Option<u32>> {
        let generation = self.coordination.get(Word::Generation);
        if let Some((_, page)) = self.page.filter(|(of, _)| *of == generation) {
            return Ok(Some(page));
        }
        let page = self.wal_header()?.map(|header| page_of(&header)).filter(|it| is_page_size(*it));
        self.page = page.map(|page| (generation, page));
        Ok(page)
    }

    /// `-wal`'s header, as it is in the page cache.
    pub(crate) fn wal_header(&mut self) -> Result<Option<[u8; WAL_HEADER]>> {
        let mut header = [0; WAL_HEADER];
        let whole = self.wal()?.read_exact(&mut header, 0);
        let whole = whole.during(Operation::Read, self.names.shown_wal())?;
        Ok(whole.then_some(header))
    }

    /// `xSync`. While a commit frame was written and WRITER is held it is the commit's, which
    /// COMMIT_PHASETWO makes good; else it is a barrier (WAL-14).
    ///
    /// # Errors
    ///
    /// Those of the flush.
    pub fn wal_sync(&mut self) -> Result<()> {
        self.write_held()?;
        self.sum_up()?;
        match self.transaction.frame {
            Some(frame) if self.transaction.undeferred => {
                self.transaction.synced = false;
                let begun = self.storage.monotonic_nanos();
                self.flush_wal_undeferred(frame)?;
                self.transaction.flushed = Some(self.storage.monotonic_nanos() - begun);
                Ok(())
            }
            Some(_) => {
                self.transaction.synced = true;
                Ok(())
            }
            None if self.coordination.is(Word::HeaderNew) => self.settle_header(),
            None => self.barrier(),
        }
    }

    /// Cuts it. To nothing: the generation ends. To more: `journal_size_limit`, within the first
    /// commit of a generation that goes on.
    ///
    /// # Errors
    ///
    /// Those of the file, and of the log.
    pub fn wal_truncate(&mut self, size: u64) -> Result<()> {
        self.spoil_own_frames()?;
        if size == 0 {
            self.note_backfill();
            self.check_backfilled()?;
        }
        let ends = size == 0 || broken(Mutation::TruncationEndsGeneration);
        if ends {
            self.end_generation()?;
        }
        let wal = self.wal()?;
        wal.set_len(size).during(Operation::Resize, self.names.shown_wal())?;
        // What was cut must not come back, whatever the database is made of next.
        let returns = self.coordination.is(Word::Promised) || !self.directory.keeps_order();
        match ends && returns {
            true => with_log_waiting(self, |connection, _| connection.flush_wal_file()),
            false => Ok(()),
        }
    }

    /// `SQLITE_FCNTL_COMMIT_PHASETWO`: SQLite has committed. Comes back when the commit is as
    /// durable as it has to be.
    ///
    /// # Errors
    ///
    /// `Poisoned` if neither the log nor `-wal` could be flushed: the commit is visible, and
    /// nobody knows whether it is durable.
    pub fn committed(&mut self) -> Result<()> {
        // Under locking_mode=EXCLUSIVE SQLite has not given WRITER up.
        self.tell_sums()?;
        // Nor does it say where the next transaction begins.
        self.transaction.first = 0;
        let own = self.transaction.frame.take().or(self.transaction.pending.take());
        self.transaction.pending = None;
        let synced = std::mem::take(&mut self.transaction.synced);
        let flushed = self.transaction.flushed.take();
        let Some(own) = own else { return Ok(()) };
        self.backfill = Backfill::Partial;
        self.stand_by_it();
        self.write_held()?;
        self.statistics.commits += 1;
        let begun = self.storage.monotonic_nanos();
        let durable = self.make_commit_durable(own, synced).or_else(|error| self.make_good(error));
        self.own.end();
        let durable = durable?;
        let is_flushed = flushed.is_some() || durable && self.is_flushed(own.number);
        self.statistics.unflushed_commits += u64::from(!is_flushed);
        let now = self.storage.monotonic_nanos();
        self.note_commit(own, now, flushed.or(durable.then_some(now - begun)));
        self.tell_totals();
        Ok(())
    }

    /// The transaction ends for WRITER: what is flushed from here on is no commit.
    pub(crate) fn writer_released(&mut self) {
        if !broken(Mutation::BarrierTakenForCommit) {
            let frame = self.transaction.frame.take();
            self.transaction.pending = frame.or(self.transaction.pending);
        }
        if self.transaction.pending.is_none() {
            self.own.end();
        }
    }

    /// The read lock falls: nothing is asked of the transaction any more.
    pub(crate) fn read_released(&mut self) {
        self.own.end();
        self.unsay();
        self.transaction.pending = None;
        self.transaction.synced = false;
        if !broken(Mutation::BarrierTakenForCommit) {
            self.transaction.frame = None;
        }
    }
}
