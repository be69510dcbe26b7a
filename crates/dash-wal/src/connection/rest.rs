//! Coming to rest while the database is open: the session of the log ends, and the name fence goes,
//! though connections stay (WAL-30). Whoever is killed after that leaves what stock SQLite reads
//! and writes by itself. The next commits become durable in stock fashion, and where they keep
//! coming a session begins as ever.
//!
//! What is left is what a close leaves where `-wal` is to stay (WAL-6): that is durable by itself,
//! and the log counts no more. So no checkpoint is needed, and no reader is in the way.
//!
//! | step | holds | from then on |
//! |---|---|---|
//! | a flush of `-wal` | nothing | all that was visible is durable there |
//! | a look whether that is still all | WRITER, CKPT, LOG | nobody writes, nor begins a generation |
//! | `Word::WithoutLog` | the same | whoever commits after a death flushes `-wal` |
//! | the log's head, a flush | the same | the log counts no more |
//! | the name fence, a flush | the same | stock SQLite may come in, once nobody lives |

use crate::connection::state::Connection;
use crate::context::{salts_of, salts_word};
use crate::index::{self, Index};
use crate::mutation::{Mutation, broken};
use crate::process::Leader;
use crate::shared::coordination::Word;
use crate::shared::durable::pack;
use crate::shared::locks::REST;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_log::session::{Engine, with_log};
use dash_storage::{File, LockKind, Storage};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// The slots that are held: WRITER and CKPT.
const SLOTS: Range<usize> = index::WRITE..index::CKPT + 1;

/// For how long whoever wants WRITER or CKPT waits for somebody who comes to rest: longer than two
/// flushes take on a slow device.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often it is tried.
const PAUSE: Duration = Duration::from_micros(100);

/// What became of an attempt to come to rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// The database is as a closed one but for the locks of the living.
    AtRest,
    /// Its name stands for another file now, whose log this would seem to be (WAL-49).
    Moved,
    /// Somebody is at work, or has committed meanwhile; or this connection can't see the wal-index.
    NotNow,
}

/// Whether the database is at rest, or what it waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestState {
    /// It is.
    AtRest,
    /// This connection does not bring it there.
    Off,
    /// Somebody writes, or copies pages into the database.
    Writer,
    /// This connection can't see the wal-index.
    Unseen,
    /// Nobody may have committed for a while.
    Time,
}

/// The newest commit of any connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Newest {
    /// In dash's own count.
    generation: u64,
    salts: u64,
    frame: u32,
}

impl<S: Storage> Connection<S> {
    /// The newest commit of any connection: while it stays the same, nobody commits. `None`: it
    /// can't be told now.
    ///
    /// # Errors
    ///
    /// Those of reading `-wal`'s header.
    pub fn newest(&mut self) -> Result<Option<Newest>> {
        if self.wal.is_none() {
            return Ok(None);
        }
        let header = self.index.as_ref().and_then(Index::header);
        let Some(header) = header else { return Ok(None) };
        let (generation, salts) =
            (self.coordination.get(Word::Generation), self.coordination.get(Word::Salts));
        let found = self.wal_header()?.map_or(0, |found| salts_word(&found));
        // Else somebody has died between a header and its first commit, or has `-wal` in hand.
        let is_one = match salts {
            0 => found == 0 && header.mx_frame == 0,
            salts => found == salts && pack(header.salts) == salts,
        };
        Ok(is_one.then_some(Newest { generation, salts, frame: header.mx_frame }))
    }

    /// Says how long after its last commit the database is to come to rest.
    pub fn set_rest(&mut self, rest: Option<Duration>) {
        self.settings.rest = rest;
    }

    /// How long after its last commit the database is to come to rest. `None`: it is at rest, or is
    /// not to come there.
    #[must_use]
    pub fn rests_after(&self) -> Option<Duration> {
        self.settings.rest.filter(|_| !self.is_at_rest())
    }

