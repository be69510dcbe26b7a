//! The program kind `many_processes`: three of them, and the snapshots of others, held for long.
//! Before any call of an action its process may be killed, or the power may go; flushes fail and
//! leave pages clean. Nobody may ever see anything but what a transaction left, nor go back.

mod accident;
mod guests;
mod slow;

use std::sync::{Arc, Mutex};

use dash_simulated::{Effect, Fault, Machine, OperationKind, Random, Simulated, StockDescriptor};

use crate::random::Dice;
use crate::sim::commit::undoable;
use crate::sim::content::{self, Content, Stock, as_stock, read_here};
use crate::sim::explore::{Checked, Explorer, changes, lock, wrong};
use crate::sim::model::{Model, short};
use crate::sim::next::{next, unexpected};
use crate::sim::subject::{DB, Outcome, Session, Trouble};
use crate::sim::within::{self, is_dead};

/// Attempts at what somebody else may be in the way of.
const ATTEMPTS: usize = 4;
/// Snapshots held at most.
const READERS: usize = 4;

/// A process that holds a snapshot.
struct Reader {
    process: Simulated,
    session: Box<dyn Session>,
    content: Content,
}

use accident::Accident;

/// EIO.
const EIO: i32 = 5;

/// A write transaction that takes its time.
struct Open {
    /// Whose.
    process: usize,
    /// What it read.
    old: Content,
    /// What it is to leave.
    new: Content,
    /// Whether that is written.
    written: bool,
    /// How many commits had been acknowledged.
    floor: u64,
}

struct ManyProcesses {
    explorer: Arc<Explorer>,
    machine: Machine,
    model: Model,
    live: [Option<(Simulated, Box<dyn Session>)>; 3],
    readers: Vec<Reader>,
    /// Stock descriptors opened long ago.
    descriptors: Vec<StockDescriptor>,
    /// A stock reader, and what it read under the lock that it holds.
    stock: Option<(StockDescriptor, Content)>,
    /// A write transaction that has begun and is neither committed nor rolled back.
    open: Option<Open>,
    /// A flush has failed since the power last went: calls may fail that need not.
    faulty: bool,
}

/// Runs it.
pub fn run(explorer: &Arc<Explorer>) -> Checked<()> {
    let machine = explorer.machine();
    let mut many = ManyProcesses {
        explorer: Arc::clone(explorer),
        machine,
        model: explorer.model(),
        live: [None, None, None],
        readers: Vec::new(),
        descriptors: Vec::new(),
        stock: None,
        open: None,
        faulty: false,
    };
    for action in explorer.plan.keep.clone() {
        many.act(&mut Dice::new(explorer.plan.seed, 2000 + action as u64))?;
        explorer.result()?;
    }
    Ok(())
}

impl ManyProcesses {
    fn size(&self) -> usize {
        self.explorer.setup.page
    }

    fn open(&self) -> Outcome<(Simulated, Box<dyn Session>)> {
        let process = self.machine.process();
        let session = self.explorer.subject.open(&process, DB, &self.explorer.setup)?;
        Ok((process, session))
    }

    fn session(&mut self, i: usize) -> Checked<&mut dyn Session> {
        if self.live[i].is_none() {
            let mut opened = self.open();
            for _ in 0..ATTEMPTS {
                // Half-done renames are a living process's, or a fault of before hit the opening.
                if opened.is_ok() || !(self.faulty || opened.as_ref().err() == Some(&Trouble::Busy))
                {
                    break;
                }
                self.machine.stop_failing();
                opened = self.open();
            }
            self.live[i] = Some(opened.map_err(|error| unexpected("opening", &error))?);
        }
        match &mut self.live[i] {
            Some((_, session)) => Ok(&mut **session),
            None => wrong!("not opened"),
        }
    }

    fn allows(&self, who: &str, content: &Content) -> Checked<()> {
        match self.model.shows(content) {
            true => Ok(()),
            false => wrong!("{who} sees {}, not {}", short(content), self.model.shown()),
        }
    }

