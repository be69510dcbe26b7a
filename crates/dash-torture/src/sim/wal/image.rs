//! What is left when all processes are gone at once: stock SQLite may look first, then the engine
//! opens it, and it goes on.

use std::sync::{Arc, Mutex};

use dash_simulated::{Machine, OperationKind};
use rusqlite::Connection;

use super::history::{Cause, History};
use super::settings::{Promise, Settings, stock_promise};
use super::story::{files, story};
use crate::random::{Dice, mix};
use crate::sim::content::Content;
use crate::sim::explore::{Checked, Explorer, Violation, changes, lock, wrong};
use crate::sim::model::short;
use crate::sim::sql::failed;
use crate::sim::sql::statements::{digest, is_sound, transaction};
use crate::sim::stock::{Level, Stock, is_wal};
use crate::sim::subject::{DB, World};

/// One recovery in so many is cut.
const CUT_ONE_IN: u64 = 20;

/// What the images of a program have in common.
pub struct Images {
    pub explorer: Arc<Explorer>,
    pub settings: Settings,
}

/// What is there after a cause.
fn gone(explorer: &Explorer, machine: &Machine, cause: Cause, dice: &mut Dice) -> Machine {
    match cause {
        Cause::Power => explorer.plan.kind.lose_power(machine, dice.below(1 << 40)),
        Cause::Kill => machine.killed(),
    }
}

impl Images {
    /// Everything ends now, in so many ways.
    pub fn cut(
        self: &Arc<Self>,
        machine: &Machine,
        history: &History,
        (losses, kills): (u64, u64),
        depth: usize,
        dice: &mut Dice,
    ) {
        self.explorer.cut_and(machine, losses, dice, |after, dice| {
            self.check(after, history, Cause::Power, depth + 1, dice.draw())
        });
        for _ in 0..kills {
            let checked =
                self.check(&machine.killed(), history, Cause::Kill, depth + 1, dice.draw());
            if let Err(violation) = checked {
                self.explorer.report(machine, violation, "all processes killed");
            }
        }
    }

    /// Cuts at the steps of a recovery.
    fn watch(self: &Arc<Self>, machine: &Machine, history: &Arc<Mutex<History>>, depth: usize) {
        let (images, history) = (Arc::clone(self), Arc::clone(history));
        let mut dice = Dice::new(self.explorer.plan.seed, 6100 + depth as u64);
        machine.watch(move |machine, operation| {
            if !changes(operation.kind) || images.explorer.result().is_err() {
                return;
            }
            let flush =
                matches!(operation.kind, OperationKind::Flush | OperationKind::FlushDirectory);
            let losses = u64::from(dice.one_in(if flush { 2 } else { 6 }));
            // See `Wal::arm`.
            let kills = u64::from(dice.one_in(12) && is_wal(machine));
            let known = lock(&history).clone();
            images.cut(machine, &known, (losses, kills), depth, &mut dice);
        });
    }

    /// Looks at a machine on which nobody lives.
    fn check(
        self: &Arc<Self>,
        machine: &Machine,
        history: &History,
        cause: Cause,
        depth: usize,
        seed: u64,
    ) -> Checked<()> {
        self.told(machine, cause, || self.look(machine, history, cause, depth, seed))
    }

    fn look(
        self: &Arc<Self>,
        machine: &Machine,
        history: &History,
        cause: Cause,
        depth: usize,
        seed: u64,
    ) -> Checked<()> {
        let explorer = &self.explorer;
        let hash = mix(machine.state_hash() ^ u64::from(cause == Cause::Kill));
        if !explorer.is_new(hash, history.mark(), depth) {
            return Ok(());
        }
        let mut dice = Dice::new(seed, 6200);
        let mut history = history.clone();
        history.ended(cause);
        if dice.one_in(2) {
            self.stock_first(&gone_again(machine, cause), &history, &mut dice)?;
        }
        let history = Arc::new(Mutex::new(history));
        if depth < explorer.plan.depth && dice.one_in(CUT_ONE_IN) {
            self.watch(machine, &history, depth);
        }
        let (db, content) = self.open(machine)?;
        let found = lock(&history).sees(&content);
        if let Err(what) = found {
            return wrong!("it is {what}");
        }
        self.go_on(machine, db, &history, &mut dice)
    }

