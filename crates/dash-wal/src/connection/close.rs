//! Closing. The last connection leaves a plain SQLite file: no fence, no coordination file, and a
//! log that counts no more.

use crate::connection::files::Files;
use crate::connection::state::Connection;
use crate::connection::wal::Wal;
use crate::context::{salts_of, salts_word};
use crate::mutation::{Mutation, broken};
use crate::recovery::look::raw_header;
use crate::shared::coordination::Word;
use crate::shared::locks::ALIVE;
use dash_engine::coordination::take_open_to_close;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::locks::LockLevel;
use dash_log::session::{Engine, with_log_waiting};
use dash_storage::{Directory, File, LockKind, Storage};
use std::io::ErrorKind;
use std::sync::Arc;

impl<S: Storage> Wal<S> {
    /// Cuts it to nothing before its name goes. On a file system without a journal its inode
    /// may be back after a power loss, under a `-wal` that was made since and got the same number;
    /// and where data is in no order its name may be back, with another file's data in some of its
    /// blocks. What was in it has been overtaken by then (WAL-6).
    fn empty(&self, files: &Files<S>) -> Result<()> {
        let name = Arc::clone(files.names.shown_wal());
        // Of what is another file, too, the name goes, and that is all.
        let wal = match self.find(files) {
            Err(Error::CantOpen(_)) | Ok(None) => return Ok(()),
            Err(error) => return Err(error),
            Ok(Some(wal)) => wal,
        };
        if broken(Mutation::DeletedFull) {
            return Ok(());
        }
        wal.set_len(0).during(Operation::Resize, &name)?;
        wal.flush().during(Operation::Flush, &name)
    }
}