    /// Reads in process `i`; `None` if it was in the way of others, or a fault was in its.
    fn look(&mut self, i: usize) -> Checked<Option<Content>> {
        let size = self.size();
        for _ in 0..ATTEMPTS {
            let session = self.session(i)?;
            let seen = session.begin_read().and_then(|()| read_here(session, size));
            drop(session.end());
            match seen {
                Ok(content) => {
                    self.allows(&format!("process {i}"), &content)?;
                    return Ok(Some(content));
                }
                Err(Trouble::Busy) => {}
                Err(Trouble::Failed(_)) if self.faulty => {
                    self.live[i] = None;
                    return Ok(None);
                }
                Err(error) => return wrong!("process {i} reads: {error}"),
            }
        }
        Ok(None)
    }

    fn act(&mut self, dice: &mut Dice) -> Checked<()> {
        let i = dice.index(3);
        if self.open.as_ref().is_some_and(|open| open.process == i || dice.one_in(3)) {
            self.finish_open(dice.one_in(4))?;
        }
        let Some(content) = self.look(i)? else {
            return Ok(());
        };
        let new = next(content, &self.explorer.plan, dice);
        if self.open.is_none() && dice.one_in(6) {
            return self.leave_open(i, new, dice.one_in(2));
        }
        let accident = Accident::draw(dice);
        let number = self.model.tried(&new);
        let cut = self.arm(i, accident, dice);
        let (done, closed) = self.work(i, &new, number, accident, dice)?;
        self.machine.watch(|_, _| {});
        if accident.lost_flush {
            self.machine.stop_failing();
        }
        if let Some(after) = lock(&cut).take() {
            return self.power_came_back(after);
        }
        let deadly = accident.kill || accident.power;
        match done {
            Err(error) if deadly || self.faulty => {
                if deadly || closed || dice.one_in(2) {
                    self.live[i] = None;
                }
                drop(error);
            }
            Err(error) => return wrong!("process {i}: {error}"),
            Ok(()) if deadly => {
                if let Some((process, session)) = self.live[i].take() {
                    self.machine.kill(&process);
                    drop(session);
                }
            }
            Ok(()) => {}
        }
        self.check_readers()?;
        self.stock_looks_on(dice)?;
        if !self.faulty && self.open.is_none() && dice.one_in(2) {
            self.ask_a_writer(dice.index(3))?;
        }
        self.readers_come_and_go(dice)?;
        self.check_readers()?;
        if !self.faulty && dice.one_in(10) {
            self.all_leave()?;
        }
        Ok(())
    }

    /// What process `i` does, and whether it is closed by it.
    fn work(
        &mut self,
        i: usize,
        new: &Content,
        number: usize,
        accident: Accident,
        dice: &mut Dice,
    ) -> Checked<(Outcome<()>, bool)> {
        let size = self.size();
        let harmless = !(self.faulty || accident.kill || accident.power);
        match dice.below(12) {
            0 | 1 => {
                let closed = self.live[i].take().map_or(Ok(()), |(_, session)| session.close());
                match closed {
                    // It reads what a dead writer left half-done: that is for the next opener.
                    Err(Trouble::Busy) if self.stock.is_some() => Ok((Ok(()), true)),
                    closed => Ok((closed, true)),
                }
            }
            2 | 3 => {
                let steps = dice.index(undoable(self.explorer.steps) + 1);
                let session = self.session(i)?;
                let written = content::write(session, size, new)
                    .and_then(|()| content::begin_commit(session, steps));
                let ended = session.end();
                let done = match written {
                    Err(Trouble::Busy) => ended,
                    written => written.and(ended),
                };
                if harmless && done.is_ok() {
                    self.model.forget(number);
                }
                Ok((done, false))
            }
            4 => match self.session(i)?.idle() {
                Err(Trouble::Busy) => Ok((Ok(()), false)),
                done => Ok((done, false)),
            },
            _ => {
                let session = self.session(i)?;
                for _ in 0..ATTEMPTS {
                    match content::commit(session, size, new) {
                        Err(Trouble::Busy) => {}
                        Err(error) => return Ok((Err(error), false)),
                        Ok(()) => {
                            // Whoever was killed meanwhile acknowledges nothing.
                            let process = self.live[i].as_ref().map(|(process, _)| process);
                            if !(accident.kill && process.is_some_and(is_dead)) {
                                self.model.acknowledged(number);
                            }
                            break;
                        }
                    }
                }
                Ok((Ok(()), false))
            }
        }
    }

