//! What the connections of the engine do.

use rusqlite::Connection;

use super::history::Cause;
use super::settings::{Locking, Promise, enter};
use super::{Connected, State, Wal};
use crate::random::Dice;
use crate::sim::explore::{Checked, lock, wrong};
use crate::sim::model::short;
use crate::sim::sql::failed;
use crate::sim::sql::statements::{digest, transaction};
use crate::sim::stock::index::Saved;
use crate::sim::stock::{Level, is_busy};
use crate::sim::subject::DB;

impl Wal {
    /// Whether somebody is in the middle of a write transaction.
    pub(super) fn is_being_written(&self) -> bool {
        let is_writing = |connection: &Connected| matches!(connection.state, State::Writing(_));
        self.connections.iter().flatten().any(is_writing)
    }

    /// One action of a connection.
    pub(super) fn work(&mut self, at: usize, dice: &mut Dice) -> Checked<()> {
        if self.end_what_is_open(at, dice)? {
            return Ok(());
        }
        match dice.below(24) {
            0 | 1 => self.close(at),
            2 => self.kill(at, dice),
            3 => self.all_leave(),
            4 => self.leave_the_mode(at, dice),
            5 if dice.one_in(2) => {
                self.machine.write_back();
                Ok(())
            }
            5 | 13 => self.rest(at, dice),
            6 | 7 => self.begin_reading(at, dice),
            8 | 9 => self.begin_writing(at, dice),
            10 | 11 => self.roll_back(at, dice),
            12 => self.change(at, dice),
            14 | 15 => self.checkpoint(at, dice),
            _ => {
                for _ in 0..=dice.below(2) {
                    self.commit(at, dice)?;
                }
                Ok(())
            }
        }
    }

    /// Ends the transaction that a connection is in the middle of, or leaves it for now.
    fn end_what_is_open(&mut self, at: usize, dice: &mut Dice) -> Checked<bool> {
        let Some(connection) = &mut self.connections[at] else { return Ok(false) };
        if matches!(connection.state, State::Idle) {
            return Ok(false);
        }
        if dice.one_in(3) {
            return Ok(true);
        }
        match std::mem::replace(&mut connection.state, State::Idle) {
            State::Writing(content) if !dice.one_in(3) => {
                let level = connection.level;
                self.finish(at, &content, level)?;
            }
            state => connection.end(&state)?,
        }
        Ok(true)
    }

    /// Commits what was written.
    fn finish(&mut self, at: usize, content: &[u32], level: Level) -> Checked<()> {
        // It died with the commit before, in a call that SQLite needed no answer to: that one is
        // cut off, and this one never comes to be.
        if lock(&self.accidents).is_over() {
            return Ok(());
        }
        let promise = self.settings().promise(level);
        let Some(Connected { db, .. }) = &self.connections[at] else { return Ok(()) };
        lock(&self.history).begins(&content.to_vec());
        match db.execute_batch("COMMIT") {
            // Dead by then, it told nobody.
            Ok(()) if lock(&self.accidents).is_over() => Ok(()),
            Ok(()) => {
                lock(&self.history).committed(promise == Promise::Durable);
                self.is_promised |= promise == Promise::Durable;
                Ok(())
            }
            Err(error) => Err(failed("COMMIT", &error)),
        }
    }

    /// Begins a write transaction and changes something; `None` if somebody else is writing.
    fn write(&mut self, at: usize, dice: &mut Dice) -> Checked<Option<Vec<u32>>> {
        let is_busy_for_it = self.is_being_written();
        // One that had to make the index anew has the write lock.
        let is_checkpointing = |it: &Connected| matches!(it.state, State::Checkpointing);
        let may_be_busy = self.connections.iter().flatten().any(is_checkpointing) || is_busy_for_it;
        let Connected { db, .. } = self.connection(at, dice)?;
        match transaction(db, dice) {
            Err(error) if is_busy(&error) && may_be_busy => Ok(None),
            Err(error) => Err(failed("a statement", &error)),
            Ok(()) if is_busy_for_it => wrong!("two write at once"),
            Ok(()) => digest(db).map(Some).map_err(|error| failed("reading", &error)),
        }
    }

