//! Waiting until a commit is durable: group synchronization by helping (WALDIO; WAL-5).
//!
//! Whoever finds its commit not durable takes the lock LOG and makes durable everything that is
//! visible, whoever wrote it; the others wait until that is done, or until they can have the lock.
//! No connection hands anything to another one, so nobody's death leaves anything undone.

use crate::bounds::FRAMES_MAX;
use crate::connection::state::{CommitFrame, Connection};
use crate::frames;
use crate::index::Index;
use crate::mutation::{Mutation, broken};
use crate::options::{Barrier, Durability};
use crate::process::Leader;
use crate::shared::coordination::Word;
use crate::shared::durable::{pack, unpack};
use crate::shared::locks;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_log::group::{Group, Turn};
use dash_log::session::{LogMedium, Means, begin, open_log};
use dash_storage::{File, LockKind, Storage};
use std::sync::Arc;
use std::time::Duration;

/// The words of a group flush.
const GROUP: Group = Group { rounds: Word::Rounds as usize, awaited: Word::Awaited as usize };

/// How long a header of the wal-index that is being written is waited for.
const TORN: Duration = Duration::from_millis(5);

/// How often another connection's flush is waited for, each time for 5 ms or until a round ends,
/// before its process is taken to be stopped.
const PATIENCE: u32 = 200;

/// The same for whoever can't do without the log.
const LONGEST: u32 = 2000;

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
        self.make_durable(own.number, means)?;
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
        self.make_durable(end, Means::Flush)?;
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

    /// Comes back when frame `frame` of this generation is durable.
    pub(crate) fn make_durable(&mut self, frame: u32, means: Means) -> Result<()> {
        let memory = Arc::clone(&self.coordination.memory);
        let mut turns = 0;
        GROUP.commit(&*memory, || {
            if self.is_durable(frame, means) {
                return Ok(Turn::Durable);
            }
            self.check_sound()?;
            let led = self.with_log(|connection, leader| connection.lead(leader, frame, means))?;
            let durable = self.is_durable(frame, means);
            match led {
                Some(()) => Ok(Turn::Led { durable }),
                None if has_waited(&mut turns, PATIENCE) => {
                    self.flush_wal_beside_leader().map(|()| Turn::Durable)
                }
                None => Ok(Turn::Busy),
            }
        })
    }

    fn is_durable(&self, frame: u32, means: Means) -> bool {
        self.coordination.is_durable(frame)
            && (means == Means::Write || !self.coordination.is(Word::LogUnflushed))
    }

    /// Whether frame `frame`, which was made durable, is so by a flush and not by a mere write.
    pub(crate) fn is_flushed(&self, frame: u32) -> bool {
        self.is_durable(frame, Means::Flush)
    }

    /// Does something with the log as the only one; `None`: somebody else is at it.
    pub(crate) fn with_log<T>(
        &mut self,
        act: impl FnOnce(&mut Self, &mut Leader<S>) -> Result<T>,
    ) -> Result<Option<T>> {
        let leading = Arc::clone(&self.session.leading);
        let Some(mut leader) = leading.try_lead() else { return Ok(None) };
        // Nobody outside this process has such a database open.
        if self.memory.is_some() && !broken(Mutation::OthersLetIn) {
            return act(self, &mut leader).map(Some);
        }
        let name = Arc::clone(self.names.shown_coordination());
        let got = self.coordination.file.try_lock(locks::LOG, LockKind::Exclusive);
        if !got.during(Operation::Lock, &name)? {
            return Ok(None);
        }
        let done = act(self, &mut leader);
        let released = self.coordination.file.unlock(locks::LOG).during(Operation::Lock, &name);
        let done = done?;
        released?;
        Ok(Some(done))
    }

    /// The same, waiting for whoever is at it.
    pub(crate) fn with_log_waiting<T>(
        &mut self,
        act: impl FnOnce(&mut Self, &mut Leader<S>) -> Result<T>,
    ) -> Result<T> {
        let memory = Arc::clone(&self.coordination.memory);
        let (mut act, mut done, mut turns) = (Some(act), None, 0);
        GROUP.commit(&*memory, || {
            let led = self.with_log(|connection, leader| {
                act.take().map(|act| act(connection, leader)).transpose()
            })?;
            Ok(match led {
                None if has_waited(&mut turns, LONGEST) => return Err(Error::Busy),
                None => Turn::Busy,
                Some(result) => {
                    done = result;
                    Turn::Led { durable: true }
                }
            })
        })?;
        done.ok_or_else(|| self.strange("its log was left without a word"))
    }

    /// Makes everything visible durable, at least up to frame `frame`, which this connection knows
    /// to be.
    fn lead(&mut self, leader: &mut Leader<S>, frame: u32, means: Means) -> Result<()> {
        if self.is_durable(frame, means) {
            return Ok(());
        }
        self.check_sound()?;
        let end = self.end_of_round(frame);
        let page = self.page_size()?;
        let Some(page) = page else {
            return Err(self.strange("it has no header"));
        };
        let durable = self.coordination.durable();
        let from = if durable.covers(self.coordination.get(Word::Generation), 0) {
            durable.frame.saturating_add(1)
        } else {
            1
        };
        let frames = (u64::from(end) + 1).saturating_sub(from.into());
        let bytes = frames * frames::frame_size(page);
        if self.coordination.get(Word::Writes) != 0 {
            // Whoever wrote it died: see there.
            self.session.skip_sequence();
            return self.flush_wal(leader, end);
        }
        if !self.coordination.is(Word::Session) {
            self.forget_single_commits();
        }
        if self.goes_without_log(bytes) {
            return self.flush_wal(leader, end);
        }
        if !self.coordination.is(Word::Session) && !begin(self, leader)? {
            return self.flush_wal(leader, end);
        }
        open_log(self, leader)?;
        let is_memory = self.log_medium().is_some_and(LogMedium::is_memory);
        // Nobody else can make durable what this process has stored (WAL-28).
        let left = means == Means::Write && is_memory && !broken(Mutation::StoredNotFenced);
        self.append(leader, page, (from, end), if left { Means::Flush } else { means })
    }

    /// The last frame that is visible and can be read back: one's own, and what came behind it.
    fn end_of_round(&self, own: u32) -> u32 {
        if broken(Mutation::OwnFramesOnly) {
            return own;
        }
        let index = self.index.as_ref().and_then(Index::header);
        let ours = index.filter(|header| pack(header.salts) == self.coordination.get(Word::Salts));
        ours.map_or(own, |header| self.summed_end(header.mx_frame).max(own))
    }

    /// Whether frames become durable by a flush of `-wal` now, for there is no log, there need be
    /// none yet, or they are too many for it.
    fn goes_without_log(&self, bytes: u64) -> bool {
        let c = &self.coordination;
        let few = c.get(Word::StockCommits) < c.get(Word::StockFirst);
        let large = bytes > FRAMES_MAX.min(self.settings.tuning.record_max as u64);
        let unknown = c.is(Word::Session) && c.get(Word::FirstSalt) == 0;
        c.is(Word::WithoutLog) || !c.is(Word::Session) && few || large || unknown
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

/// Whether this is one turn more than so many.
fn has_waited(turns: &mut u32, patience: u32) -> bool {
    *turns += 1;
    *turns > patience
}
