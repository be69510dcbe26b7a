//! The database's file: what SQLite reads, what a checkpoint copies, and its locks.

use crate::connection::state::Connection;
use crate::connection::wal::Backfill;
use crate::mutation::{Mutation, broken};
use crate::shared::coordination::Word;
use dash_engine::database::DatabaseFile;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::header::{MAGIC, not_sqlites};
use dash_engine::locks::LockLevel;
use dash_storage::{Directory, File, FileId, Storage};
use std::sync::Arc;

impl<S: Storage> Connection<S> {
    /// The file, for what needs nothing else of a connection.
    #[must_use]
    pub fn database(&self) -> &DatabaseFile<S::File> {
        &self.files.database
    }

    /// Writes: a checkpoint, or a transaction of a database that is not in WAL mode.
    ///
    /// # Errors
    ///
    /// Those of the file, and of a log that is out of order: then no frame may reach the database.
    /// `NotADatabase` for a new one that does not begin as SQLite's do.
    pub fn write(&mut self, data: &[u8], offset: u64) -> Result<()> {
        if self.wal.open.is_some() {
            self.files.check_sound()?;
            if !self.files.shared.is(Word::DatabaseDirty) {
                self.files.shared.set(Word::DatabaseDirty, 1);
            }
            self.counters.own.database_bytes += data.len() as u64;
        } else if offset == 0 && !data.starts_with(MAGIC) && self.files.database.size()? == 0 {
            return Err(not_sqlites(self.files.names.shown()));
        }
        self.files.database.write(data, offset)
    }

    /// Cuts or extends it.
    ///
    /// # Errors
    ///
    /// Those of the file.
    pub fn truncate(&mut self, size: u64) -> Result<()> {
        self.files.shared.set(Word::DatabaseDirty, 1);
        self.files.database.truncate(size)?;
        if self.wal.open.is_some() && self.checkpoint.is_lazy && self.files.lets_writers_in() {
            self.flush_before_strangers()?;
        }
        // In WAL mode that is a checkpoint's, once every commit is copied.
        self.wal.backfill = Backfill::Whole;
        Ok(())
    }

    /// Extends it, with blocks reserved, for what a checkpoint is about to write. Never cuts.
    ///
    /// # Errors
    ///
    /// Those of the file.
    pub fn reserve(&mut self, size: u64) -> Result<()> {
        if size <= self.files.database.size()? {
            return Ok(());
        }
        self.files.shared.set(Word::DatabaseDirty, 1);
        self.files.database.allocate(size)
    }

    /// Makes it durable.
    ///
    /// # Errors
    ///
    /// Those of the file.
    pub fn sync(&mut self) -> Result<()> {
        self.counters.own.database_flushes += 1;
        if let Err(error) = self.files.database.sync() {
            self.files.shared.set(Word::FlushFailed, 1);
            if self.wal.open.is_some() {
                // What a checkpoint has copied may be lost.
                self.wal.backfill = Backfill::Partial;
            }
            return Err(error);
        }
        self.files.shared.set(Word::DatabaseDirty, 0);
        if self.wal.open.is_none() && !broken(Mutation::JournalPromisesNothing) {
            // SQLite has committed by its journal: a checkpoint under `synchronous=OFF`, once WAL
            // mode is entered again, must not take that away.
            self.files.shared.set(Word::Promised, 1);
        }
        Ok(())
    }

    /// The same, if a checkpoint under `synchronous=OFF` has left it, and any commit was to be
    /// durable (WAL-12).
    pub(crate) fn flush_database_if_dirty(&mut self) -> Result<()> {
        let c = &self.files.shared;
        match (c.is(Word::DatabaseDirty) || self.files.may_be_copied_by_strangers())
            && c.is(Word::Promised)
            && !broken(Mutation::DatabaseNotFlushed)
        {
            true => self.sync(),
            false => Ok(()),
        }
    }