    fn commit(&mut self, at: usize, dice: &mut Dice) -> Checked<()> {
        let Some(new) = self.write(at, dice)? else { return Ok(()) };
        let level = self.connection(at, dice)?.level;
        self.finish(at, &new, level)
    }

    fn roll_back(&mut self, at: usize, dice: &mut Dice) -> Checked<()> {
        let db = &self.connection(at, dice)?.db;
        let before = digest(db).map_err(|error| failed("reading", &error))?;
        // One that was cut off may have come true.
        if let Err(what) = lock(&self.history).sees(&before) {
            return wrong!("before a rollback it is {what}");
        }
        let Some(_) = self.write(at, dice)? else { return Ok(()) };
        let db = &self.connection(at, dice)?.db;
        if dice.one_in(2) {
            // More, and some of it is taken back before.
            db.execute_batch("SAVEPOINT s; UPDATE a SET v = zeroblob(700); ROLLBACK TO s")
                .map_err(|error| failed("a savepoint", &error))?;
        }
        db.execute_batch("ROLLBACK").map_err(|error| failed("ROLLBACK", &error))?;
        let after = digest(db).map_err(|error| failed("reading", &error))?;
        match before == after {
            true => Ok(()),
            false => wrong!("rolled back from {} to {}", short(&before), short(&after)),
        }
    }

    fn begin_writing(&mut self, at: usize, dice: &mut Dice) -> Checked<()> {
        if self.settings().locking != Locking::Normal {
            return self.commit(at, dice);
        }
        if let Some(new) = self.write(at, dice)? {
            self.connection(at, dice)?.state = State::Writing(new);
        }
        Ok(())
    }

    fn begin_reading(&mut self, at: usize, dice: &mut Dice) -> Checked<()> {
        let connection = self.connection(at, dice)?;
        let begun = connection.db.execute_batch("BEGIN").and_then(|()| digest(&connection.db));
        let seen = begun.map_err(|error| failed("taking a snapshot", &error))?;
        connection.state = State::Reading(seen.clone());
        match lock(&self.history).sees(&seen) {
            Ok(()) => Ok(()),
            Err(what) => wrong!("a snapshot is {what}"),
        }
    }

    /// The database comes to rest, unless somebody is at work.
    fn rest(&mut self, at: usize, dice: &mut Dice) -> Checked<()> {
        if !self.settings().claims.pragmas {
            return self.commit(at, dice);
        }
        let db = &self.connection(at, dice)?.db;
        db.execute_batch("PRAGMA rests").map_err(|error| failed("coming to rest", &error))
    }

    /// Another level of `synchronous`, or another place where a checkpoint's barrier is.
    fn change(&mut self, at: usize, dice: &mut Dice) -> Checked<()> {
        let (settings, is_promised) = (self.settings().clone(), self.is_promised);
        let connection = self.connection(at, dice)?;
        connection.level = settings.level(is_promised, dice);
        let mut set = settings.set(&connection.db, connection.level);
        if settings.claims.pragmas && dice.one_in(3) {
            let barrier = ["log", "wal"][dice.index(2)];
            let text = format!("PRAGMA dash_barrier={barrier}");
            set = set.and_then(|()| connection.db.execute_batch(&text));
        }
        set.map_err(|error| failed("changing a setting", &error))
    }

    fn close(&mut self, at: usize) -> Checked<()> {
        let Some(connection) = self.connections[at].take() else { return Ok(()) };
        self.is_promised &= self.connections.iter().any(Option::is_some);
        connection.db.close().map_err(|(_, error)| failed("closing", &error))
    }

