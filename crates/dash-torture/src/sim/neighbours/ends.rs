//! How a session of a neighbour ends: by itself, killed, or with the power; and the cuts at its
//! steps.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use dash_simulated::{Machine, OperationKind, Simulated};

use super::{End, Neighbours, image, open_dash};
use crate::random::Dice;
use crate::sim::explore::{Checked, Violation, changes, lock, wrong};
use crate::sim::model::short;
use crate::sim::sql::failed;
use crate::sim::sql::statements::digest;

/// Steps within which a session is cut off, if it is.
const STEPS: u64 = 80;

impl Neighbours {
    /// All is new, and all that is there is durable.
    pub(super) fn power_came_back(&mut self, after: Machine) -> Checked<()> {
        (self.dash, self.undecided, self.ghost) = (None, None, false);
        self.resting = None;
        self.kept.clear();
        self.machine = after;
        let opened = open_dash(&self.explorer, &self.machine.process());
        let mut model = lock(&self.model);
        let db = match opened {
            Err(Violation(what))
                if model.may_have_to_choose && self.explorer.subject.leaves_a_choice(&what) =>
            {
                self.is_over = true;
                return Ok(());
            }
            opened => opened?,
        };
        model.may_have_to_choose = false;
        let content = digest(&db).map_err(|error| failed("after the power came back", &error))?;
        if !model.allows(&content) {
            return wrong!("the power left {}, not {}", short(&content), model.shown());
        }
        model.on_disk(&content);
        self.content = content;
        Ok(())
    }

    /// A session in a process of its own, watched, and perhaps cut off.
    pub(super) fn cut_off(
        &mut self,
        dice: &mut Dice,
        session: impl FnOnce(&mut Self, &Simulated, &mut Dice, &Mutex<End>) -> Checked<()>,
    ) -> Checked<()> {
        let process = match &self.dash {
            Some((process, _)) => process.clone(),
            None => self.machine.process(),
        };
        let end = self.watch(&process, dice);
        let ran = session(self, &process, dice, &end);
        self.machine.watch(|_, _| {});
        self.explorer.result()?;
        let end = std::mem::replace(&mut *lock(&end), End::Own);
        match end {
            End::Own => ran,
            End::Killed => {
                self.forget_dead(&process);
                Ok(())
            }
            End::Lost(after) => self.power_came_back(after),
        }
    }

    fn forget_dead(&mut self, dead: &Simulated) {
        self.machine.kill(dead);
        self.dash = None;
    }

    /// Cuts at the steps of a session, and decides what becomes of it.
    fn watch(&self, process: &Simulated, dice: &mut Dice) -> Arc<Mutex<End>> {
        let end = Arc::new(Mutex::new(End::Own));
        let (told, victim) = (Arc::clone(&end), process.clone());
        let (explorer, model) = (Arc::clone(&self.explorer), Arc::clone(&self.model));
        let quiet = Arc::clone(&self.quiet);
        let (lost, killed) = (dice.one_in(6), dice.one_in(6));
        let at = dice.below(STEPS);
        let (mut steps, mut dice) = (0, Dice::new(dice.draw(), 0));
        self.machine.watch(move |machine, operation| {
            let over = !matches!(*lock(&told), End::Own);
            if over || !changes(operation.kind) || explorer.result().is_err() {
                return;
            }
            steps += 1;
            if quiet.load(Ordering::Relaxed) {
                return;
            }
            let flush =
                matches!(operation.kind, OperationKind::Flush | OperationKind::FlushDirectory);
            let fates = if flush { explorer.plan.fates / 2 } else { u64::from(dice.one_in(3)) };
            let known = lock(&model).clone();
            image::cut(&explorer, machine, &known, fates, 0, &mut dice);
            if steps <= at {
                return;
            }
            if lost {
                let kind = explorer.plan.kind;
                *lock(&told) = End::Lost(kind.lose_power(machine, dice.below(1 << 40)));
                machine.kill(&victim);
            } else if killed {
                *lock(&told) = End::Killed;
                machine.kill(&victim);
            }
        });
        end
    }

    /// The power is cut where nobody is doing anything.
    pub(super) fn cut_here(&self, dice: &mut Dice) -> Checked<()> {
        if !self.quiet.load(Ordering::Relaxed) && self.undecided.is_none() {
            let model = lock(&self.model).clone();
            let fates = self.explorer.plan.fates;
            image::cut(&self.explorer, &self.machine, &model, fates, 0, dice);
        }
        self.explorer.result()
    }
}
