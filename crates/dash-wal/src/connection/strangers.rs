//! Stock SQLite that writes beside dash, where it is let in (WAL-50 to WAL-52): what it has done is
//! looked at by whoever takes WRITER, makes a barrier, or begins or ends a session of the log.

use crate::connection::files::Files;
use crate::connection::state::Connection;
use crate::context::salts_word;
use crate::frames::{Prefix, WalHeader, pack, valid_prefix};
use crate::index::{Index, IndexHeader};
use crate::mutation::{Mutation, broken};
use crate::options::Stock;
use crate::process::Leader;
use crate::shared::coordination::Word;
use dash_engine::error::{Error, Result};
use dash_log::session::with_log_waiting;
use dash_storage::Storage;
use std::ops::Range;
use std::sync::Arc;

impl<S: Storage> Files<S> {
    /// What stock SQLite may do while the database is open.
    pub(crate) fn stock(&self) -> Stock {
        Stock::of(self.shared.get(Word::Stock))
    }

    /// Whether it may write.
    pub(crate) fn lets_writers_in(&self) -> bool {
        self.stock() >= Stock::Write
    }

    /// Where stock SQLite writes, its commits in FULL are promises, too.
    pub(crate) fn expect_strangers(&self) {
        if self.lets_writers_in() && !broken(Mutation::StrangersPromiseNothing) {
            self.shared.set(Word::Promised, 1);
        }
    }

    /// Whether stock SQLite may have copied pages into the database, which it does not flush under
    /// `synchronous=OFF`.
    pub(crate) fn may_be_copied_by_strangers(&self) -> bool {
        let at_rest = !self.shared.is(Word::Session);
        let unguarded = match self.stock() {
            Stock::Read => false,
            Stock::Write => at_rest,
            Stock::Checkpoint => at_rest || !broken(Mutation::StrangersCopyAtRestAlone),
        };
        unguarded && !broken(Mutation::StrangersCopyNothing)
    }
}

impl<S: Storage> Connection<S> {
    /// Lets stock SQLite in so far from here on; nobody else has the database open.
    pub(crate) fn choose_stock(&self, wanted: Option<Stock>) {
        self.files.shared.set(Word::Stock, wanted.unwrap_or_default() as u64);
        self.files.expect_strangers();
    }

    /// Joins others who have chosen. `wanted`: as this one's options say.
    pub(crate) fn join_stock(&self, wanted: Option<Stock>) -> Result<()> {
        let (chosen, db) = (self.files.stock(), self.files.names.shown());
        match wanted.filter(|wanted| *wanted != chosen) {
            None => Ok(()),
            Some(wanted) => Err(Error::Held(format!(
                "{db} is open with dash_stock={}: close it everywhere before it is opened with dash_stock={}",
                chosen.name(),
                wanted.name()
            ))),
        }
    }

    /// What stock SQLite may do while the database is open.
    #[must_use]
    pub fn stock(&self) -> Stock {
        self.files.stock()
    }

    /// WRITER was taken: whether somebody of stock SQLite had it since the last one of dash.
    ///
    /// # Errors
    ///
    /// As the calls on the files.
    pub(crate) fn look_at_strangers(&mut self) -> Result<()> {
        if !self.lets_strangers_in() {
            return Ok(());
        }
        self.guard_session()?;
        let left = self.files.shared.get(Word::OwnIndex);
        if self.index_sum() == left {
            return Ok(());
        }
        self.sum_up_strangers()?;
        self.adopt()
    }

    /// WRITER is about to be given up.
    pub(crate) fn note_own_index(&self) {
        if !self.files.lets_writers_in() {
            return;
        }
        let c = &self.files.shared;
        c.set(Word::OwnIndex, self.index_sum());
        if let Some(header) = self.index.header() {
            c.set_summed(c.get(Word::Generation), header.mx_frame);
        }
    }

    /// Looks whether frames up to `end` that stock SQLite has written have their checksums. It
    /// writes none, so WRITER need not be held.
    ///
    /// # Errors
    ///
    /// As the calls on `-wal`.
    pub(crate) fn look_at_sums(&mut self, end: u32) -> Result<()> {
        let c = &self.files.shared;
        let generation = c.get(Word::Generation);
        let known = c.last_known_sum(end);
        if !self.lets_strangers_in() || known >= end {
            return Ok(());
        }
        let Some(wal) = self.wal.find(&self.files)? else { return Ok(()) };
        let (salts, name) = (c.get(Word::Salts), self.files.names.shown_wal());
        let header = WalHeader::read(&wal, name)?.filter(|header| pack(header.salts) == salts);
        if let Some(header) = header {
            let from = Prefix::up_to(&wal, &header, known, name)?;
            let found = valid_prefix(&wal, &header, from, name)?;
            self.files.shared.set_summed(generation, found.last.min(end));
        }
        Ok(())
    }

