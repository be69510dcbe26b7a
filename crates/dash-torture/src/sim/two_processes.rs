//! The program kind `two_processes`: they take turns at committing, rolling back, closing, dying
//! between two steps of a commit. The power is cut at every step of it. Stock descriptors opened
//! long ago look on.

use std::sync::{Arc, Mutex};

use dash_simulated::{Machine, Simulated, StockDescriptor};

use super::commit::{CommitStep, Kept, after_kill, undoable};
use super::content::{self, Content, read_here};
use super::explore::{Checked, Explorer, check_bytes, lock, wrong};
use super::model::{Model, short};
use super::next::{next, unexpected};
use super::subject::{DB, Outcome, Session, Trouble};
use crate::random::Dice;

/// Attempts at what somebody else may be in the way of.
const ATTEMPTS: usize = 6;
/// Stock descriptors kept open at most.
const DESCRIPTORS: usize = 4;

struct TwoProcesses {
    explorer: Arc<Explorer>,
    machine: Machine,
    model: Arc<Mutex<Model>>,
    processes: [Option<(Simulated, Box<dyn Session>)>; 2],
    descriptors: Vec<StockDescriptor>,
}

/// Runs it.
pub fn run(explorer: &Arc<Explorer>) -> Checked<()> {
    let machine = explorer.machine();
    let model = Arc::new(Mutex::new(explorer.model()));
    explorer.watch(&machine, &model, 0);
    let explorer = Arc::clone(explorer);
    let (processes, descriptors) = ([None, None], Vec::new());
    let mut two = TwoProcesses { explorer, machine, model, processes, descriptors };
    for action in two.explorer.plan.keep.clone() {
        two.act(&mut Dice::new(two.explorer.plan.seed, 1000 + action as u64))?;
        two.explorer.result()?;
    }
    let dice = &mut Dice::new(two.explorer.plan.seed, 999);
    (0..2).try_for_each(|i| two.close(i, dice))
}

impl TwoProcesses {
    fn size(&self) -> usize {
        self.explorer.setup.page
    }

    fn session(&mut self, i: usize) -> Checked<&mut dyn Session> {
        let opened = match self.processes[i].take() {
            Some(opened) => opened,
            None => {
                let process = self.machine.process();
                let opened = self.explorer.subject.open(&process, DB, &self.explorer.setup);
                (process, opened.map_err(|error| unexpected("opening", &error))?)
            }
        };
        Ok(&mut *self.processes[i].insert(opened).1)
    }

    fn act(&mut self, dice: &mut Dice) -> Checked<()> {
        let (i, size) = (dice.index(2), self.size());
        let content = content::read(self.session(i)?, size);
        let content = content.map_err(|error| unexpected("reading", &error))?;
        if !lock(&self.model).shows(&content) {
            return wrong!("reads {}, not {}", short(&content), lock(&self.model).shown());
        }
        if dice.one_in(4)
            && let Ok(descriptor) = self.machine.open_stock(DB)
        {
            self.descriptors.truncate(DESCRIPTORS - 1);
            self.descriptors.insert(dice.index(self.descriptors.len()), descriptor);
        }
        let new = next(content.clone(), &self.explorer.plan, dice);
        match dice.below(14) {
            0 => self.close(i, dice)?,
            1 | 2 => {
                let steps = dice.index(undoable(self.explorer.steps) + 1);
                self.roll_back(i, &content, &new, steps)?;
            }
            3 => self.idle(i)?,
            4 | 5 => {
                let ways = self.explorer.steps.len() + 1;
                let how = dice.index(2 * ways);
                self.die(i, &new, how % ways, how >= ways)?;
            }
            6 => self.commit_many(i, new, dice)?,
            _ => self.commit(i, &new)?,
        }
        let model = lock(&self.model).clone();
        for descriptor in &self.descriptors {
            check_bytes(&descriptor.read_all(), &model, "an old stock descriptor")?;
        }
        self.explorer.check_stock(&self.machine, &model)
    }

    fn close(&mut self, i: usize, dice: &mut Dice) -> Checked<()> {
        if dice.one_in(2)
            && let Some(kept) = self.descriptors.first().map(StockDescriptor::inode)
        {
            // One file is open elsewhere: the name is for that one.
            self.descriptors.retain(|descriptor| descriptor.inode() == kept);
        }
        let Some((_, session)) = self.processes[i].take() else {
            return Ok(()); // stock descriptors may have gone since the last one was closed
        };
        session.close().map_err(|error| unexpected("closing", &error))?;
        if self.processes.iter().all(Option::is_none) { self.at_rest() } else { Ok(()) }
    }

    fn at_rest(&self) -> Checked<()> {
        let held: Vec<_> = self.descriptors.iter().map(StockDescriptor::inode).collect();
        match self.explorer.subject.check_at_rest(&self.machine, DB, &held) {
            Ok(()) => Ok(()),
            Err(what) => wrong!("all closed: {what}"),
        }
    }

    fn idle(&mut self, i: usize) -> Checked<()> {
        match self.session(i)?.idle() {
            Ok(()) | Err(Trouble::Busy) => Ok(()),
            Err(error) => wrong!("working in the background: {error}"),
        }
    }

    fn commit(&mut self, i: usize, new: &Content) -> Checked<()> {
        let (number, size) = (lock(&self.model).begun(new), self.size());
        let model = Arc::clone(&self.model);
        let session = self.session(i)?;
        let mut attempt = 0;
        while let Err(error) = commit(session, size, new, &model, number) {
            attempt += 1;
            if error != Trouble::Busy || attempt == ATTEMPTS {
                return wrong!("committing: {error}");
            }
        }
        match self.explorer.subject.check_committed(&self.machine, DB) {
            Ok(()) => Ok(()),
            Err(what) => wrong!("after a commit: {what}"),
        }
    }

