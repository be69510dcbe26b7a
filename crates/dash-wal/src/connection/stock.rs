//! The way without the log: a flush of `-wal`, as in stock SQLite.
//!
//! So the first commits of a session become durable, those that are too large for a record, and
//! those after a flush of the log that failed. Whatever is in `-wal` by then is durable there, and
//! the log's window ends: the next record starts one (WAL-9).

use crate::connection::files::Files;
use crate::connection::state::Connection;
use crate::connection::transaction::CommitFrame;
use crate::connection::wal::Wal;
use crate::context::salts_of;
use crate::frames::{pack, unpack};
use crate::mutation::{Mutation, broken};
use crate::process::Leader;
use crate::shared::coordination::Word;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_log::session::{Engine, Means, commit, with_log_waiting};
use dash_storage::{Directory, Storage};
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

impl<S: Storage> Wal<S> {
    /// A flush, and nothing else. A second one after one that failed would prove nothing: the pages
    /// may be clean by then. Where they are in memory, and the disk was full, they are written
    /// again (WAL-43).
    pub fn flush(&mut self, files: &Files<S>) -> Result<()> {
        self.flushes += 1;
        let Err(source) = self.file(files)?.flush() else { return Ok(()) };
        let (operation, name) = (Operation::Flush, files.names.shown_wal().to_string());
        if is_full(&source) && self.file(files)?.is_in_memory() {
            let why = format!(
                "{source}; the last commits are visible, and durable with the next one that finds space"
            );
            return Err(Error::Io { operation, name, source: io::Error::new(source.kind(), why) });
        }
        Err(files.poisoned_by(&Error::Io { operation, name, source }))
    }

    /// Whether a flush of one in memory has failed that can be made later (WAL-43).
    fn finds_no_space(&self, error: &Error, files: &Files<S>) -> bool {
        match error {
            Error::Io { operation: Operation::Flush, name, source } => {
                **files.names.shown_wal() == *name && is_full(source) && self.memory.is_some()
            }
            _ => false,
        }
    }
}

impl<S: Storage> Connection<S> {
    /// Flushes `-wal`, whose visible frames end at `end`. The lock LOG is held.
    pub(crate) fn flush_wal(&mut self, leader: &mut Leader<S>, end: u32) -> Result<()> {
        self.flush_wal_file()?;
        self.take_back_void(leader)?;
        self.files.shared.set(Word::Window, 0);
        self.files.shared.set_durable(end);
        self.files.shared.word(Word::StockCommits).fetch_add(1, SeqCst);
        // Behind the flush, which may take longer than commits are apart.
        self.files.shared.set(Word::StockAt, self.files.storage.monotonic_nanos());
        Ok(())
    }

    /// The flush alone, and what follows from it for the log.
    pub(crate) fn flush_wal_file(&mut self) -> Result<()> {
        let flushed = self.wal.flush(&self.files);
        if flushed.is_err() && !broken(Mutation::FullForgotten) {
            // As if somebody had died over a record: a flush of `-wal` is to come first (WAL-43).
            let c = &self.files.shared;
            c.set(Word::Writes, c.get(Word::Writes).max(c.get(Word::Sequence) + 1));
        }
        flushed?;
        let name = Arc::clone(self.files.names.shown_wal());
        if !self.files.shared.is(Word::WalNamed) {
            self.session.counts.folder_flushes += 1;
            self.files.directory.flush().during(Operation::FlushDirectory, &name)?;
            self.files.shared.set(Word::WalNamed, 1);
        }
        // A header that was only announced is not there yet.
        let salts = match self.wal.header(&self.files)? {
            Some(header) => salts_of(&header),
            None => unpack(self.files.shared.get(Word::Salts)),
        };
        self.files.shared.wal_is_flushed(salts);
        Ok(())
    }

    /// A commit is visible, and what was to make it durable has failed, by `error`: a lock, the
    /// log, a page that was to be read back. A flush of `-wal` needs none of these (WAL-41).
    ///
    /// # Errors
    ///
    /// `error`, if it says that `-wal` is not what it was; `Poisoned` where that can't be flushed.
    pub(crate) fn make_good(&mut self, error: Error) -> Result<bool> {
        let is_final = matches!(error, Error::Poisoned(_) | Error::Corrupt(_));
        if is_final
            || self.wal.finds_no_space(&error, &self.files)
            || broken(Mutation::CommitFailsForLog)
        {
            return Err(error);
        }
        // While the log calls void what has the salts of now, no flush of `-wal` is worth anything.
        // What failed may have been that one write, or its flush: it is written again.
        let c = &self.files.shared;
        let is_void = c.is(Word::HeadVoid) && c.is(Word::Session);
        if is_void && with_log_waiting(self, Self::take_back_void).is_err() {
            return Err(self.files.poisoned_by(&error));
        }
        self.session.note_failed_flush(&error);
        match self.flush_beside_leader() {
            Ok(()) => Ok(true),
            Err(error @ Error::Poisoned(_)) => Err(error),
            Err(error) if self.wal.finds_no_space(&error, &self.files) => Err(error),
            Err(error) => Err(self.files.poisoned_by(&error)),
        }
    }

    /// Flushes it as a barrier, with whatever is visible.
    pub(crate) fn flush_wal_alone(&mut self) -> Result<()> {
        with_log_waiting(self, |connection, leader| {
            // Read before the flush: what comes later may miss it.
            let end = connection.visible_end()?;
            match end {
                Some(end) => connection.flush_wal(leader, end),
                None => {
                    let durable = connection.files.shared.durable();
                    connection.flush_wal_file()?;
                    connection.files.shared.set(Word::Durable, durable.word());
                    connection.files.shared.set(Word::Window, 0);
                    Ok(())
                }
            }
        })
    }

    /// Makes a transaction durable that is not visible yet, and may still be rolled back: never by
    /// a record, for one of its frames in the log would count for more than the frame that the next
    /// transaction puts in its place (WAL-3).
    pub(crate) fn flush_wal_undeferred(&mut self, frame: CommitFrame) -> Result<()> {
        if pack(frame.salts) != self.files.shared.get(Word::Salts) {
            return Err(self.files.strange("a commit frame has other salts than its header"));
        }
        if broken(Mutation::UndeferredInLog) {
            return commit(self, frame.number, Means::Flush);
        }
        with_log_waiting(self, |connection, _| {
            connection.flush_wal_file()?;
            connection.files.shared.set(Word::Window, 0);
            Ok(())
        })
    }

    /// A header that was written over an older one, where no log tells the two apart: no frame
    /// behind it may be older than it is on the device.
    pub(crate) fn settle_header(&mut self) -> Result<()> {
        match self.files.shared.is(Word::Session) {
            true => Ok(()),
            false => with_log_waiting(self, |connection, _| connection.flush_wal_file()),
        }
    }
}

/// Whether there was no space. What is in memory then can be written once more.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}