    /// Raises the lock (os_unix.c `unixLock`).
    ///
    /// # Errors
    ///
    /// `Busy` while somebody is in the way.
    pub fn lock(&mut self, level: LockLevel) -> Result<()> {
        if level == LockLevel::Exclusive && self.view.is_some() {
            // SQLite would go on without a slot, and without telling when it stops reading.
            return Err(Error::Busy);
        }
        let starts = self.files.may_be_empty && self.files.database.level() == LockLevel::None;
        if starts && !self.files.take_start()? {
            return Err(Error::Busy);
        }
        let locked = self.files.database.lock(level);
        let is_alone = level == LockLevel::Exclusive && locked.is_ok();
        if is_alone && !broken(Mutation::ExclusiveReadsKept) {
            self.reads.lose();
        }
        if is_alone && self.index.open.is_none() {
            // SQLite keeps its index to itself, and what `-shm` shows gets old.
            self.files.shared.set(Word::IndexFile, 0);
        }
        if starts && locked.is_err() {
            self.files.give_up_start()?;
        }
        locked
    }

    /// Lowers it (os_unix.c `posixUnlock`).
    ///
    /// # Errors
    ///
    /// Those of the file.
    pub fn unlock(&mut self, level: LockLevel) -> Result<()> {
        self.files.database.unlock(level)?;
        self.wal.is_kept &= level != LockLevel::None;
        if self.files.may_be_empty && level == LockLevel::None {
            self.files.give_up_start()?;
        }
        Ok(())
    }

    /// Whether the database is that file, whatever its name is.
    pub fn is_of(&self, file: FileId) -> bool {
        self.files.database.file().id() == file
    }

    /// Whether the name stands for another file now, or for none. That is said once.
    ///
    /// # Errors
    ///
    /// Those of the directory.
    pub fn has_moved(&mut self) -> Result<bool> {
        let db = Arc::clone(self.files.names.shown());
        let named =
            self.files.directory.metadata(&self.files.names.db).during(Operation::Stat, &*db)?;
        let moved = named.is_none_or(|named| !self.is_of(named.id));
        if moved && !std::mem::replace(&mut self.files.said_moved, true) {
            self.session.notice = Some(format!(
                "{db} was removed or replaced while it was open: what is committed there since is in the former file alone, not in \
                 what has the name now. Close all connections to it, and open it again"
            ));
        }
        Ok(moved)
    }

    /// Whether the last close is to leave `-wal` as it is (`SQLITE_FCNTL_HAS_MOVED`), which SQLite
    /// does where the database has moved. The next to open what has the name now would take it for
    /// that file's: so `-wal` goes, once its commits are in the former file, unless `-wal` is
    /// another file by now, too (WAL-49).
    ///
    /// # Errors
    ///
    /// What looking up a name fails with.
    pub fn is_wal_left(&mut self) -> Result<bool> {
        if !self.has_moved()? {
            return Ok(false);
        }
        let wal = self.files.directory.metadata(&self.files.names.wal);
        let named =
            wal.during(Operation::Stat, self.files.names.shown_wal())?.map(|named| named.id);
        let own = self.wal.open.as_ref().map(|wal| wal.file().id());
        Ok(named.is_some() && named != own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpenOptions;
    use dash_engine::header::HEADER_LEN;
    use dash_storage::real::Real;

    #[test]
    fn a_database_that_is_encrypted_from_its_first_byte_on_is_not_begun() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        std::fs::write(&path, []).unwrap();
        let options = OpenOptions::default();
        let mut engine = Connection::open(&Real, &path, &options, &Arc::default()).unwrap();
        for level in [LockLevel::Shared, LockLevel::Reserved, LockLevel::Exclusive] {
            engine.lock(level).unwrap();
        }
        let mut page = [7; HEADER_LEN];
        let refused = engine.write(&page, 0).unwrap_err().to_string();
        assert!(refused.contains("app.db: page 1 does not begin with"), "{refused}");
        assert_eq!(engine.database().size().unwrap(), 0);
        page[..MAGIC.len()].copy_from_slice(MAGIC);
        engine.write(&page, 0).unwrap();
        engine.unlock(LockLevel::None).unwrap();
    }
}
