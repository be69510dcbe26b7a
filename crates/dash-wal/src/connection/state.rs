//! What a connection has: its parts.

use crate::connection::checkpoint::Checkpoint;
use crate::connection::files::Files;
use crate::connection::index::WalIndex;
use crate::connection::transaction::Transaction;
use crate::connection::upgrade::reads::Reads;
use crate::connection::upgrade::view::{Conflict, View};
use crate::connection::wal::Wal;
use crate::execute::Execute;
use crate::memory::wal::WalFile;
use crate::options::{Barrier, Durability, Tuning};
use crate::process::{Frames, Process};
use crate::shared::coordination::{TOTALS, Word};
use crate::statistics::Statistics;
use dash_engine::error::Result;
use dash_engine::handover::Turn;
use dash_engine::totals::Told;
use dash_log::ring::Ring;
use dash_log::session::{LogMedium, Session};
use dash_storage::{File, Storage};
use std::sync::Arc;
use std::time::Duration;

/// A connection: the database's file, `-wal` and the wal-index as SQLite uses them, and the log
/// below. It is called by one thread at a time.
pub struct Connection<S: Storage> {
    /// The database and what lies beside it, and what all connections share.
    pub(crate) files: Files<S>,
    /// `-wal`.
    pub(crate) wal: Wal<S>,
    /// The wal-index and its locks.
    pub(crate) index: WalIndex<S>,
    /// What a writer's transaction has.
    pub(crate) transaction: Transaction,
    /// What its cache is of.
    pub(crate) reads: Reads,
    /// What SQLite is shown while it writes on an old snapshot.
    pub(crate) view: Option<View>,
    /// What kept it from that last.
    pub(crate) conflict: Option<Conflict>,
    /// The checkpoint in hand.
    pub(crate) checkpoint: Checkpoint,
    /// The log.
    pub(crate) session: Session<S, Frames>,
    /// What the connections of this process share.
    pub(crate) process: Arc<Process<S>>,
    /// What was chosen.
    pub settings: Settings,
    pub(crate) counters: Counters,
}

/// What was chosen.
#[derive(Clone)]
pub struct Settings {
    /// What a commit is to survive.
    pub durability: Durability,
    /// What a checkpoint relies on.
    pub(crate) barrier: Barrier,
    /// Whether a reader waits until what it sees is durable.
    pub durable_reads: bool,
    /// How long after its last commit the database is to come to rest; `None`: it is not to.
    pub rest: Option<Duration>,
    pub(crate) tuning: Tuning,
    /// What runs statements again that carry commits.
    pub(crate) executor: Option<Arc<dyn Execute>>,
}

/// What was counted.
#[derive(Default)]
pub(crate) struct Counters {
    /// But for what the log and `-wal` count by themselves.
    pub own: Statistics,
    /// What of all that is among the counters of all connections.
    pub told: Told,
}

impl<S: Storage> Connection<S> {
    /// Sets what a checkpoint relies on.
    ///
    /// # Errors
    ///
    /// Those of the flush of `-wal` that leaving the log takes.
    pub fn set_barrier(&mut self, barrier: Barrier) -> Result<()> {
        let leaves_log = barrier == Barrier::Wal && self.settings.barrier == Barrier::Log;
        self.settings.barrier = barrier;
        // What was checkpointed before rested on the log alone.
        match leaves_log && self.wal.open.is_some() && self.files.shared.is(Word::Session) {
            true => self.flush_wal_alone(),
            false => Ok(()),
        }
    }

    /// What a checkpoint relies on.
    #[must_use]
    pub fn chosen_barrier(&self) -> Barrier {
        self.settings.barrier
    }

    /// Whether other databases are written in the transactions to come.
    pub fn set_undeferred(&mut self, on: bool) {
        self.transaction.undeferred = on;
    }

    /// The log is removed when the last connection closes: what was deleted must be in no file.
    pub fn keep_no_log(&self) {
        self.files.shared.set(Word::NoLog, 1);
    }

    /// Its place in line for WRITER.
    #[must_use]
    pub fn turn(&self) -> Option<Turn<<S::File as File>::Memory>> {
        self.files.shared.turn()
    }

    /// What the user should know of the calls since the last time, though none of them failed.
    pub fn take_notice(&mut self) -> Option<String> {
        self.session.notice.take()
    }

    /// Counters.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let c = &self.files.shared;
        let log = u64::from(c.is(Word::Session));
        let (log_size, position) = (c.get(Word::Ring) * log, c.get(Word::Position));
        let ring = Ring { len: log_size, block: 1 };
        let window = ring.used(c.get(Word::Window).checked_sub(1), position);
        let direct = log & u64::from(self.log_medium() == Some(LogMedium::Direct));
        Statistics { log, direct, log_size, window: window * log, ..self.counted() }
    }

    /// The counters, with what the log has counted, and `-wal` since SQLite opened it.
    pub(crate) fn counted(&self) -> Statistics {
        let written = self.wal.open.as_ref().map_or(0, WalFile::written);
        let (counts, mut all) = (&self.session.counts, self.counters.own);
        all.wal_flushes += self.wal.flushes;
        all.records += counts.records;
        all.log_bytes += counts.bytes;
        all.log_flushes += counts.flushes;
        all.growths += counts.growths;
        all.wraps += counts.wraps;
        all.failed_flushes += counts.failed;
        all.directory_flushes += counts.folder_flushes;
        all.wal_file_bytes += self.wal.file_bytes + written;
        all
    }

    /// How often this connection has flushed the log, `-wal` or the folder, and how many of its
    /// commits were durable by somebody else's flush.
    #[must_use]
    pub fn flushes_and_waits(&self) -> u64 {
        let told = self.counted();
        told.log_flushes + told.wal_flushes + told.directory_flushes + told.helped
    }

    /// The counters of all connections, of any process, since the first of the present ones opened
    /// the database, in the order of [`Statistics::rows`]; those of others up to their last commit.
    #[must_use]
    pub fn totals(&self) -> Vec<u64> {
        let memory = &*self.files.shared.memory;
        self.counters.told.total(memory, TOTALS, &self.counted().counters())
    }

    /// Adds this connection's to them.
    pub(crate) fn tell_totals(&mut self) {
        let memory = &*self.files.shared.memory;
        self.counters.told.tell(memory, TOTALS, &self.counted().counters());
    }

    /// What the log is written to; `None`: it is not in use, or not by this process yet.
    #[must_use]
    pub fn log_medium(&self) -> Option<LogMedium> {
        self.session.leading.medium().filter(|_| self.files.shared.is(Word::Session))
    }

    /// How long after its last commit the database is to come to rest. `None`: it is at rest, or is
    /// not to come there.
    #[must_use]
    pub fn rests_after(&self) -> Option<Duration> {
        self.settings.rest.filter(|_| !self.is_at_rest())
    }

    /// Whether the log counts for nothing and nobody is fenced off.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.files.shared.is_at_rest()
    }

    /// Now, by the storage's clock, in nanoseconds: what times of others are compared with.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.files.storage.monotonic_nanos()
    }
}
