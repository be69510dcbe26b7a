//! Frames that SQLite has left without salts and checksum.
//!
//! A frame that a transaction writes once more gets its checksum with the commit (wal.c
//! `walRewriteChecksums`). Where a savepoint is rolled back in between, older versions of SQLite
//! (3.40 among them) forget from which frame on: frames without salts are committed, and all behind
//! them is summed up from a wrong beginning, as is what the next transaction continues from. In
//! stock SQLite nobody notices before a crash, which loses these commits.
//!
//! Here they get what they should have (WAL-19): the frames before they are flushed, the index
//! before the next writer continues from it. Until both is done [`Word::Unsummed`] says so: nobody
//! takes such frames for what they will be, and whoever gets WRITER after their writer's death does
//! what that one has left undone.

use crate::connection::files::Files;
use crate::connection::index::WRITER;
use crate::connection::state::Connection;
use crate::connection::transaction::CommitFrame;
use crate::connection::wal::Wal;
use crate::frames::{
    Checksum, FRAME_HEADER, FrameHeader, Prefix, SALTS, WalHeader, checksum, frame_offset,
    frame_size, is_unsummed, pack, valid_prefix,
};
use crate::index::{self, Index};
use crate::mutation::{Mutation, broken};
use crate::shared::coordination::Word;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::io::read_exact;
use dash_engine::memory::zeros;
use dash_storage::{LockKind, Storage};
use std::sync::Arc;

impl<S: Storage> Wal<S> {
    /// `last`, or the frame before, where that is not written to its end. With `psow=0` SQLite
    /// pads a sector: it writes the last frame again, asks for the flush in the middle of that, and
    /// goes on, with checksums on top of those that it had (wal.c `sqlite3WalFrames`).
    fn last_whole(&self, last: u32, written_to: u64) -> u32 {
        let Some((_, page)) = self.page else { return last };
        let is_whole = written_to >= frame_offset(last + 1, page);
        if is_whole { last } else { last - 1 }
    }

