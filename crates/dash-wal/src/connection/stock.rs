//! The way without the log: a flush of `-wal`, as in stock SQLite.
//!
//! So the first commits of a session become durable, those that are too large for a record, and
//! those after a flush of the log that failed. Whatever is in `-wal` by then is durable there, and
//! the log's window ends: the next record starts one (WAL-9).

use crate::connection::state::{CommitFrame, Connection};
use crate::context::salts_of;
use crate::mutation::{Mutation, broken};
use crate::process::Leader;
use crate::shared::coordination::Word;
use crate::shared::durable::{pack, unpack};
use dash_engine::error::{Context, Error, Operation, Result};
use dash_log::session::{Engine, Means, commit, with_log_waiting};
use dash_storage::{Directory, Storage};
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

impl<S: Storage> Connection<S> {
    /// Flushes `-wal`, whose visible frames end at `end`. The lock LOG is held.
    pub(crate) fn flush_wal(&mut self, leader: &mut Leader<S>, end: u32) -> Result<()> {
        self.flush_wal_file()?;
        self.take_back_void(leader)?;
        self.coordination.set(Word::Window, 0);
        self.coordination.set_durable(end);
        self.coordination.word(Word::StockCommits).fetch_add(1, SeqCst);
        // Behind the flush, which may take longer than commits are apart.
        self.coordination.set(Word::StockAt, self.storage.monotonic_nanos());
        Ok(())
    }

    /// A second flush after one that failed would prove nothing: the pages may be clean by then.
    /// Where they are in memory, and the disk was full, they are written again (WAL-43).
    pub(super) fn flush_or_poison(&mut self) -> Result<()> {
        let Err(source) = self.wal()?.flush() else { return Ok(()) };
        let (operation, name) = (Operation::Flush, self.names.shown_wal().to_string());
        if is_full(&source) && self.wal()?.is_in_memory() {
            let why = format!(
                "{source}; the last commits are visible, and durable with the next one that finds space"
            );
            return Err(Error::Io { operation, name, source: io::Error::new(source.kind(), why) });
        }
        Err(self.poisoned_by(&Error::Io { operation, name, source }))
    }

    /// The flush alone, and what follows from it for the log.
    pub(crate) fn flush_wal_file(&mut self) -> Result<()> {
        self.statistics.wal_flushes += 1;
        let flushed = self.flush_or_poison();
        if flushed.is_err() && !broken(Mutation::FullForgotten) {
            // As if somebody had died over a record: a flush of `-wal` is to come first (WAL-43).
            let c = &self.coordination;
            c.set(Word::Writes, c.get(Word::Writes).max(c.get(Word::Sequence) + 1));
        }
        flushed?;
        let name = Arc::clone(self.names.shown_wal());
        if !self.coordination.is(Word::WalNamed) {
            self.statistics.directory_flushes += 1;
            self.directory.flush().during(Operation::FlushDirectory, &name)?;
            self.coordination.set(Word::WalNamed, 1);
        }
        // A header that was only announced is not there yet.
        let salts = match self.wal_header()? {
            Some(header) => salts_of(&header),
            None => unpack(self.coordination.get(Word::Salts)),
        };
        self.wal_is_flushed(salts);
        Ok(())
    }

    /// `-wal` was flushed under the header with these salts: no older one is on the device.
    pub(crate) fn wal_is_flushed(&self, salts: [u32; 2]) {
        self.coordination.set(Word::FirstSalt, u64::from(salts[0]));
        self.coordination.set(Word::Predecessor, 0);
        self.coordination.set(Word::HeaderNew, 0);
    }

    /// A commit is visible, and what was to make it durable has failed, by `error`: a lock, the
    /// log, a page that was to be read back. A flush of `-wal` needs none of these (WAL-41).
    ///
    /// # Errors
    ///
    /// `error`, if it says that `-wal` is not what it was; `Poisoned` where that can't be flushed.
    pub(crate) fn make_good(&mut self, error: Error) -> Result<bool> {
        let is_final = matches!(error, Error::Poisoned(_) | Error::Corrupt(_));
        if is_final || self.finds_no_space(&error) || broken(Mutation::CommitFailsForLog) {
            return Err(error);
        }
        // While the log calls void what has the salts of now, no flush of `-wal` is worth anything.
        // What failed may have been that one write, or its flush: it is written again.
        let c = &self.coordination;
        let is_void = c.is(Word::HeadVoid) && c.is(Word::Session);
        if is_void && with_log_waiting(self, Self::take_back_void).is_err() {
            return Err(self.poisoned_by(&error));
        }
        self.session.note_failed_flush(&error);
        match self.flush_beside_leader() {
            Ok(()) => Ok(true),
            Err(error @ Error::Poisoned(_)) => Err(error),
            Err(error) if self.finds_no_space(&error) => Err(error),
            Err(error) => Err(self.poisoned_by(&error)),
        }
    }

    /// Whether a flush of a `-wal` in memory has failed that can be made later (WAL-43).
    fn finds_no_space(&self, error: &Error) -> bool {
        match error {
            Error::Io { operation: Operation::Flush, name, source } => {
                **self.names.shown_wal() == *name && is_full(source) && self.memory.is_some()
            }
            _ => false,
        }
    }

    /// Nothing is written any more: after `error` nobody knows what is durable.
    pub(crate) fn poisoned_by(&self, error: &Error) -> Error {
        self.coordination.set(Word::Poisoned, 1);
        Error::Poisoned(match error {
            Error::Poisoned(why) => why.clone(),
            error => format!(
                "{error}; the last commits are visible, and whether they are durable is not known"
            ),
        })
    }

    /// Flushes it as a barrier, with whatever is visible.
    pub(crate) fn flush_wal_alone(&mut self) -> Result<()> {
        with_log_waiting(self, |connection, leader| {
            // Read before the flush: what comes later may miss it.
            let end = connection.visible_end()?;
            match end {
                Some(end) => connection.flush_wal(leader, end),
                None => {
                    let durable = connection.coordination.durable();
                    connection.flush_wal_file()?;
                    connection.coordination.set(Word::Durable, durable.word());
                    connection.coordination.set(Word::Window, 0);
                    Ok(())
                }
            }
        })
    }

    /// Makes a transaction durable that is not visible yet, and may still be rolled back: never by
    /// a record, for one of its frames in the log would count for more than the frame that the next
    /// transaction puts in its place (WAL-3).
    pub(crate) fn flush_wal_undeferred(&mut self, frame: CommitFrame) -> Result<()> {
        if pack(frame.salts) != self.coordination.get(Word::Salts) {
            return Err(self.strange("a commit frame has other salts than its header"));
        }
        if broken(Mutation::UndeferredInLog) {
            return commit(self, frame.number, Means::Flush);
        }
        with_log_waiting(self, |connection, _| {
            connection.flush_wal_file()?;
            connection.coordination.set(Word::Window, 0);
            Ok(())
        })
    }

    /// A header that was written over an older one, where no log tells the two apart: no frame
    /// behind it may be older than it is on the device.
    pub(crate) fn settle_header(&mut self) -> Result<()> {
        match self.coordination.is(Word::Session) {
            true => Ok(()),
            false => with_log_waiting(self, |connection, _| connection.flush_wal_file()),
        }
    }
}

/// Whether there was no space. What is in memory then can be written once more.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}