    /// Commits that come one by one are no beginning of more: forgets those before, if the last one
    /// was long enough ago. The lock LOG is held, and the next one is about to be made durable.
    pub(crate) fn forget_single_commits(&self) {
        let Some(rest) = self.settings.rest else { return };
        let (last, now) = (self.coordination.get(Word::StockAt), self.storage.monotonic_nanos());
        let rest = u64::try_from(rest.as_nanos()).unwrap_or(u64::MAX);
        if now.saturating_sub(last) >= rest {
            self.coordination.set(Word::StockCommits, 0);
        }
    }

    /// What the database waits for that is to come to rest.
    ///
    /// # Errors
    ///
    /// Those of asking for locks, and of reading `-wal`'s header.
    pub fn rest_state(&mut self) -> Result<RestState> {
        Ok(if self.is_at_rest() {
            RestState::AtRest
        } else if self.settings.rest.is_none() {
            RestState::Off
        } else if self.is_in_commit() || self.is_somebody_at_work()? {
            RestState::Writer
        } else if self.newest()?.is_none() {
            RestState::Unseen
        } else {
            RestState::Time
        })
    }

    /// Whether the log counts for nothing and nobody is fenced off.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        !self.coordination.is(Word::Session) && !self.coordination.is(Word::Fence)
    }

    /// Brings the database to rest, unless somebody is at work; what `dash_rest` is about. Commits
    /// that came one by one since the last time are not counted as the beginning of more.
    ///
    /// # Errors
    ///
    /// `Poisoned` where `-wal` can't be flushed. After any other one the session goes on without
    /// its log until the next attempt, behind the name fence.
    pub fn come_to_rest(&mut self) -> Result<Rest> {
        self.check_sound()?;
        if let Some(index) = &mut self.index {
            // SQLite makes no call for which that would be done.
            index.unlock_left(&self.coordination.file)?;
        }
        if self.is_at_rest() {
            self.coordination.set(Word::StockCommits, 0);
            return Ok(Rest::AtRest);
        }
        if self.is_in_commit() {
            return Ok(Rest::NotNow);
        }
        if self.has_moved()? && !broken(Mutation::MovedEnded) {
            return Ok(Rest::Moved);
        }
        let Some(newest) = self.newest()? else { return Ok(Rest::NotNow) };
        if self.is_somebody_at_work()? {
            return Ok(Rest::NotNow);
        }
        if self.summed_end(newest.frame) != newest.frame {
            // What a dead writer has left is no valid frame yet (WAL-19).
            self.try_sum_up_for_the_dead()?;
            return Ok(Rest::NotNow);
        }
        if broken(Mutation::RestsUnfenced) {
            self.lower_fence()?;
        }
        if !broken(Mutation::RestsUnflushed) {
            let flushed = self.flush_beside_leader();
            if !broken(Mutation::RestsAfterFailedFlush) {
                flushed?;
            }
        }
        let name = Arc::clone(self.names.shown_coordination());
        let alone = self.coordination.file.try_lock(REST, LockKind::Exclusive);
        if !alone.during(Operation::Lock, &name)? {
            return Ok(Rest::NotNow);
        }
        self.coordination.set(Word::Resting, 1);
        let rested = self.rest_as_only_one(newest);
        self.coordination.word(Word::Rested).fetch_add(1, SeqCst);
        self.coordination.set(Word::Resting, 0);
        let woken = self.coordination.wake_first();
        let released = self.coordination.file.unlock(REST).during(Operation::Lock, &name);
        let rested = rested?;
        woken.and(released).map(|()| rested)
    }

    /// Whether this connection is in the middle of a commit: what it knows of that must stay.
    fn is_in_commit(&self) -> bool {
        let writes = self.index.as_ref().is_none_or(|index| {
            index.held(index::WRITE).is_some() || index.held(index::CKPT).is_some()
        });
        writes || self.transaction.frame.is_some() || self.transaction.pending.is_some()
    }

    /// Whether somebody writes or copies pages: a flush would be for nothing.
    fn is_somebody_at_work(&self) -> Result<bool> {
        let Some(index) = &self.index else { return Ok(false) };
        index.is_taken(SLOTS, &self.coordination.file)
    }

    fn rest_as_only_one(&mut self, newest: Newest) -> Result<Rest> {
        let Some(index) = &mut self.index else { return Ok(Rest::NotNow) };
        match index.lock(SLOTS, LockKind::Exclusive, &self.coordination.file) {
            Ok(()) => {}
            Err(Error::Busy) => return Ok(Rest::NotNow),
            Err(error) => return Err(error),
        }
        let rested = with_log(self, |connection, leader| {
            if connection.newest()? != Some(newest) && !broken(Mutation::RestsUnseen) {
                return Ok(Rest::NotNow);
            }
            connection.end_session(leader, newest.frame)
        });
        let released = match &mut self.index {
            Some(index) => index.unlock(SLOTS, &self.coordination.file),
            None => Ok(()),
        };
        let rested = rested?.unwrap_or(Rest::NotNow);
        released.map(|()| rested)
    }

    /// `-wal` is durable up to frame `end`, the last one. WRITER, CKPT and LOG are held.
    fn end_session(&mut self, leader: &mut Leader<S>, end: u32) -> Result<Rest> {
        // Somebody else's flush may have failed meanwhile; one's own proves nothing then.
        if !broken(Mutation::RestsAfterFailedFlush) {
            self.check_sound()?;
        }
        self.flush_database_if_dirty()?;
        if self.coordination.is(Word::Session) {
            if let Some(header) = self.wal_header()? {
                self.wal_is_flushed(salts_of(&header));
            }
            self.wal()?.unseal().during(Operation::Flush, self.names.shown_wal())?;
            self.coordination.set_durable(end);
            self.leave_log(leader)?;
            // Whoever comes to rest again and again has had too few commits for a log.
            let few = self.coordination.get(Word::StockFirst);
            self.coordination.set(Word::StockFirst, few.max(self.settings.tuning.short_session));
        }
        self.end_fence()?;
        self.statistics.rests += 1;
        Ok(Rest::AtRest)
    }

    /// Says, durably, that the log counts no more; `-wal` is durable. LOG is held, and nobody
    /// writes.
    pub(crate) fn leave_log(&mut self, leader: &mut Leader<S>) -> Result<()> {
        if !broken(Mutation::RestsUnsaid) {
            // Whatever becomes of this process, no record counts behind a head that is clean.
            self.coordination.set(Word::WithoutLog, 1);
        }
        self.write_head(leader, &self.closed())?;
        self.session.flush(leader)?;
        for word in
            [Word::Window, Word::HeadVoid, Word::StockCommits, Word::Session, Word::WithoutLog]
        {
            self.coordination.set(word, 0);
        }
        Ok(())
    }

    /// An attempt to get slots has failed: makes it again, as long as it is for somebody who comes
    /// to rest. Nobody is refused for that. `rested` is what [`Word::Rested`] was before it.
    pub(super) fn past_rest(&mut self, slots: &Range<usize>, mut rested: u64) -> Result<()> {
        let begun = self.storage.monotonic_nanos();
        // Its process was stopped. A busy handler tries many times, and counts no time but its own.
        let is_in_vain =
            self.patience.in_vain == Some(rested) && !broken(Mutation::StoppedWaitedForAgain);
        while !is_in_vain && self.meets_rest(rested)? {
            rested = self.coordination.get(Word::Rested);
            let Some(index) = &mut self.index else { break };
            match index.lock(slots.clone(), LockKind::Exclusive, &self.coordination.file) {
                Err(Error::Busy) => {}
                other => return other,
            }
            let waited = self.storage.monotonic_nanos().saturating_sub(begun);
            if waited >= u64::try_from(PATIENCE.as_nanos()).unwrap_or(u64::MAX) {
                self.patience.in_vain = Some(rested);
                break;
            }
            self.storage.sleep(PAUSE);
        }
        Err(Error::Busy)
    }

    /// Whether somebody comes to rest now, or has since `rested` was read.
    fn meets_rest(&self, rested: u64) -> Result<bool> {
        let c = &self.coordination;
        if c.get(Word::Rested) != rested {
            return Ok(true);
        }
        if !c.is(Word::Resting) {
            return Ok(false);
        }
        // The word of a dead one stays.
        let holder = c.file.lock_conflict(REST, LockKind::Exclusive);
        let lives = holder.during(Operation::Lock, self.names.shown_coordination())?.is_some();
        Ok(lives || c.get(Word::Rested) != rested)
    }
}