    /// What has happened on a machine, told with what was wrong.
    fn told(
        &self,
        machine: &Machine,
        cause: Cause,
        check: impl FnOnce() -> Checked<()>,
    ) -> Checked<()> {
        let files = files(machine);
        check().map_err(|Violation(what)| {
            let story = story(machine, u64::MAX);
            Violation(format!("{what}\n{cause:?} left {files}; then this was done:\n{story}"))
        })
    }

    /// Opens it through the engine: what there is is sound.
    fn open(&self, machine: &Machine) -> Checked<(Connection, Content)> {
        let explorer = &self.explorer;
        let world = World::new(machine.process(), explorer.subject, explorer.setup);
        let opened = self.settings.open(world, Level::Full);
        explorer.result()?;
        let db = opened?;
        let read = is_sound(&db).and_then(|sound| digest(&db).map(|content| (sound, content)));
        explorer.result()?;
        match read.map_err(|error| failed("reading what was left", &error))? {
            (true, content) => Ok((db, content)),
            (false, content) => wrong!("what was left fails integrity_check: {}", short(&content)),
        }
    }

    /// It goes on, and what is committed now is durable.
    fn go_on(
        self: &Arc<Self>,
        machine: &Machine,
        db: Connection,
        history: &Arc<Mutex<History>>,
        dice: &mut Dice,
    ) -> Checked<()> {
        let promise = |level| self.settings.promise(level);
        let levels = [Level::Normal, Level::Full];
        let done = go_on(&db, levels, promise, history, dice);
        self.explorer.result()?;
        done.map_err(|error| failed("going on", &error))?;
        let seen = digest(&db).map_err(|error| failed("reading what was committed", &error))?;
        if let Err(what) = lock(history).sees(&seen) {
            return wrong!("after going on it is {what}");
        }
        if dice.one_in(3) {
            db.close().map_err(|(_, error)| failed("closing", &error))?;
            self.explorer.result()?;
            machine.watch(|_, _| {});
            self.at_rest(machine, &mut lock(history))?;
        }
        machine.watch(|_, _| {});
        let cause = [Cause::Power, Cause::Power, Cause::Kill][dice.index(3)];
        let (after, steps) = (gone(&self.explorer, machine, cause, dice), machine.steps());
        lock(history).ended(cause);
        let checked = self.told(&after, cause, || {
            let (_, content) = self.open(&after)?;
            let found = lock(history).sees(&content);
            found.map_err(|what| Violation(format!("gone on, then it is {what}")))
        });
        checked.map_err(|Violation(what)| {
            let story = story(machine, steps);
            Violation(format!("{what}\nbefore that, up to step {steps}:\n{story}\n"))
        })
    }

    /// Closed by the last one: stock SQLite sees what it is, and nothing of the engine's is left.
    pub fn at_rest(&self, machine: &Machine, history: &mut History) -> Checked<()> {
        if let Err(what) = self.explorer.subject.check_at_rest(machine, DB, &[]) {
            return wrong!("closed: {what}");
        }
        let seen = Stock::open_sharing(machine.killed().process())
            .and_then(|stock| stock.checked())
            .map_err(|error| failed("closed: stock SQLite is refused", &error))?;
        let (sound, content) = seen;
        match history.sees(&content) {
            Ok(()) if sound => Ok(()),
            Ok(()) => wrong!("closed: integrity_check of stock SQLite fails"),
            Err(what) => wrong!("closed: stock SQLite sees {what}"),
        }
    }

