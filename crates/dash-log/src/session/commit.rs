//! Waiting until a commit is durable: group synchronization by helping (WALDIO; WAL-5).
//!
//! A connection that finds its commit not durable takes the log's lock and makes durable everything
//! that is visible, whoever wrote it; the others wait until that is done, or until they can have
//! the lock. No connection hands anything to another one, so nobody's death leaves anything undone.
//!
//! That takes two words of memory that all processes share, and the engine's lock. Nobody is
//! overlooked (LOG-6): one that waits says so first, and looks again whether somebody leads
//! afterwards; one that led gives the lock up first, and tells those who wait afterwards. A leader
//! that is killed tells nobody, so each wait has a limit.

use super::begin::{adopt, begin};
use super::{Batch, Engine, Group, LeaderOf, LogMedium, Means, Word};
use crate::mutation::{Mutation, broken};
use dash_engine::error::{Error, Operation, Result};
use dash_storage::SharedMemory;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// How often another connection's flush is waited for, each time for 5 ms or until a round ends,
/// before its process is taken to be stopped.
const PATIENCE: u32 = 200;

/// How often one waits that can't do without the log.
const LONGEST: u32 = 2000;

/// How long anybody waits before looking again by itself.
pub const WAIT: Duration = Duration::from_millis(5);

/// Flushes that one leads without its own commit being in them, before that is an error.
const TRIES: u32 = 16;

/// What somebody waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen(u64);

/// What came of a look at the commit and at the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlushTurn {
    /// The commit is durable; nobody was led.
    Durable,
    /// The lock was free: it was taken, what is committed was flushed, and it was given up.
    Led {
        /// Whether the commit is durable now.
        durable: bool,
    },
    /// Somebody else leads.
    Busy,
}

/// Comes back when everything up to `upto` is durable by these means.
///
/// # Errors
///
/// Errors of the engine, where what it does without the log has failed, too.
pub fn commit<E: Engine>(engine: &mut E, upto: u32, means: Means) -> Result<()> {
    let (group, memory) = engine.session().words.group();
    let mut turns = 0;
    group.commit(&*memory, || {
        if is_durable(engine, upto, means) {
            return Ok(FlushTurn::Durable);
        }
        engine.check_sound()?;
        let led = with_log(engine, |engine, leader| lead(engine, leader, upto, means))?;
        let durable = is_durable(engine, upto, means);
        match led {
            Some(()) => Ok(FlushTurn::Led { durable }),
            None if has_waited(&mut turns, PATIENCE) => {
                engine.flush_beside_leader().map(|()| FlushTurn::Durable)
            }
            None => Ok(FlushTurn::Busy),
        }
    })
}

fn is_durable<E: Engine>(engine: &mut E, upto: u32, means: Means) -> bool {
    let is_flushed = means == Means::Write || !engine.session().words.is(Word::Unflushed);
    is_flushed && engine.is_written(upto)
}

/// Does something with the log as the only one; `None`: somebody else is at it.
pub fn with_log<E: Engine, T>(
    engine: &mut E,
    act: impl FnOnce(&mut E, &mut LeaderOf<E>) -> Result<T>,
) -> Result<Option<T>> {
    let leading = Arc::clone(&engine.session().leading);
    let Some(mut leader) = leading.try_lead() else { return Ok(None) };
    if !engine.lock()? {
        return Ok(None);
    }
    let done = act(engine, &mut leader);
    let released = engine.unlock();
    let done = done?;
    released.map(|()| Some(done))
}

/// Does so once nobody else is at it.
///
/// # Errors
///
/// `Busy` where the process that is at it was stopped.
pub fn with_log_waiting<E: Engine, T>(
    engine: &mut E,
    act: impl FnOnce(&mut E, &mut LeaderOf<E>) -> Result<T>,
) -> Result<T> {
    let (group, memory) = engine.session().words.group();
    let (mut act, mut done, mut turns) = (Some(act), None, 0);
    group.commit(&*memory, || {
        let led = with_log(engine, |engine, leader| {
            act.take().map(|act| act(engine, leader)).transpose()
        })?;
        Ok(match led {
            None if has_waited(&mut turns, LONGEST) => return Err(Error::Busy),
            None => FlushTurn::Busy,
            Some(result) => {
                done = result;
                FlushTurn::Led { durable: true }
            }
        })
    })?;
    done.ok_or(Error::Busy)
}

/// Makes everything visible durable, at least up to `upto`, which this connection knows to be.
fn lead<E: Engine>(
    engine: &mut E,
    leader: &mut LeaderOf<E>,
    upto: u32,
    means: Means,
) -> Result<()> {
    if is_durable(engine, upto, means) {
        return Ok(());
    }
    engine.check_sound()?;
    let batch = engine.batch(upto)?;
    let session = engine.session();
    if session.words.is(Word::Writes) {
        // Whoever wrote it died: see there.
        session.skip_sequence();
        return engine.flush_elsewhere(leader, batch.last);
    }
    if engine.goes_without_log(batch)
        || !engine.session().words.is(Word::Session) && !begin(engine, leader)?
    {
        return engine.flush_elsewhere(leader, batch.last);
    }
    open_log(engine, leader)?;
    let is_memory = engine.session().leading.medium().is_some_and(LogMedium::is_memory);
    // Nobody else can make durable what this process has stored (WAL-28).
    let left = means == Means::Write && is_memory && !broken(Mutation::StoredNotFenced);
    append(engine, leader, batch, if left { Means::Flush } else { means })
}