    /// A process is killed between two calls.
    fn kill(&mut self, at: usize, dice: &mut Dice) -> Checked<()> {
        if dice.one_in(3) {
            let (all, seed) = (dice.one_in(2), dice.below(1 << 40));
            let kind = self.explorer().plan.kind;
            return match all {
                true => self.all_gone(self.machine.killed(), Cause::Kill),
                false => self.all_gone(kind.lose_power(&self.machine, seed), Cause::Power),
            };
        }
        let place = self.settings().places[at];
        let Some(world) = &self.processes[place] else { return Ok(()) };
        let victim = world.process.clone();
        let saved = Saved::take(&self.machine, DB);
        self.machine.kill(&victim);
        self.bury();
        saved.restore();
        Ok(())
    }

    /// All close, one after the other: what they leave is SQLite's.
    pub(super) fn all_leave(&mut self) -> Checked<()> {
        let mut flushed = self.connections.iter().any(Option::is_some);
        for at in 0..self.connections.len() {
            if let Some(connection) = &self.connections[at] {
                flushed &= self.settings().checkpoint_flushes(connection.level);
                connection.end(&connection.state)?;
            }
        }
        let neighbours = !self.stock.is_empty();
        let any = self.connections.iter().any(Option::is_some);
        for at in 0..self.connections.len() {
            self.close(at)?;
            self.explorer().result()?;
        }
        if !any || neighbours || self.is_faulty {
            return Ok(());
        }
        if lock(&self.accidents).is_over() {
            return Ok(());
        }
        if flushed {
            lock(&self.history).flushed();
        }
        self.images.at_rest(&self.machine, &mut lock(&self.history))
    }

    /// Alone, it leaves WAL mode, commits with a journal, and enters it again.
    fn leave_the_mode(&mut self, at: usize, dice: &mut Dice) -> Checked<()> {
        let others = self.connections.iter().enumerate().any(|(i, c)| i != at && c.is_some());
        if others || !self.stock.is_empty() {
            return self.commit(at, dice);
        }
        // A log that is kept is cut, and nobody flushes that; nor is a journal of stock SQLite's
        // safe where flushes fail.
        if self.settings().keeps_log {
            return self.commit(at, dice);
        }
        // Under locking_mode=EXCLUSIVE it would come back with an index of its own.
        if self.settings().is_alone && self.settings().locking != Locking::Normal {
            return self.commit(at, dice);
        }
        self.machine.stop_failing();
        let settings = self.settings().clone();
        let level = {
            let Connected { db, level, .. } = self.connection(at, dice)?;
            let mode = ["DELETE", "TRUNCATE", "PERSIST"][dice.index(3)];
            let left = leave(db, mode).map_err(|error| failed("leaving WAL mode", &error))?;
            if !left.eq_ignore_ascii_case(mode) {
                return wrong!("leaving WAL mode for {mode}: it is {left}");
            }
            *level
        };
        for _ in 0..dice.below(3) {
            let Some(new) = self.write(at, dice)? else { break };
            self.finish(at, &new, Level::Extra)?;
        }
        let db = &self.connection(at, dice)?.db;
        let entered = enter(db).map_err(|error| failed("entering WAL mode", &error))?;
        if entered != "wal" {
            return wrong!("entering WAL mode: it is {entered}");
        }
        settings.set(db, level).map_err(|error| failed("changing a setting", &error))
    }
}

/// Leaves WAL mode; commits are flushed together with the name of their journal from now on. SQLite
/// goes on with what it has in memory, which others may have changed since, unless it has read just
/// before. The extension has it read anew.
fn leave(db: &Connection, mode: &str) -> rusqlite::Result<String> {
    db.execute_batch(
        "PRAGMA synchronous=EXTRA; BEGIN; SELECT count(*) FROM sqlite_schema; COMMIT",
    )?;
    db.query_row(&format!("PRAGMA journal_mode={mode}"), [], |row| row.get(0))
}
