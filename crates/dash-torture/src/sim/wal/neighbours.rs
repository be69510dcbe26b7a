//! Stock SQLite beside the engine: connections that were opened before it came, or while it is
//! there; that read beside it, and write, checkpoint and close after it was killed.

use dash_storage::LockKind;
use rusqlite::Result;

use super::image::stock_levels;
use super::settings::{Promise, stock_promise};
use super::{State, Wal};
use crate::random::Dice;
use crate::sim::content::Content;
use crate::sim::explore::{Checked, lock, wrong};
use crate::sim::sql::failed;
use crate::sim::sql::statements::{digest, transaction};
use crate::sim::stock::index::Saved;
use crate::sim::stock::{Level, Stock, is_busy};
use crate::sim::subject::DB;

/// Stock connections at most.
const KEPT: usize = 2;

impl Wal {
    /// One action of a stock connection, which may be killed in it.
    pub(super) fn neighbour_acts(&mut self, dice: &mut Dice) -> Checked<()> {
        if self.stock.len() < KEPT && dice.one_in(2) {
            let done = self.neighbour_comes(dice);
            let saved = Saved::take(&self.machine, DB);
            lock(&self.accidents).save(saved);
            self.settle(done)?;
            return self.look(dice);
        }
        if self.stock.is_empty() {
            return Ok(());
        }
        let at = dice.index(self.stock.len());
        let victim = self.stock[at].process.clone();
        self.arm(&victim, dice);
        // Frames of a killed process that lack their checksums are stock SQLite's own trouble, as
        // long as nobody of the engine comes: what it copies of them it may lose halfway.
        let is_on_its_own = self.settings().is_older && !self.is_open();
        let done = match dice.below(8) {
            0..6 if is_on_its_own => self.neighbour_reads(at),
            0 | 1 => {
                let stock = self.stock.remove(at);
                stock.db.close().map_err(|(_, error)| failed("stock SQLite closes", &error))
            }
            2 => self.neighbour_checkpoints(at, dice),
            3..6 => self.neighbour_writes(at, dice),
            _ => self.neighbour_reads(at),
        };
        self.settle(done)?;
        self.look(dice)
    }

    /// Whether a connection of the engine is open.
    fn is_open(&self) -> bool {
        self.connections.iter().any(Option::is_some)
    }

    /// One is opened: what it is shown is as good as what the engine would be.
    fn neighbour_comes(&mut self, dice: &mut Dice) -> Checked<()> {
        if !self.machine.exists(DB) || lock(&self.history).is_unseen() && dice.one_in(2) {
            return Ok(());
        }
        let fence = self.explorer().subject.stock_may_refuse(&self.machine, DB);
        let process = self.machine.process();
        self.arm_beside();
        let opened = Stock::open_sharing(process)
            .and_then(|stock| stock.checked().map(|seen| (stock, seen)));
        let (stock, (sound, seen)) = match opened {
            Ok(opened) => opened,
            Err(_) if fence && !self.is_open() => return Ok(()),
            Err(_) if self.settings().is_alone => return Ok(()),
            Err(error) => return Err(failed("stock SQLite opens it", &error)),
        };
        let known = lock(&self.history).sees(&seen);
        match known {
            Err(what) => wrong!("stock SQLite sees {what}"),
            Ok(()) if !sound => wrong!("integrity_check of stock SQLite fails"),
            Ok(()) => {
                self.stock.push(stock);
                Ok(())
            }
        }
    }

    /// The process with `-wal` in its memory may be killed while a stock one opens the database,
    /// which goes by what it found as that lived. In files all is in the page cache, whoever lives.
    fn arm_beside(&mut self) {
        if !self.settings().is_alone {
            return;
        }
        let seed = self.explorer().plan.seed;
        let mut dice = Dice::new(seed, 6600 + self.machine.steps());
        let living = self.processes.iter().flatten().next().map(|world| world.process.clone());
        if let Some(victim) = living.filter(|_| dice.one_in(3)) {
            lock(&self.accidents).arm_kill(&victim, dice.below(8));
        }
    }

    fn neighbour_reads(&mut self, at: usize) -> Checked<()> {
        let seen = self.stock[at].content();
        if seen.is_err() && self.settings().is_alone {
            // What is in memory it is not shown, nor what the log alone has.
            return Ok(());
        }
        let seen = seen.map_err(|error| failed("stock SQLite reads", &error))?;
        match lock(&self.history).sees(&seen) {
            Ok(()) => Ok(()),
            Err(what) => wrong!("stock SQLite sees {what}"),
        }
    }