    /// Stock SQLite comes before the engine: it is refused, or sees what may be there, and what it
    /// writes counts.
    fn stock_first(
        self: &Arc<Self>,
        machine: &Machine,
        history: &History,
        dice: &mut Dice,
    ) -> Checked<()> {
        let mut history = history.clone();
        let may_lose = history.is_faulty();
        let fence = self.explorer.subject.stock_refuses(machine, DB);
        let opened = Stock::open_sharing(machine.process());
        let seen = opened.and_then(|stock| stock.checked().map(|seen| (stock, seen)));
        let (stock, (sound, content)) = match (seen, fence) {
            (Ok(_), Some(fence)) => return wrong!("stock SQLite reads it though {fence}"),
            (Ok(seen), None) => seen,
            (Err(_), _) if self.explorer.subject.stock_may_refuse(machine, DB) => {
                let (_, content) = self.open(machine)?;
                return match history.sees(&content) {
                    Ok(()) => Ok(()),
                    Err(what) => wrong!("after stock SQLite was refused it is {what}"),
                };
            }
            (Err(error), _) => return Err(failed("stock SQLite comes first", &error)),
        };
        if let Err(what) = history.sees(&content) {
            return wrong!("stock SQLite comes first and sees {what}");
        }
        if !sound {
            return wrong!("what stock SQLite finds fails integrity_check");
        }
        if !may_lose && dice.one_in(2) {
            let history = Arc::new(Mutex::new(history));
            let set = format!("PRAGMA wal_autocheckpoint={}", dice.below(4));
            let levels = stock_levels(machine);
            stock
                .db
                .execute_batch(&set)
                .and_then(|()| go_on(&stock.db, levels, stock_promise, &history, dice))
                .map_err(|error| failed("stock SQLite goes on", &error))?;
            drop(stock);
            let cause = [Cause::Power, Cause::Kill][dice.index(2)];
            let after = gone(&self.explorer, machine, cause, dice);
            lock(&history).ended(cause);
            return self.told(&after, cause, || {
                let (_, content) = self.open(&after)?;
                let found = lock(&history).sees(&content);
                found.map_err(|what| Violation(format!("after stock SQLite it is {what}")))
            });
        }
        Ok(())
    }
}

/// The same machine once more, on which nobody lives either.
fn gone_again(machine: &Machine, cause: Cause) -> Machine {
    match cause {
        Cause::Power => machine.power_loss(&mut dash_simulated::Everything),
        Cause::Kill => machine.killed(),
    }
}

/// How stock SQLite commits without a promise, and with one. With a journal its name has to be
/// flushed, too, and without a flush of the database nothing at all is promised.
pub fn stock_levels(machine: &Machine) -> [Level; 2] {
    if is_wal(machine) { [Level::Normal, Level::Full] } else { [Level::Extra; 2] }
}

/// A few transactions, the last one flushed.
fn go_on(
    db: &Connection,
    [lazy, flushed]: [Level; 2],
    promise: impl Fn(Level) -> Promise,
    history: &Mutex<History>,
    dice: &mut Dice,
) -> rusqlite::Result<()> {
    for last in [false, true] {
        match dice.below(6) {
            0 => {
                transaction(db, dice)?;
                db.execute_batch("ROLLBACK")?;
            }
            1 => {
                let mode = ["PASSIVE", "RESTART", "TRUNCATE"][dice.index(3)];
                db.execute_batch(&format!("PRAGMA wal_checkpoint({mode})"))?;
            }
            _ if !last => {}
            _ => continue,
        }
        let level = if last || dice.one_in(2) { flushed } else { lazy };
        db.execute_batch(&format!("PRAGMA synchronous={level:?}"))?;
        transaction(db, dice)?;
        let new = digest(db)?;
        lock(history).begins(&new);
        db.execute_batch("COMMIT")?;
        lock(history).committed(promise(level) == Promise::Durable);
    }
    Ok(())
}