    /// All is new. The process that was cut died with the cut, so nothing was acknowledged since.
    fn power_came_back(&mut self, after: Machine) -> Checked<()> {
        self.live = [None, None, None];
        self.readers.clear();
        self.descriptors.clear();
        (self.stock, self.open) = (None, None);
        self.machine = after;
        self.faulty = false;
        match self.look(0)? {
            Some(content) => {
                self.model.on_disk(&content);
                Ok(())
            }
            None => wrong!("nobody gets to read after the power came back"),
        }
    }

    /// All close: a plain file is left.
    fn all_leave(&mut self) -> Checked<()> {
        self.finish_open(false)?;
        self.stock = None;
        for reader in std::mem::take(&mut self.readers) {
            reader.session.close().map_err(|error| unexpected("a reader closes", &error))?;
        }
        self.session(0)?;
        for i in 0..3 {
            if let Some((_, session)) = self.live[i].take() {
                session.close().map_err(|error| unexpected("closing", &error))?;
            }
        }
        let held: Vec<_> = self.descriptors.iter().map(StockDescriptor::inode).collect();
        if let Err(what) = self.explorer.subject.check_at_rest(&self.machine, DB, &held) {
            return wrong!("all closed: {what}");
        }
        match as_stock(&self.machine.file_view(DB).unwrap_or_default()) {
            Stock::Content(content) => self.allows("stock SQLite, at rest,", &content),
            other => wrong!("at rest stock SQLite sees {other:?}"),
        }
    }

    /// Sets what is to go wrong; what is left of the machine if the power goes.
    fn arm(
        &mut self,
        i: usize,
        accident: Accident,
        dice: &mut Dice,
    ) -> Arc<Mutex<Option<Machine>>> {
        let cut: Arc<Mutex<Option<Machine>>> = Arc::default();
        if accident.lost_flush {
            self.faulty = true;
            let fault = Fault::new(Effect::LostFlush(EIO)).on(OperationKind::Flush);
            self.machine.fail(fault.after(accident.flushes));
        }
        let Some((victim, _)) = &self.live[i] else {
            return cut;
        };
        if !accident.kill && !accident.power {
            return cut;
        }
        let (victim, put, explorer) = (victim.clone(), cut.clone(), Arc::clone(&self.explorer));
        let (model, fates) = (self.model.clone(), self.explorer.plan.fates);
        let (mut calls, mut flushes, mut dice) = (0, 0, dice.clone());
        self.machine.watch(move |machine, operation| {
            if accident.kill && accident.lost_flush {
                // Right after the flush that failed, before anything is done about it.
                let flush = operation.kind == OperationKind::Flush;
                if flushes > accident.flushes && changes(operation.kind) {
                    machine.kill(&victim);
                }
                flushes += u64::from(flush);
                return;
            }
            let any = changes(operation.kind) || operation.kind == OperationKind::Unlock;
            if !accident.kind.map_or(any, |kind| kind == operation.kind) {
                return;
            }
            if calls == accident.at {
                if accident.power {
                    explorer.cut(machine, &model, fates, 0, &mut dice);
                    let after = machine.power_loss(&mut Random::new(dice.below(1 << 40)));
                    *lock(&put) = Some(after);
                }
                if accident.after && !accident.power {
                    match within::cut(operation, &mut dice).filter(|_| dice.one_in(2)) {
                        Some(len) => machine.kill_within(&victim, len),
                        None => machine.kill_after(&victim),
                    }
                } else {
                    machine.kill(&victim);
                }
            }
            calls += 1;
        });
        cut
    }
}