/// Opens the log that a session is using, if this process has not.
///
/// # Errors
///
/// [`Engine::lost`] where it is gone; those of the file system.
pub fn open_log<E: Engine>(engine: &mut E, leader: &mut LeaderOf<E>) -> Result<()> {
    if leader.log.is_some() && leader.id == engine.session().words.get(Word::Id) {
        return Ok(());
    }
    let adopted = adopt(engine, leader)?;
    if let Some(log) = &leader.log {
        engine.session().leading.set_medium(log);
    }
    if adopted { Ok(()) } else { Err(engine.lost()) }
}

/// Makes it durable by a record, or without one where the log is full or fails. The leader has the
/// log open.
fn append<E: Engine>(
    engine: &mut E,
    leader: &mut LeaderOf<E>,
    batch: Batch,
    means: Means,
) -> Result<()> {
    let mut commits = 0;
    let written = if batch.first > batch.last {
        // It is written; only the flush is missing.
        engine.session().flush(leader).map(|()| Some(0))
    } else {
        let Some(built) = engine.build(leader, batch)? else {
            return engine.flush_elsewhere(leader, batch.last);
        };
        commits = built;
        write(engine, leader, batch.last, means)
    };
    match written {
        Ok(Some(bytes)) => {
            engine.note_record(batch, commits, bytes);
            Ok(())
        }
        // The log is full within a window, and can't grow: everything is made durable without it,
        // so all of it is free (WAL-8).
        Ok(None) => {
            engine.session().counts.wraps += 1;
            if !broken(Mutation::WrapWithoutFlush) {
                return engine.flush_elsewhere(leader, batch.last);
            }
            engine.session().words.set(Word::Window, 0);
            engine.note_written(batch.last);
            Ok(())
        }
        // What the record holds may or may not be on the device. Its number is not used again, and
        // what it was to make durable is so without it (WAL-9).
        Err(Error::OutOfMemory) => Err(Error::OutOfMemory),
        Err(error) => {
            engine.session().give_up(&error);
            engine.flush_elsewhere(leader, batch.last)
        }
    }
}

/// Writes the record that was built, of all up to `last`; bytes of it.
fn write<E: Engine>(
    engine: &mut E,
    leader: &mut LeaderOf<E>,
    last: u32,
    means: Means,
) -> Result<Option<u64>> {
    engine.seal()?;
    let session = engine.session();
    let oldest = session.words.get(Word::Window).checked_sub(1);
    let oldest = oldest.filter(|_| !broken(Mutation::WrapsOverWindow));
    let written = session.write(leader, means, oldest, E::publish)?;
    if written.is_some() {
        // Before the word that whoever comes after a death goes by: the next record must not have
        // the same again, against images that are no more the last ones (WAL-7).
        engine.note_written(last);
        engine.session().words.set(Word::Writes, 0);
    }
    Ok(written)
}

/// Whether this is one turn more than so many.
fn has_waited(turns: &mut u32, patience: u32) -> bool {
    *turns += 1;
    *turns > patience
}

impl Group {
    /// Says that somebody is about to wait. It looks again then, and if somebody leads, waits for
    /// what this returns.
    pub fn announce<M: SharedMemory>(&self, memory: &M) -> Seen {
        let seen = memory.word(self.rounds).load(SeqCst);
        // The greatest, so that one who is late hides no other.
        memory.word(self.awaited).fetch_max(seen.wrapping_add(1), SeqCst);
        Seen(seen)
    }

    /// Waits until a round has ended since [`announce`](Self::announce); `false` if `time` was over
    /// first.
    pub fn wait<M: SharedMemory>(&self, memory: &M, seen: Seen, time: Duration) -> bool {
        memory.wait(self.rounds, seen.0, time)
    }

    /// Ends a round, with the lock given up: wakes all who wait.
    pub fn finish<M: SharedMemory>(&self, memory: &M) {
        let ended = memory.word(self.rounds).fetch_add(1, SeqCst);
        if memory.word(self.awaited).load(SeqCst) > ended {
            memory.wake(self.rounds);
        }
    }

    /// Returns when a commit is durable, whoever flushed it. `turn` looks whether it is; if not, it
    /// tries the lock, leads if it gets it, and gives it up.
    ///
    /// # Errors
    ///
    /// Those of `turn`; those who wait are told then, too. And an error if `turn` leads again and
    /// again, and its commit is never durable.
    pub fn commit<M: SharedMemory>(
        &self,
        memory: &M,
        mut turn: impl FnMut() -> Result<FlushTurn>,
    ) -> Result<()> {
        let mut in_vain = 0;
        let mut announced = None;
        loop {
            match turn() {
                Ok(FlushTurn::Durable) => return Ok(()),
                Ok(FlushTurn::Led { durable }) => {
                    self.finish(memory);
                    if durable {
                        return Ok(());
                    }
                    announced = None;
                    in_vain += 1;
                    if in_vain == TRIES {
                        return Err(never_durable());
                    }
                }
                Ok(FlushTurn::Busy) => {
                    // The first time it looks again instead.
                    if let Some(seen) = announced {
                        self.wait(memory, seen, WAIT);
                    }
                    announced = Some(self.announce(memory));
                }
                Err(error) => {
                    self.finish(memory);
                    return Err(error);
                }
            }
        }
    }
}

fn never_durable() -> Error {
    Error::Io {
        operation: Operation::Flush,
        name: "the log".to_owned(),
        source: std::io::Error::other("a commit was in none of the flushes that were to have it"),
    }
}
