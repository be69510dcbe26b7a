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

use crate::connection::index::nanos;
use crate::connection::state::Connection;
use crate::context::{salts_of, salts_word};
use crate::frames::pack;
use crate::index;
use crate::mutation::{Mutation, broken};
use crate::process::Leader;
use crate::shared::coordination::Word;
use crate::shared::locks::REST;
use dash_engine::error::{Context, Operation, Result};
use dash_log::session::{Engine, with_log};
use dash_storage::{File, LockKind, Storage};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// For how long a stock writer that goes on is waited for.
const PATIENCE: Duration = Duration::from_millis(20);

/// The slots that are held: WRITER and CKPT.
const SLOTS: Range<usize> = index::WRITE..index::CKPT + 1;

/// What became of an attempt to come to rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// The database is as a closed one but for the locks of the living.
    AtRest,
    /// Its name stands for another file now, whose log this would seem to be (WAL-49); or that of
    /// `-wal` does (WAL-55).
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

/// The newest commit of any connection. Where stock writers are let in theirs make no other one of
/// it: they need no log, and a stock program that goes on for long is to checkpoint.
#[derive(Debug, Clone, Copy)]
pub struct Newest {
    /// In dash's own count.
    generation: u64,
    salts: u64,
    /// The last frame, whoever wrote it.
    frame: u32,
    /// It, or [`Word::OwnIndex`] where stock writers are let in.
    last: u64,
}

impl PartialEq for Newest {
    fn eq(&self, other: &Self) -> bool {
        let key = |one: &Self| (one.generation, one.salts, one.last);
        key(self) == key(other)
    }
}

impl<S: Storage> Connection<S> {
    /// The newest commit of any connection: while it stays the same, nobody commits. `None`: it
    /// can't be told now.
    ///
    /// # Errors
    ///
    /// Those of reading `-wal`'s header.
    pub fn newest(&mut self) -> Result<Option<Newest>> {
        if self.wal.open.is_none() {
            return Ok(None);
        }
        self.adopt()?;
        self.look_for_newest()
    }

