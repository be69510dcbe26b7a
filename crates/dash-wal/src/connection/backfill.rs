//! What of `-wal` is not in the database yet, so that `-wal` must not go (WAL-40).
//!
//! The last connection to close copies all commits into the database, and deletes `-wal` unless
//! that failed (wal.c `sqlite3WalClose`). `SQLITE_BUSY` from any step of it is no failure to SQLite
//! (wal.c `walCheckpoint`). The wal-index says how far it came: SQLite's `nBackfill`. By the time
//! of the deletion SQLite has given the index up; under `locking_mode=EXCLUSIVE` there may never
//! have been a shared one. Then the calls tell: a checkpoint that has copied everything, and only
//! such a one, cuts the database to its size.

use crate::connection::files::Files;
use crate::connection::wal::{Backfill, Wal};
use crate::frames::{self, Prefix, WalHeader};
use crate::index::Index;
use crate::mutation::{Mutation, broken};
use dash_engine::error::{Error, Result};
use dash_storage::Storage;
use std::ops::ControlFlow;
use std::sync::Arc;

impl<S: Storage> Wal<S> {
    /// Reads it from the wal-index, if that is shared, and whole. Nobody else uses that where
    /// `-wal` is about to go.
    pub fn note_backfill(&mut self, index: Option<&Index<S>>) {
        match index.and_then(Index::is_backfilled) {
            Some(true) => self.backfill = Backfill::Whole,
            Some(false) => self.backfill = Backfill::Partial,
            None => {}
        }
    }

    /// `-wal` is about to be deleted or emptied.
    ///
    /// # Errors
    ///
    /// `Refused` where a commit in it is not in the database; those of reading it.
    pub fn check_backfilled(&self, files: &Files<S>) -> Result<()> {
        let lacks = match self.backfill {
            Backfill::Whole => false,
            Backfill::Partial => true,
            Backfill::Unknown { before } => self.has_commit_before(before, files)?,
        };
        match lacks && !broken(Mutation::DeletedUncopied) {
            true => Err(Error::Refused(not_copied("it stays as it is", files))),
            false => Ok(()),
        }
    }

    /// Whether a commit ends before frame `before`.
    fn has_commit_before(&self, before: u32, files: &Files<S>) -> Result<bool> {
        let name = Arc::clone(files.names.shown_wal());
        let Some(wal) = files.open_wal_again()? else { return Ok(false) };
        let Some(header) = WalHeader::read(&wal, &name)? else { return Ok(false) };
        let mut found = false;
        frames::walk(&wal, &header, Prefix::before_all(&header), &name, |number, frame, _| {
            found = number < before && frame.is_commit();
            match found || number >= before {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })?;
        Ok(found)
    }

    /// SQLite takes `-wal` for deleted, and opens it once more on its way out of WAL mode. There
    /// `PRAGMA journal_mode` must fail: else it says that in a commit of WAL mode, and answers that
    /// the mode was left.
    pub fn check_not_left(&mut self, files: &Files<S>) -> Result<()> {
        match std::mem::take(&mut self.is_kept) {
            true => Err(Error::CantOpen(not_copied("the database stays in WAL mode", files))),
            false => Ok(()),
        }
    }
}

fn not_copied<S: Storage>(so: &str, files: &Files<S>) -> String {
    let (db, wal) = (files.names.shown(), files.names.shown_wal());
    format!(
        "{wal} has commits that are not in {db} yet, as a checkpoint was cut short without an error: {so}; nothing is lost, \
         as they are read from there, and the next close or PRAGMA wal_checkpoint(TRUNCATE) copies them"
    )
}