impl<S: Storage> Connection<S> {
    /// `xDelete` of `-wal`: SQLite holds EXCLUSIVE, has checkpointed everything, and closes. The
    /// order is WAL-6's: what the database holds is durable, then the log says that `-wal` is void,
    /// then it goes, and when that is durable stock SQLite may come in.
    ///
    /// # Errors
    ///
    /// `Refused` where a commit in it is not in the database: it stays as it is, and SQLite finds
    /// it the next time (WAL-40). Those of the files; what is left then is what a crash would
    /// leave.
    pub fn wal_delete(&mut self) -> Result<()> {
        if let Err(refused) = self.wal.check_backfilled(&self.files) {
            self.wal.is_kept = true;
            self.wal.leave_memory(&self.files)?;
            return Err(refused);
        }
        self.flush_database_if_dirty()?;
        if broken(Mutation::FenceRemovedEarly) {
            self.files.lower_fence(&mut self.session)?;
        }
        let session = self.files.shared.is(Word::Session);
        if session {
            with_log_waiting(self, |connection, leader| connection.void_generation(leader))?;
        }
        let holds = self.files.shared.get(Word::Salts) != 0;
        if session || holds && !self.files.directory.keeps_order() {
            self.wal.empty(&self.files)?;
        }
        let name = Arc::clone(self.files.names.shown_wal());
        match self.files.directory.unlink(&self.files.names.wal) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            other => other.during(Operation::Delete, &name)?,
        }
        if session {
            self.session.flush_home()?;
            // It is gone, and what others put in its place is none of the log's business.
            with_log_waiting(self, |connection, leader| {
                connection.write_head(leader, &connection.files.shared.closed())
            })?;
        }
        self.end_fence()?;
        for word in [
            Word::Session,
            Word::WalNamed,
            Word::Salts,
            Word::FirstSalt,
            Word::HeadVoid,
            Word::StockCommits,
        ] {
            self.files.shared.set(word, 0);
        }
        self.files.shared.set_durable(0);
        self.wal.release_memory(false, &self.files)
    }

    /// Gives everything back. Errors are reported, but the connection is closed in any case.
    ///
    /// # Errors
    ///
    /// Those of the files.
    pub fn close(mut self) -> Result<()> {
        let unmapped = self.unmap(false);
        let unlocked = self.files.database.unlock(LockLevel::None);
        let left = self.leave();
        unmapped.and(unlocked).and(left)
    }

    fn leave(&mut self) -> Result<()> {
        self.tell_totals();
        let name = Arc::clone(self.files.names.shown_coordination());
        self.files.shared.unregister();
        if self.wal.is_refused {
            // It is not for this connection to say that the log's commits count no more.
            return Ok(());
        }
        if !take_open_to_close(&self.files.storage, &self.files.shared.file, &name)? {
            return Ok(());
        }
        let named = self.files.directory.metadata(&self.files.names.coordination);
        let named = named.during(Operation::Stat, &name)?;
        if named.is_none_or(|named| named.id != self.files.shared.file.id()) {
            return Ok(());
        }
        let file = &self.files.shared.file;
        let alone = file.try_lock(ALIVE, LockKind::Exclusive).during(Operation::Lock, &name)?;
        if !alone {
            let rested = self.rest_for_those_who_stay();
            let unlocked = self.files.shared.file.unlock(ALIVE).during(Operation::Lock, &name);
            return rested.and(unlocked);
        }
        if self.files.shared.is(Word::Session)
            && (self.files.is_wal_replaced() || self.has_moved()?)
            && !broken(Mutation::MovedEnded)
        {
            // What a kill would leave: who opens what has the name now is told (WAL-49, WAL-55).
            return Ok(());
        }
        // Only a clean state goes without its mark of being open.
        self.rest()?;
        self.wal.release_memory(true, &self.files)?;
        if self.files.shared.is(Word::NoLog) || self.is_worth_removing() {
            // It says nothing any more, and one that a power loss brings back says that.
            self.session.place.retire()?;
        }
        self.files.database.release_hold()?;
        if self.files.shared.is(Word::FlushFailed) && !broken(Mutation::FailedFlushForgotten) {
            // Who comes next takes nothing in the cache for what is on the device (WAL-11).
            return Ok(());
        }
        self.files.directory.unlink(&self.files.names.coordination).during(Operation::Delete, &name)
    }

    /// Those who stay may have read nothing yet, and hold nothing that keeps stock SQLite from what
    /// the log speaks of: then the session ends (WAL-17). OPEN is held, so none of them closes.
    fn rest_for_those_who_stay(&mut self) -> Result<()> {
        if self.is_at_rest() || self.files.is_wal_replaced() || broken(Mutation::LeftToUnread) {
            return Ok(());
        }
        let mut index = match self.files.attach_index() {
            Ok((index, true)) => index,
            // Others have it, and are told the same when they close.
            Ok((_, false)) | Err(Error::Busy) => return Ok(()),
            Err(error) => return Err(error),
        };
        // They may have one that lost its name.
        let rested = match self.files.are_files_used()? {
            true => Ok(()),
            false => {
                let rested = self.rest();
                self.files.leave_files().and(rested)
            }
        };
        index.readmit()?;
        index.unmap(&*self.files.directory, &self.files.shared.file, false)?;
        rested
    }

    /// Whether the log takes much space for nothing. One that tells what commits ran is kept, and
    /// one elsewhere, which not everybody may make.
    fn is_worth_removing(&self) -> bool {
        self.files.shared.get(Word::Ring) > self.settings.tuning.ring_kept
            && !self.files.shared.is(Word::Said)
            && self.session.place.sign.is_none()
    }

    /// What a closed database looks like, if SQLite has not deleted `-wal`: because a stock reader
    /// has the database open, or because it is to stay. It is durable by itself then, and goes on
    /// without the log.
    fn rest(&mut self) -> Result<()> {
        self.files.check_sound()?;
        self.flush_database_if_dirty()?;
        if let Some(memory) = self.wal.own_memory().filter(|memory| memory.gate().guard.is_some()) {
            self.wal.write_memory_back(&memory, &self.files)?;
        }
        if self.files.shared.is(Word::Session) {
            let (wal, name) =
                (self.files.open_wal_again()?, Arc::clone(self.files.names.shown_wal()));
            let header = wal.as_ref().map_or(Ok(None), |wal| raw_header(wal, &name))?;
            if header.is_none_or(|header| salts_word(&header) != self.files.shared.get(Word::Salts))
            {
                // SQLite has given up what keeps stock SQLite out: a stock program has checkpointed
                // all of it since, and may have flushed nothing.
                self.sync()?;
                self.session.flush_home()?;
            }
            if let Some(wal) = &wal
                && !broken(Mutation::KeptNotFlushed)
            {
                self.wal.flushes += 1;
                wal.flush().during(Operation::Flush, &name)?;
            }
            if let Some(header) = header {
                self.files.shared.wal_is_flushed(salts_of(&header));
            }
            with_log_waiting(self, Self::leave_log)?;
        }
        self.end_fence()?;
        Ok(())
    }
}