    /// What tells one state of the wal-index from another.
    fn index_sum(&self) -> u64 {
        self.index.open.as_ref().and_then(Index::header_sum).unwrap_or(0)
    }

    /// Where stock SQLite has begun a generation: what was before is in the database, and all that
    /// is visible of it is durable in `-wal` from here on.
    ///
    /// # Errors
    ///
    /// As the calls on the files.
    pub(crate) fn adopt(&mut self) -> Result<()> {
        match self.strangers_generation()? {
            Some(_) => with_log_waiting(self, Self::adopt_in_log),
            None => Ok(()),
        }
    }

    /// What keeps stock checkpoints out, as long as a session of the log lasts, and no longer.
    ///
    /// # Errors
    ///
    /// As the calls for the locks.
    pub(super) fn guard_session(&mut self) -> Result<()> {
        let session = self.files.shared.is(Word::Session);
        let Some(index) = &mut self.index.open else { return Ok(()) };
        match session && !broken(Mutation::NoGuard) {
            true => match index.guard() {
                Err(Error::Busy) => Ok(()),
                guarded => guarded,
            },
            false => index.unguard(),
        }
    }

    /// A checkpoint under `synchronous=OFF` has copied everything: stock SQLite may begin `-wal`
    /// anew, and takes what was copied for durable.
    pub(crate) fn flush_before_strangers(&mut self) -> Result<()> {
        match broken(Mutation::CopiedForStrangers) {
            true => Ok(()),
            false => self.sync(),
        }
    }

    /// A connection that reads, by these slots, keeps stock checkpoints out, too: the one that has
    /// begun the session may be killed.
    ///
    /// # Errors
    ///
    /// As the calls for the locks.
    pub(crate) fn guard_reading(&mut self, slots: &Range<usize>) -> Result<()> {
        if !self.lets_strangers_in() || broken(Mutation::ReadersUnguarded) {
            return Ok(());
        }
        let guarded = self.guard_session();
        if guarded.is_err() {
            self.index.unlock(slots.clone(), &self.files)?;
        }
        guarded
    }

    /// Takes it for a session that is about to begin. Whether it could be had.
    ///
    /// # Errors
    ///
    /// As the calls for the locks.
    pub(crate) fn guard_beginning(&mut self) -> Result<bool> {
        let Some(index) = &mut self.index.open else { return Ok(true) };
        if broken(Mutation::NoGuard) {
            return Ok(true);
        }
        match index.guard() {
            Err(Error::Busy) => Ok(false),
            taken => taken.map(|()| true),
        }
    }

    /// The database is at rest, whoever brought it there: stock SQLite may checkpoint.
    ///
    /// # Errors
    ///
    /// As the calls for the locks.
    pub fn leave_session(&mut self) -> Result<()> {
        match !self.files.lets_writers_in() || broken(Mutation::GuardedAtRest) {
            true => Ok(()),
            false => self.guard_session(),
        }
    }

    fn lets_strangers_in(&self) -> bool {
        self.files.lets_writers_in() && self.wal.open.is_some()
    }

    /// The wal-index, if it and `-wal` are of another generation than is known.
    fn strangers_generation(&self) -> Result<Option<IndexHeader>> {
        let known = self.files.shared.get(Word::Salts);
        let seen = self.index.header().filter(|_| self.lets_strangers_in());
        let seen = seen.filter(|seen| pack(seen.salts) != known && !broken(Mutation::NotAdopted));
        let Some(seen) = seen else { return Ok(None) };
        // Somebody may have died between the index and the header: the next writer makes that one.
        let header = self.wal.header(&self.files)?;
        Ok(header.filter(|header| salts_word(header) == pack(seen.salts)).map(|_| seen))
    }

    fn adopt_in_log(&mut self, leader: &mut Leader<S>) -> Result<()> {
        // Read before the flush: what comes later may miss it.
        let Some(seen) = self.strangers_generation()? else { return Ok(()) };
        let name = Arc::clone(self.files.names.shown_wal());
        let Some(wal) = self.wal.find(&self.files)? else { return Ok(()) };
        let Some(header) = WalHeader::read(&wal, &name)? else { return Ok(()) };
        if !broken(Mutation::AdoptedOverDirty) {
            self.sync()?;
        }
        self.flush_wal_file()?;
        let c = &self.files.shared;
        for word in [Word::Window, Word::Carried, Word::Stamp, Word::StampPage] {
            c.set(word, 0);
        }
        c.set(Word::Generation, c.get(Word::Generation).wrapping_add(1));
        c.set(Word::Salts, pack(seen.salts));
        c.set_durable(0);
        // What lacks a checksum is no valid frame, and gets one from the next writer.
        let found = valid_prefix(&wal, &header, Prefix::before_all(&header), &name)?;
        c.set_durable(found.committed.min(seen.mx_frame));
        self.take_back_void(leader)?;
        self.wal.page = None;
        self.counters.own.generations += 1;
        Ok(())
    }
}