    /// Several transactions without letting go in between, as under locking_mode=EXCLUSIVE.
    fn commit_many(&mut self, i: usize, mut new: Content, dice: &mut Dice) -> Checked<()> {
        let (size, model) = (self.size(), Arc::clone(&self.model));
        let explorer = Arc::clone(&self.explorer);
        let session = self.session(i)?;
        let number = lock(&model).begun(&new);
        match content::write(session, size, &new) {
            Ok(()) => {}
            Err(Trouble::Busy) => {
                lock(&model).forget(number);
                return session.end().map_err(|error| unexpected("ending", &error));
            }
            Err(error) => return wrong!("writing: {error}"),
        }
        do_steps(session, explorer.steps, &model, number)
            .map_err(|error| unexpected("committing", &error))?;
        for _ in 0..=dice.below(2) {
            let old = std::mem::take(&mut new);
            if dice.one_in(3) && explorer.subject.sqlite_files().undoes_by_writing() {
                // SQLite rolls back what it has spilled by writing what was there, and syncs.
                let undone = next(old.clone(), &explorer.plan, dice);
                content::write_over(session, size, &old, &undone)
                    .and_then(|()| content::write_over(session, size, &undone, &old))
                    .and_then(|()| content::prepare(session))
                    .map_err(|error| unexpected("rolling back", &error))?;
            }
            new = next(old.clone(), &explorer.plan, dice);
            let number = lock(&model).begun(&new);
            let done = content::write_over(session, size, &old, &new)
                .and_then(|()| do_steps(session, explorer.steps, &model, number));
            match done {
                Ok(()) => {}
                Err(Trouble::Busy) => {
                    session.end().map_err(|error| unexpected("ending", &error))?;
                    lock(&model).forget(number);
                    return Ok(());
                }
                Err(error) => return wrong!("committing again: {error}"),
            }
        }
        session.end().map_err(|error| unexpected("ending", &error))
    }

    /// A transaction that is written and rolled back, after so many steps of its commit.
    fn roll_back(&mut self, i: usize, old: &Content, new: &Content, steps: usize) -> Checked<()> {
        // Until the rollback returns it may as well have happened.
        let (number, model) = (lock(&self.model).begun(new), Arc::clone(&self.model));
        let (size, steps) = (self.size(), &self.explorer.steps[..steps]);
        let session = self.session(i)?;
        let done = content::write(session, size, new)
            .and_then(|()| do_steps(session, steps, &model, number));
        if let Err(error) = done
            && error != Trouble::Busy
        {
            return wrong!("writing: {error}");
        }
        session.end().map_err(|error| unexpected("rolling back", &error))?;
        lock(&self.model).seen(old);
        Ok(())
    }

    /// The process dies after so many steps of a commit, or both processes do. The next writer
    /// decides what became of the transaction, as far as the last step leaves that open.
    fn die(&mut self, i: usize, new: &Content, stage: usize, both: bool) -> Checked<()> {
        let (base, size, steps) =
            (lock(&self.model).last().clone(), self.size(), self.explorer.steps);
        let (number, model) = (lock(&self.model).begun(new), Arc::clone(&self.model));
        let session = self.session(i)?;
        let died = content::write(session, size, new)
            .and_then(|()| do_steps(session, &steps[..stage], &model, number));
        let kept = match died {
            Ok(()) => after_kill(steps, stage),
            Err(Trouble::Busy) => Kept::Perhaps,
            Err(error) => return wrong!("writing: {error}"),
        };
        let dead = if both { 0..2 } else { i..i + 1 };
        for (process, session) in self.processes[dead].iter_mut().filter_map(Option::take) {
            self.machine.kill(&process);
            drop(session);
        }
        if self.processes.iter().all(Option::is_none) {
            let held: Vec<_> = self.descriptors.iter().map(StockDescriptor::inode).collect();
            if let Err(what) = self.explorer.subject.check_abandoned(&self.machine, DB, &held) {
                return wrong!("all killed: {what}");
            }
        }
        for _ in 0..ATTEMPTS {
            let other = self.session(1 - i)?;
            let looked = other
                .begin_read()
                .and_then(|()| other.begin_write())
                .and_then(|()| read_here(other, size));
            other.end().map_err(|error| unexpected("ending", &error))?;
            match looked {
                Ok(seen)
                    if (seen == base && kept != Kept::Always)
                        || (seen == *new && kept != Kept::Never) =>
                {
                    lock(&self.model).seen(&seen);
                    return Ok(());
                }
                Ok(seen) => {
                    let (seen, base, new) = (short(&seen), short(&base), short(new));
                    return wrong!("after a kill {seen}, of {new} on {base}: kept {kept:?}");
                }
                Err(Trouble::Busy) => {}
                Err(error) => return wrong!("looking after a kill: {error}"),
            }
        }
        wrong!("after a kill nobody gets to write")
    }
}

/// A whole transaction.
fn commit(
    session: &mut dyn Session,
    size: usize,
    new: &Content,
    model: &Mutex<Model>,
    number: usize,
) -> Outcome<()> {
    let steps = session.commit_steps();
    let committed =
        content::write(session, size, new).and_then(|()| do_steps(session, steps, model, number));
    let ended = session.end();
    committed.and(ended)
}

/// The first steps of a commit; the model is told what holds after each.
fn do_steps(
    session: &mut dyn Session,
    steps: &[CommitStep],
    model: &Mutex<Model>,
    number: usize,
) -> Outcome<()> {
    for (at, step) in steps.iter().enumerate() {
        lock(model).begins(number, step);
        session.commit_step(at, None)?;
        lock(model).stands(number, step);
    }
    Ok(())
}