    /// Whether any of these frames has no salts.
    fn lacks_sums(&self, first: u32, last: CommitFrame, files: &Files<S>) -> Result<bool> {
        let (Some(page), name) = (self.page.map(|(_, page)| page), files.names.shown_wal()) else {
            return Ok(false);
        };
        let mut header = [0; FRAME_HEADER];
        for number in first..=last.number {
            let whole = self.file(files)?.read_exact(&mut header, frame_offset(number, page));
            if whole.during(Operation::Read, name)? && is_unsummed(&header) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Sums these frames up, on top of the one before; the checksum of the last one.
    pub(super) fn sum_up_from(
        &mut self,
        first: u32,
        last: u32,
        files: &Files<S>,
    ) -> Result<Checksum> {
        let name = Arc::clone(files.names.shown_wal());
        let header = self.header(files)?;
        let header = header.map(|bytes| WalHeader::decode(&bytes, &name)).transpose()?.flatten();
        let header = header.ok_or_else(|| files.strange("it has no header"))?;
        let page = header.page_size;
        let len = usize::try_from(frame_size(page)).map_err(|_| Error::OutOfMemory)?;
        let mut frame = zeros(len as u64)?;
        let wal = self.file(files)?;
        let mut sums = header.checksum;
        if first > 1 {
            let mut before = [0; FRAME_HEADER];
            wal.read_exact(&mut before, frame_offset(first - 1, page))
                .during(Operation::Read, &name)?;
            sums = FrameHeader::decode(&before).checksum;
        }
        for number in first..=last {
            let at = frame_offset(number, page);
            if !wal.read_exact(&mut frame, at).during(Operation::Read, &name)? {
                return Err(files.strange("it is shorter than the index says"));
            }
            sums = checksum(header.order, &frame[..SALTS], sums);
            sums = checksum(header.order, &frame[FRAME_HEADER..], sums);
            let numbers = [header.salts[0], header.salts[1], sums[0], sums[1]];
            for (place, number) in frame[SALTS..FRAME_HEADER].chunks_exact_mut(4).zip(numbers) {
                place.copy_from_slice(&number.to_be_bytes());
            }
            wal.write_at(&frame[..FRAME_HEADER], at).during(Operation::Write, &name)?;
        }
        self.spoil_own(files)?;
        Ok(sums)
    }
    /// Does both where nobody of dash is left to know of it, and stock SQLite, which may be such a
    /// version itself, has kept the wal-index `found`. Nobody else writes meanwhile.
    ///
    /// # Errors
    ///
    /// Those of `-wal`.
    pub(crate) fn sum_up_as_found(&mut self, found: &Index<S>, files: &Files<S>) -> Result<()> {
        let Some(visible) = found.header().filter(|_| self.open.is_some()) else { return Ok(()) };
        let (end, name) = (visible.mx_frame, Arc::clone(files.names.shown_wal()));
        let wal = self.find(files)?;
        let Some(wal) = wal.filter(|_| end > 0 && !broken(Mutation::FoundUnsummed)) else {
            return Ok(());
        };
        let header = WalHeader::read(&wal, &name)?;
        let Some(header) = header.filter(|header| header.salts == visible.salts) else {
            return Ok(());
        };
        let frame = |number: u32| {
            let (mut bytes, at) = ([0; FRAME_HEADER], frame_offset(number, header.page_size));
            let whole = read_exact(&wal, &mut bytes, at).during(Operation::Read, &name)?;
            Ok(whole.then_some(bytes))
        };
        // Recovery has walked through what it calls durable.
        let c = &files.shared;
        let is_of_now = pack(visible.salts) == c.get(Word::Salts);
        let known = if is_of_now { c.last_known_sum(end) } else { 0 };
        let last = match known == end {
            true => end,
            false => {
                let from = Prefix::up_to(&wal, &header, known, &name)?;
                valid_prefix(&wal, &header, from, &name)?.last
            }
        };
        let sums = match (last < end, frame((last + 1).min(end))?, frame(end)?) {
            (false, _, Some(bytes)) => FrameHeader::decode(&bytes).checksum,
            (true, Some(first), Some(_)) if is_unsummed(&first) => {
                // Whoever is killed meanwhile leaves word.
                c.set(Word::Unsummed, u64::from(last) + 1);
                let sums = self.sum_up_from(last + 1, end, files)?;
                c.set(Word::Unsummed, 0);
                sums
            }
            // It was cut, or another program has written it.
            _ => return Ok(()),
        };
        if sums != visible.frame_checksum {
            found.set_frame_checksum(end, sums);
        }
        Ok(())
    }
}

impl<S: Storage> Connection<S> {
    /// Gives the frames of the transaction that is about to be committed what they lack: some were
    /// written without checksums. WRITER is held.
    ///
    /// # Errors
    ///
    /// Those of `-wal`. `Refused` where SQLite keeps the index to itself, so that nobody can tell
    /// it; the transaction is rolled back then.
    pub(crate) fn sum_up(&mut self) -> Result<()> {
        let (Some(last), first) = (self.transaction.frame, self.transaction.unsummed) else {
            return Ok(());
        };
        let end = self.wal.last_whole(last.number, self.transaction.written_to);
        if let Some((upto, _)) = self.transaction.sums {
            if upto < end {
                self.transaction.sums =
                    Some((end, self.wal.sum_up_from(upto + 1, end, &self.files)?));
            }
            return Ok(());
        }
        if !self.wal.lacks_sums(self.transaction.summed, last, &self.files)? {
            return Ok(());
        }
        if self.index.open.is_none() {
            return Err(Error::Refused(format!(
                "{}: this version of SQLite has lost the checksums of the transaction, which rolled back a savepoint: do it \
                 once more without PRAGMA locking_mode=EXCLUSIVE, or with a larger PRAGMA cache_size",
                self.files.names.shown_wal()
            )));
        }
        self.transaction.sums = Some((end, self.wal.sum_up_from(first, end, &self.files)?));
        Ok(())
    }

    /// Tells the index. Its writers continue from the checksum there.
    ///
    /// # Errors
    ///
    /// Those of [`Self::sum_up`], for a commit that was not to be flushed.
    pub(crate) fn tell_sums(&mut self) -> Result<()> {
        self.sum_up()?;
        // The header of a frame that pads a sector may have come in two parts, which nobody noted.
        let end = self.index.header().map_or(0, |header| header.mx_frame);
        if let Some((upto, _)) = self.transaction.sums.filter(|(upto, _)| *upto < end) {
            self.transaction.sums = Some((end, self.wal.sum_up_from(upto + 1, end, &self.files)?));
        }
        if let (Some((last, sums)), Some(index)) = (self.transaction.sums.take(), &self.index.open)
        {
            index.set_frame_checksum(last, sums);
        }
        if std::mem::take(&mut self.transaction.unsummed) != 0 {
            self.files.shared.set(Word::Unsummed, 0);
        }
        Ok(())
    }

    /// Does both for stock SQLite, which has written frames since. WRITER is held.
    ///
    /// # Errors
    ///
    /// As the calls on `-wal`.
    pub(crate) fn sum_up_strangers(&mut self) -> Result<()> {
        let Some(index) = self.index.open.as_ref() else { return Ok(()) };
        if broken(Mutation::StrangersUnsummed) {
            return Ok(());
        }
        let c = &self.files.shared;
        let (generation, seen) = (c.get(Word::Generation), index.header());
        self.wal.sum_up_as_found(index, &self.files)?;
        if let Some(seen) = seen.filter(|seen| pack(seen.salts) == c.get(Word::Salts)) {
            c.set_summed(generation, seen.mx_frame);
        }
        Ok(())
    }

    /// Does both for a writer that died over it. WRITER is held.
    ///
    /// # Errors
    ///
    /// Those of `-wal`.
    pub(crate) fn sum_up_for_the_dead(&mut self) -> Result<()> {
        let first = u32::try_from(self.files.shared.get(Word::Unsummed)).unwrap_or(0);
        if first == 0 || self.wal.open.is_none() || broken(Mutation::DeadLeftUnsummed) {
            return Ok(());
        }
        // Where there is none SQLite is about to make it anew, of the frames that are valid.
        let Some(header) = self.index.header() else { return Ok(()) };
        // What is not visible is going to be written over.
        let is_visible = header.mx_frame >= first;
        if is_visible && pack(header.salts) == self.files.shared.get(Word::Salts) {
            let sums = self.wal.sum_up_from(first, header.mx_frame, &self.files)?;
            if let Some(index) = &self.index.open {
                index.set_frame_checksum(header.mx_frame, sums);
            }
        }
        self.files.shared.set(Word::Unsummed, 0);
        Ok(())
    }

    fn sum_up_for_others(&mut self) -> Result<()> {
        if self.files.lets_writers_in() {
            self.sum_up_strangers()?;
        }
        self.sum_up_for_the_dead()
    }

    /// Does that for the dead, and for stock SQLite, if WRITER can be had.
    ///
    /// # Errors
    ///
    /// Those of `-wal`.
    pub(crate) fn try_sum_up_for_the_dead(&mut self) -> Result<()> {
        // Not one's own transaction, before its end.
        if self.index.open.is_none() || self.transaction.unsummed != 0 {
            return Ok(());
        }
        if self.index.holds(index::WRITE) {
            return self.sum_up_for_others();
        }
        match self.index.lock(WRITER, LockKind::Exclusive, &self.files) {
            Ok(()) => {}
            Err(Error::Busy) => return Ok(()),
            Err(error) => return Err(error),
        }
        let summed = self.sum_up_for_others();
        self.index.unlock(WRITER, &self.files)?;
        self.files.shared.wake_first()?;
        summed
    }
}
