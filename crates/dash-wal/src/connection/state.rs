//! What a connection has.

use crate::connection::own::OwnFrames;
use crate::database::DatabaseFile;
use crate::execute::Execute;
use crate::frames::{Checksum, Salts};
use crate::index::{Index, Inherited};
use crate::memory::InMemory;
use crate::memory::wal::WalFile;
use crate::mutation::{Mutation, broken};
use crate::names::Names;
use crate::notes::Saying;
use crate::options::{Barrier, Durability, Tuning};
use crate::process::{Frames, Process};
use crate::shared::coordination::{Coordination, TOTALS, Word};
use crate::statistics::Statistics;
use dash_engine::error::{Error, Result};
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
    pub(crate) storage: S,
    pub(crate) directory: Arc<S::Directory>,
    pub(crate) names: Names,
    pub(crate) session: Session<S, Frames>,
    pub(crate) database: DatabaseFile<S::File>,
    /// Nobody has seen a byte in it yet.
    pub(crate) may_be_empty: bool,
    pub(crate) coordination: Coordination<S::File>,
    pub(crate) index: Option<Index<S>>,
    /// The index that SQLite knows from before a fork, until the one of now is in its place.
    pub(crate) inherited: Option<Inherited<S>>,
    /// `-wal`, while SQLite has it open.
    pub(crate) wal: Option<WalFile<S::File>>,
    /// What takes the place of `-wal`'s and `-shm`'s page cache; `None`: nothing does.
    pub(crate) memory: Option<Arc<InMemory<S>>>,
    /// Bytes of a page in `-wal`, in the generation of this number.
    pub(crate) page: Option<(u64, u32)>,
    pub(crate) process: Arc<Process<S>>,
    pub(crate) transaction: Transaction,
    pub(crate) own: OwnFrames,
    pub(crate) saying: Saying,
    pub(crate) checkpoint: Checkpoint,
    /// What of `-wal` is in the database.
    pub(crate) backfill: Backfill,
    /// `-wal` was not deleted, and SQLite takes it for that, as long as it has the database locked.
    pub(crate) kept_wal: bool,
    pub(crate) patience: Patience,
    /// The checksum of the wal-index's header when SQLite began to read.
    pub(crate) read_header: Option<u64>,
    pub(crate) settings: Settings,
    /// What runs statements again that carry commits.
    pub(crate) executor: Option<Arc<dyn Execute>>,
    pub(crate) statistics: Statistics,
    /// What of them is among those of all connections.
    pub(crate) told: Told,
    /// It was said that the database's name stands for another file now.
    pub(crate) said_moved: bool,
}

/// What was chosen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    pub durability: Durability,
    pub barrier: Barrier,
    pub durable_reads: bool,
    /// When the database is to come to rest.
    pub rest: Option<Duration>,
    pub tuning: Tuning,
}

/// The write transaction, as far as calls on `-wal` tell.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Transaction {
    /// The commit frame that was written: a flush of `-wal` is then a commit's. It ends with the
    /// lock WRITER, for a checkpoint's flush may be the next.
    pub frame: Option<CommitFrame>,
    /// The same, until COMMIT_PHASETWO asks for it, or the read lock falls without that.
    pub pending: Option<CommitFrame>,
    /// The first frame that was written; 0: none was.
    pub first: u32,
    /// How long the flush took that made it durable before it was visible, in nanoseconds.
    pub flushed: Option<u64>,
    /// The first frame that was written without salts and checksum; 0: none was.
    pub unsummed: u32,
    /// From that frame on all before this one have got theirs since.
    pub summed: u32,
    /// The last frame that was summed up here, and its checksum, which the index does not have.
    pub sums: Option<(u32, Checksum)>,
    /// The end of what was written into `-wal` last, but for headers of frames, in bytes.
    pub written_to: u64,
    /// SQLite has asked for a flush of it.
    pub synced: bool,
    /// Other databases are written in the same transaction: it must be durable before it is
    /// visible, for an error after that reaches nobody (WAL-3).
    pub undeferred: bool,
    /// WRITER was taken ahead of SQLite, by a sleep of its busy handler.
    pub reserved: bool,
}

/// A frame that ends a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CommitFrame {
    /// Its number in `-wal`.
    pub number: u32,
    /// Frames of the transaction.
    pub frames: u32,
    /// The salts it was written with.
    pub salts: [u32; 2],
}

/// How long WRITER was waited for, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Patience {
    /// The first attempt that failed since it was had last; 0: none did.
    pub since: u64,
    /// The last one.
    pub asked: u64,
    /// How long it was, before it was had last.
    pub waited: u64,
    /// What [`Word::Rested`](crate::shared::coordination::Word::Rested) was when somebody who came
    /// to rest was waited for in vain.
    pub in_vain: Option<u64>,
}

/// A checkpoint, as far as calls tell.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Checkpoint {
    /// Everything visible was made durable since the lock CKPT was taken.
    pub barrier: bool,
    /// Until when readers are kept back for it; 0: they are not.
    pub deadline: u64,
    /// It holds WRITER, which SQLite has not asked for.
    pub holds_writer: bool,
    /// The generation that was visible when CKPT was taken; `None`: that can't be told.
    pub generation: Option<Salts>,
}

