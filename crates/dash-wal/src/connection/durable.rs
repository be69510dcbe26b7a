//! What has to be durable, and when: a commit's frames, what is visible before a checkpoint. How
//! connections wait for each other is in [`dash_log::session`].

use crate::connection::state::{CommitFrame, Connection};
use crate::index::Index;
use crate::mutation::{Mutation, broken};
use crate::options::{Barrier, Durability};
use crate::shared::coordination::Word;
use crate::shared::durable::{pack, unpack};
use dash_engine::error::{Error, Result};
use dash_log::session::{Means, commit};
use dash_storage::Storage;
use std::time::Duration;

/// How long a header of the wal-index that is being written is waited for.
const TORN: Duration = Duration::from_millis(5);

/// How often it is looked at.
const TORN_PAUSE: Duration = Duration::from_micros(50);

/// How often it is looked whether a writer has summed its frames up that is about to.
const SUM_ATTEMPTS: usize = 50;

/// For how long it is waited for each time.
const SUM_PAUSE: Duration = Duration::from_millis(1);

impl<S: Storage> Connection<S> {
    /// A commit, as durable as was chosen; whether anything was to be done for that. `synced`:
    /// SQLite has asked for a flush of it.
    pub(crate) fn make_commit_durable(&mut self, own: CommitFrame, synced: bool) -> Result<bool> {
        let means = match self.settings.durability {
            Durability::Host if !synced && !self.outlives_process() => return Ok(false),
            // What is written survives this process, which is what a file would have done.
            Durability::Host if !synced => Means::Write,
            Durability::Host | Durability::Full => Means::Flush,
            Durability::Device => Means::Device,
            // In memory there is a fence nevertheless (WAL-28).
            Durability::None => Means::Write,
        };
        if self.coordination.get(Word::Salts) != pack(own.salts) {
            // Another generation began without this commit's read lock in the way: it can't.
            return Err(
                self.strange("a new header came before a commit in the old ones was durable")
            );
        }
        self.coordination.set(Word::Promised, 1);
        let records = self.session.counts.records + self.statistics.wal_flushes;
        commit(self, own.number, means)?;
        if records == self.session.counts.records + self.statistics.wal_flushes {
            self.statistics.helped += 1;
        }
        Ok(true)
    }

    /// How often this connection has flushed the log, `-wal` or the folder, and how many of its
    /// commits were durable by somebody else's flush.
    #[must_use]
    pub fn flushes_and_waits(&self) -> u64 {
        let told = self.counted();
        told.log_flushes + told.wal_flushes + told.directory_flushes + told.helped
    }

    /// Everything visible, before pages are copied into the database (WAL-14).
    pub(crate) fn barrier(&mut self) -> Result<()> {
        self.write_held()?;
        self.checkpoint.barrier = true;
        self.statistics.barriers += 1;
        if broken(Mutation::NoBarrier) {
            return Ok(());
        }
        self.check_sound()?;
        if self.settings.barrier == Barrier::Wal || self.needs_wal() {
            return self.flush_wal_alone();
        }
        let Some(end) = self.visible_end()? else {
            // The index can't be read: a flush of `-wal` asks nobody how far it goes.
            return self.flush_wal_alone();
        };
        if end == 0 {
            return Ok(());
        }
        commit(self, end, Means::Flush)?;
        // What was not durable may be so by its statements now.
        match self.needs_wal() {
            true => self.flush_wal_alone(),
            false => Ok(()),
        }
    }

    /// Whether what is durable has to be so in `-wal`, before pages are copied: statements are run
    /// again on the database as it was before (WAL-33).
    fn needs_wal(&self) -> bool {
        self.is_carried() && !broken(Mutation::CarriedNotFlushed)
    }

    /// The last visible frame of this generation. `None`: there is no index that says so.
    ///
    /// # Errors
    ///
    /// `Busy` where frames lack checksums, and their writer was stopped (WAL-19).
    pub(crate) fn visible_end(&mut self) -> Result<Option<u32>> {
        let Some(end) = self.end_in_index() else { return Ok(None) };
        for _ in 0..SUM_ATTEMPTS {
            if self.summed_end(end) == end {
                return Ok(Some(end));
            }
            self.try_sum_up_for_the_dead()?;
            self.storage.sleep(SUM_PAUSE);
        }
        Err(Error::Busy)
    }

    fn end_in_index(&self) -> Option<u32> {
        let mut waited = Duration::ZERO;
        loop {
            if let Some(header) = self.index.as_ref()?.header() {
                let ours = pack(header.salts) == self.coordination.get(Word::Salts);
                return Some(if ours { header.mx_frame } else { 0 });
            }
            if waited >= TORN {
                return None;
            }
            self.storage.sleep(TORN_PAUSE);
            waited += TORN_PAUSE;
        }
    }

    /// Whether a commit has to be in the log to survive a kill.
    fn outlives_process(&self) -> bool {
        self.memory.is_some() && !broken(Mutation::MemoryOutlivesProcess)
    }

    /// Whether frame `frame`, which was made durable, is so by a flush and not by a mere write.
    pub(crate) fn is_flushed(&self, frame: u32) -> bool {
        self.coordination.is_durable(frame) && !self.coordination.is(Word::LogUnflushed)
    }

    /// The last frame that is visible and can be read back: one's own, and what came behind it.
    pub(super) fn end_of_round(&self, own: u32) -> u32 {
        if broken(Mutation::OwnFramesOnly) {
            return own;
        }
        let index = self.index.as_ref().and_then(Index::header);
        let ours = index.filter(|header| pack(header.salts) == self.coordination.get(Word::Salts));
        ours.map_or(own, |header| self.summed_end(header.mx_frame).max(own))
    }

    /// What can't be, and must not be guessed about.
    pub(crate) fn strange(&self, what: &str) -> Error {
        let [salt1, salt2] = unpack(self.coordination.get(Word::Salts));
        Error::Corrupt(format!(
            "{}: {what} (salts {salt1:08x} {salt2:08x}): another program has written it; close all connections and open the \
             database again",
            self.names.shown_wal()
        ))
    }
}