    /// It writes, unless somebody else does, or the engine keeps it out.
    fn neighbour_writes(&mut self, at: usize, dice: &mut Dice) -> Checked<()> {
        let writing = self.is_being_written();
        let kept_out = self.is_open() && self.settings().claims.keeps_stock_writers_out;
        let mut level = stock_levels(&self.machine)[usize::from(!dice.one_in(3))];
        if self.is_kept_from_checkpoints() && dice.one_in(3) {
            level = Level::Off;
        }
        let mut begun = self.neighbour_begins(at, level, dice);
        let is_in_vain = !writing && !kept_out && begun.as_ref().is_err_and(is_busy);
        if is_in_vain && self.checkpoints_end()? {
            begun = self.neighbour_begins(at, level, dice);
        }
        let stock = &self.stock[at].db;
        let new = match begun {
            Ok(_) if writing || kept_out => return wrong!("stock SQLite writes beside others"),
            Ok(new) => new,
            Err(error) if is_busy(&error) && (writing || kept_out) => return Ok(()),
            Err(_) if self.settings().is_alone => return Ok(()),
            Err(error) => return Err(failed("stock SQLite writes", &error)),
        };
        if dice.one_in(5) {
            let undone = stock.execute_batch("ROLLBACK");
            return undone.map_err(|error| failed("stock SQLite rolls back", &error));
        }
        lock(&self.history).begins(&new);
        let done = stock.execute_batch("COMMIT");
        done.map_err(|error| failed("stock SQLite commits", &error))?;
        if lock(&self.accidents).is_over() {
            return Ok(());
        }
        lock(&self.history).committed(stock_promise(level) == Promise::Durable);
        Ok(())
    }

    fn neighbour_begins(&self, at: usize, level: Level, dice: &mut Dice) -> Result<Content> {
        let stock = &self.stock[at].db;
        let set = format!("PRAGMA synchronous={level:?}; PRAGMA wal_autocheckpoint=7");
        stock.execute_batch(&set)?;
        transaction(stock, dice)?;
        digest(stock)
    }

    /// Ends the checkpoints that were interrupted, if one of them has WRITER: one that drains
    /// (`drain.rs` of the engine) keeps it as long as it copies, as SQLite's own do in mode FULL.
    /// That is what a busy timeout is for; behind it nobody may be in a writer's way.
    fn checkpoints_end(&mut self) -> Checked<bool> {
        let index = self.machine.open_stock(format!("{DB}-shm"));
        if !index.is_ok_and(|index| !index.lock(120..121, LockKind::Exclusive)) {
            return Ok(false);
        }
        let mut ended = false;
        for connection in self.connections.iter_mut().flatten() {
            if matches!(connection.state, State::Checkpointing) {
                let state = std::mem::replace(&mut connection.state, State::Idle);
                connection.end(&state)?;
                ended = true;
            }
        }
        if ended {
            let saved = Saved::take(&self.machine, DB);
            lock(&self.accidents).save(saved);
        }
        Ok(ended)
    }

    /// Whether the engine keeps stock SQLite from checkpoints, and lets it write: then it appends,
    /// and takes nothing from anybody at any level.
    fn is_kept_from_checkpoints(&self) -> bool {
        let Ok(index) = self.machine.open_stock(format!("{DB}-shm")) else { return false };
        let free = |byte| index.lock(byte..byte + 1, LockKind::Exclusive);
        self.is_open() && free(120) && !free(121) && !free(127)
    }

    fn neighbour_checkpoints(&mut self, at: usize, dice: &mut Dice) -> Checked<()> {
        let mode = ["PASSIVE", "RESTART", "TRUNCATE"][dice.index(3)];
        let run = format!("PRAGMA wal_checkpoint({mode})");
        match self.stock[at].db.query_row(&run, [], |_| Ok(())) {
            Ok(()) => Ok(()),
            Err(error) if is_busy(&error) => Ok(()),
            Err(_) if self.settings().is_alone => Ok(()),
            Err(error) => Err(failed("stock SQLite checkpoints", &error)),
        }
    }
}