/// What of `-wal` is in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Backfill {
    /// Every commit.
    #[default]
    Whole,
    /// Not every commit.
    Partial,
    /// What SQLite found there when it opened it may not be: commits before frame `before`.
    Unknown { before: u32 },
}

impl Backfill {
    /// As long as nothing is known of a `-wal` that was opened.
    pub(crate) const OPENED: Self = Self::Unknown { before: u32::MAX };

    /// A transaction begins with frame `number`: what is from there on was not found, and does not
    /// count before it is committed.
    pub(crate) fn is_written_from(&mut self, number: u32) {
        if let Self::Unknown { before } = self {
            *before = number.min(*before);
        }
    }
}

impl<S: Storage> Connection<S> {
    /// Sets what a commit is to survive.
    pub fn set_durability(&mut self, durability: Durability) {
        self.settings.durability = durability;
    }

    /// What a commit is to survive.
    #[must_use]
    pub fn durability(&self) -> Durability {
        self.settings.durability
    }

    /// Sets what a checkpoint relies on.
    ///
    /// # Errors
    ///
    /// Those of the flush of `-wal` that leaving the log takes.
    pub fn set_barrier(&mut self, barrier: Barrier) -> Result<()> {
        let leaves_log = barrier == Barrier::Wal && self.settings.barrier == Barrier::Log;
        self.settings.barrier = barrier;
        // What was checkpointed before rested on the log alone.
        match leaves_log && self.wal.is_some() && self.coordination.is(Word::Session) {
            true => self.flush_wal_alone(),
            false => Ok(()),
        }
    }

    /// What a checkpoint relies on.
    #[must_use]
    pub fn chosen_barrier(&self) -> Barrier {
        self.settings.barrier
    }

    /// Whether a reader waits until what it sees is durable.
    pub fn set_durable_reads(&mut self, on: bool) {
        self.settings.durable_reads = on;
    }

    /// Whether it does.
    #[must_use]
    pub fn durable_reads(&self) -> bool {
        self.settings.durable_reads
    }

    /// Whether other databases are written in the transactions to come.
    pub fn set_undeferred(&mut self, on: bool) {
        self.transaction.undeferred = on;
    }

    /// The log is removed when the last connection closes: what was deleted must be in no file.
    pub fn keep_no_log(&self) {
        self.coordination.set(Word::NoLog, 1);
    }

    /// Its place in line for WRITER.
    #[must_use]
    pub fn turn(&self) -> Option<Turn<<S::File as File>::Memory>> {
        self.coordination.turn()
    }

    /// What the user should know of the calls since the last time, though none of them failed.
    pub fn take_notice(&mut self) -> Option<String> {
        self.session.notice.take()
    }

    /// Counters.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let c = &self.coordination;
        let log = u64::from(c.is(Word::Session));
        let (log_size, position) = (c.get(Word::Ring) * log, c.get(Word::Position));
        let ring = Ring { len: log_size, block: 1 };
        let window = ring.used(c.get(Word::Window).checked_sub(1), position);
        let direct = log & u64::from(self.log_medium() == Some(LogMedium::Direct));
        Statistics { log, direct, log_size, window: window * log, ..self.counted() }
    }

    /// The counters, with what the log has counted, and `-wal` since SQLite opened it.
    pub(crate) fn counted(&self) -> Statistics {
        let written = self.wal.as_ref().map_or(0, WalFile::written);
        let (counts, mut all) = (&self.session.counts, self.statistics);
        all.records += counts.records;
        all.log_bytes += counts.bytes;
        all.log_flushes += counts.flushes;
        all.growths += counts.growths;
        all.wraps += counts.wraps;
        all.failed_flushes += counts.failed;
        all.directory_flushes += counts.folder_flushes;
        all.wal_file_bytes += written;
        all
    }

    /// The counters of all connections, of any process, since the first of the present ones opened
    /// the database, in the order of [`Statistics::rows`]; those of others up to their last commit.
    #[must_use]
    pub fn totals(&self) -> Vec<u64> {
        let memory = &*self.coordination.memory;
        self.told.total(memory, TOTALS, &self.counted().counters())
    }

    /// Adds this connection's to them.
    pub(crate) fn tell_totals(&mut self) {
        let memory = &*self.coordination.memory;
        self.told.tell(memory, TOTALS, &self.counted().counters());
    }

    /// What the log is written to; `None`: it is not in use, or not by this process yet.
    #[must_use]
    pub fn log_medium(&self) -> Option<LogMedium> {
        self.session.leading.medium().filter(|_| self.coordination.is(Word::Session))
    }

    /// `-wal`.
    pub(crate) fn wal(&self) -> Result<&WalFile<S::File>> {
        self.wal
            .as_ref()
            .ok_or_else(|| Error::CantOpen(format!("{} is not open", self.names.shown_wal())))
    }

    /// Fails if a flush failed that nothing could make good.
    pub(crate) fn check_sound(&self) -> Result<()> {
        match self.coordination.is(Word::Poisoned) && !broken(Mutation::GoesOnPoisoned) {
            false => Ok(()),
            true => Err(Error::Poisoned(format!(
                "a flush of {} or {} failed, and none has made it good; the last commits are visible, and whether they are durable is not known",
                self.names.shown_log(),
                self.names.shown_wal()
            ))),
        }
    }
}