    /// What [`Self::newest`] says; LOG may be held.
    fn look_for_newest(&self) -> Result<Option<Newest>> {
        let Some(header) = self.index.header() else { return Ok(None) };
        let (generation, salts) =
            (self.files.shared.get(Word::Generation), self.files.shared.get(Word::Salts));
        let found = self.wal.header(&self.files)?.map_or(0, |found| salts_word(&found));
        // Else somebody has died between a header and its first commit, or has `-wal` in hand.
        let is_one = match salts {
            0 => found == 0 && header.mx_frame == 0,
            salts => found == salts && pack(header.salts) == salts,
        };
        let frame = header.mx_frame;
        let last = match self.files.lets_writers_in() {
            true => self.files.shared.get(Word::OwnIndex),
            false => frame.into(),
        };
        Ok(is_one.then_some(Newest { generation, salts, frame, last }))
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
        } else if self.is_in_commit() || self.index.is_somebody_at_work(&self.files)? {
            RestState::Writer
        } else if self.wal.open.is_none() || self.look_for_newest()?.is_none() {
            RestState::Unseen
        } else {
            RestState::Time
        })
    }

    /// Brings the database to rest, unless somebody is at work; what `dash_rest` is about. Commits
    /// that came one by one since the last time are not counted as the beginning of more.
    ///
    /// # Errors
    ///
    /// `Poisoned` where `-wal` can't be flushed. After any other one the session goes on without
    /// its log until the next attempt, behind the name fence.
    pub fn come_to_rest(&mut self) -> Result<Rest> {
        self.files.check_sound()?;
        if let Some(index) = &mut self.index.open {
            // SQLite makes no call for which that would be done.
            index.unlock_left(&self.files.shared.file)?;
        }
        if self.is_at_rest() {
            self.files.shared.set(Word::StockCommits, 0);
            self.leave_session()?;
            return Ok(Rest::AtRest);
        }
        if self.is_in_commit() {
            return Ok(Rest::NotNow);
        }
        if (self.has_moved()? || self.has_wal_moved()?) && !broken(Mutation::MovedEnded) {
            return Ok(Rest::Moved);
        }
        let Some(newest) = self.newest()? else { return Ok(Rest::NotNow) };
        // A stock writer that goes on is waited for.
        if !self.files.lets_writers_in() && self.index.is_somebody_at_work(&self.files)? {
            return Ok(Rest::NotNow);
        }
        self.look_at_sums(newest.frame)?;
        if self.files.shared.summed_end(newest.frame) != newest.frame {
            // What a dead writer has left is no valid frame yet (WAL-19).
            self.try_sum_up_for_the_dead()?;
            return Ok(Rest::NotNow);
        }
        if broken(Mutation::RestsUnfenced) {
            self.files.lower_fence(&mut self.session)?;
        }
        if !broken(Mutation::RestsUnflushed) {
            let flushed = self.flush_beside_leader();
            if !broken(Mutation::RestsAfterFailedFlush) {
                flushed?;
            }
        }
        let name = Arc::clone(self.files.names.shown_coordination());
        let alone = self.files.shared.file.try_lock(REST, LockKind::Exclusive);
        if !alone.during(Operation::Lock, &name)? {
            return Ok(Rest::NotNow);
        }
        self.files.shared.set(Word::Resting, 1);
        let rested = self.rest_as_only_one(newest);
        self.files.shared.word(Word::Rested).fetch_add(1, SeqCst);
        self.files.shared.set(Word::Resting, 0);
        let woken = self.files.shared.wake_first();
        let released = self.files.shared.file.unlock(REST).during(Operation::Lock, &name);
        let rested = rested?;
        woken.and(released)?;
        if rested == Rest::AtRest {
            self.leave_session()?;
        }
        Ok(rested)
    }

    /// Whether this connection is in the middle of a commit: what it knows of that must stay.
    fn is_in_commit(&self) -> bool {
        let writes = self.index.open.as_ref().is_none_or(|index| {
            index.held(index::WRITE).is_some() || index.held(index::CKPT).is_some()
        });
        writes || self.transaction.frame.is_some() || self.transaction.pending.is_some()
    }

    fn rest_as_only_one(&mut self, newest: Newest) -> Result<Rest> {
        let patience = if self.files.lets_writers_in() { nanos(PATIENCE) } else { 0 };
        let deadline = self.now() + patience;
        if !self.index.wait_for(SLOTS, deadline, &self.files)? {
            return Ok(Rest::NotNow);
        }
        let rested = with_log(self, |connection, leader| {
            let found = connection.look_for_newest()?;
            if found != Some(newest) && !broken(Mutation::RestsUnseen) {
                return Ok(Rest::NotNow);
            }
            let end = found.filter(|_| connection.files.lets_writers_in());
            let end = end.map_or(newest.frame, |found| found.frame);
            if end != newest.frame {
                // Stock SQLite has gone on.
                connection.sum_up_strangers()?;
                connection.flush_beside_leader()?;
            }
            connection.end_session(leader, end)
        });
        let released = self.index.unlock(SLOTS, &self.files);
        let rested = rested?.unwrap_or(Rest::NotNow);
        released.map(|()| rested)
    }

    /// `-wal` is durable up to frame `end`, the last one. WRITER, CKPT and LOG are held.
    fn end_session(&mut self, leader: &mut Leader<S>, end: u32) -> Result<Rest> {
        // Somebody else's flush may have failed meanwhile; one's own proves nothing then.
        if !broken(Mutation::RestsAfterFailedFlush) {
            self.files.check_sound()?;
        }
        self.flush_database_if_dirty()?;
        if self.files.shared.is(Word::Session) {
            if let Some(header) = self.wal.header(&self.files)? {
                self.files.shared.wal_is_flushed(salts_of(&header));
            }
            self.wal
                .file(&self.files)?
                .unseal()
                .during(Operation::Flush, self.files.names.shown_wal())?;
            self.files.shared.set_durable(end);
            self.leave_log(leader)?;
            // Whoever comes to rest again and again has had too few commits for a log.
            let few = self.files.shared.get(Word::StockFirst);
            self.files.shared.set(Word::StockFirst, few.max(self.settings.tuning.short_session));
        }
        self.end_fence()?;
        self.counters.own.rests += 1;
        Ok(Rest::AtRest)
    }

    /// Says, durably, that the log counts no more; `-wal` is durable. LOG is held, and nobody
    /// writes.
    pub(crate) fn leave_log(&mut self, leader: &mut Leader<S>) -> Result<()> {
        if !broken(Mutation::RestsUnsaid) {
            // Whatever becomes of this process, no record counts behind a head that is clean.
            self.files.shared.set(Word::WithoutLog, 1);
        }
        self.write_head(leader, &self.files.shared.closed())?;
        self.session.flush(leader)?;
        for word in
            [Word::Window, Word::HeadVoid, Word::StockCommits, Word::Session, Word::WithoutLog]
        {
            self.files.shared.set(word, 0);
        }
        Ok(())
    }
}
