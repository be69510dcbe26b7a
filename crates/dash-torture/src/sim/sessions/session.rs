//! One session: opened, a few transactions, and its end.

use dash_simulated::Simulated;

use super::{ATTEMPTS, KEPT, Sessions};
use crate::random::Dice;
use crate::sim::commit::undoable;
use crate::sim::content::{self, Content, read_here};
use crate::sim::explore::{Checked, lock, wrong};
use crate::sim::model::short;
use crate::sim::next::unexpected;
use crate::sim::subject::{DB, Outcome, Session, Trouble};

impl Sessions {
    /// One session. Where its process is killed meanwhile, what it was at stays undecided.
    pub(super) fn session(&mut self, process: &Simulated, dice: &mut Dice) -> Checked<()> {
        let opened = self.open(process);
        let mut session = opened.map_err(|error| unexpected("opening", &error))?;
        self.decide(&mut *session)?;
        let seen = self.explorer.read(&mut *session);
        let seen = seen.map_err(|error| unexpected("reading", &error))?;
        if seen != self.content {
            return wrong!("reads {}, not {}", short(&seen), short(&self.content));
        }
        let off = dice.one_in(2);
        for _ in 0..dice.below(4) {
            if dice.one_in(3) {
                self.hot = dice.index(self.explorer.plan.pages());
            }
            let new = self.change(dice);
            if dice.one_in(8) {
                let steps = dice.index(undoable(self.explorer.steps) + 1);
                self.roll_back(&mut *session, new, steps)?;
            } else {
                self.commit(&mut *session, new, !off || dice.one_in(3))?;
            }
        }
        match dice.below(8) {
            0 => self.machine.kill(process),
            1 if self.idle.len() < KEPT => self.idle.push((process.clone(), session)),
            _ => return self.close(session, dice),
        }
        Ok(())
    }

    /// The next writer decides what became of a dead one's transaction.
    fn decide(&mut self, session: &mut dyn Session) -> Checked<()> {
        let Some(dead) = &self.undecided else {
            return Ok(());
        };
        let mut decided = Err(Trouble::Busy);
        for _ in 0..ATTEMPTS {
            decided = session
                .begin_read()
                .and_then(|()| session.begin_write())
                .and_then(|()| read_here(session, self.explorer.setup.page));
            session.end().map_err(|error| unexpected("ending", &error))?;
            if decided != Err(Trouble::Busy) {
                break;
            }
        }
        let seen = decided.map_err(|error| unexpected("looking after a kill", &error))?;
        let mut model = lock(&self.model);
        if seen != self.content && seen != *dead {
            let (old, new) = (short(&self.content), short(dead));
            return wrong!("after a kill it is {}, not {old} or {new}", short(&seen));
        }
        model.seen(&seen);
        self.content = seen;
        self.undecided = None;
        Ok(())
    }

    fn commit(&mut self, session: &mut dyn Session, new: Content, flushed: bool) -> Checked<()> {
        let number = lock(&self.model).tried(&new);
        self.undecided = Some(new.clone());
        let committed = content::write(session, self.explorer.setup.page, &new)
            .and_then(|()| self.do_steps(session, number, flushed));
        let ended = session.end();
        committed.and(ended).map_err(|error| unexpected("committing", &error))?;
        self.undecided = None;
        self.content = new;
        if !flushed {
            return Ok(());
        }
        lock(&self.model).acknowledged(number);
        if let Err(what) = self.explorer.subject.check_committed(&self.machine, DB) {
            return wrong!("after a commit: {what}");
        }
        let seen = self.explorer.read(session);
        match seen.map_err(|error| unexpected("reading what was committed", &error))? {
            seen if seen == self.content => Ok(()),
            seen => wrong!("{} after committing {}", short(&seen), short(&self.content)),
        }
    }

    /// The steps of a commit, under synchronous=OFF those that don't flush.
    fn do_steps(&self, session: &mut dyn Session, number: usize, is_flushed: bool) -> Outcome<()> {
        for (at, step) in self.explorer.steps.iter().enumerate() {
            if step.is_flush && !is_flushed {
                continue;
            }
            if !is_flushed && !step.can_be_undone {
                lock(&self.model).published(number);
            }
            session.commit_step(at, None)?;
            if step.is_flush {
                // What it was made on is durable from now on.
                lock(&self.model).flushed();
            }
        }
        Ok(())
    }

    /// A transaction that is written and rolled back, after so many steps of its commit.
    fn roll_back(&mut self, session: &mut dyn Session, new: Content, steps: usize) -> Checked<()> {
        let number = lock(&self.model).tried(&new);
        // Killed while it is undone it may as well have happened.
        self.undecided = Some(new.clone());
        content::write(session, self.explorer.setup.page, &new)
            .and_then(|()| content::begin_commit(session, steps))
            .and_then(|()| session.end())
            .map_err(|error| unexpected("rolling back", &error))?;
        self.undecided = None;
        lock(&self.model).forget(number);
        Ok(())
    }
}
