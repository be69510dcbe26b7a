//! What goes wrong in an action of many processes, and when.

use std::sync::{Arc, Mutex};

use dash_simulated::{Effect, Fault, Machine, OperationKind, Random};

use super::ManyProcesses;
use crate::random::Dice;
use crate::sim::explore::{changes, lock};
use crate::sim::within;

/// EIO.
const EIO: i32 = 5;

/// What goes wrong in an action.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Accident {
    pub kill: bool,
    pub power: bool,
    pub lost_flush: bool,
    /// It is killed when the call is done, and was not told so.
    after: bool,
    /// How many flushes succeed before.
    flushes: u64,
    /// Before which call,
    at: u64,
    /// of this kind.
    kind: Option<OperationKind>,
}

/// Calls before which a process is killed, or the power goes, more often than by chance.
const STEPS: [OperationKind; 7] = [
    OperationKind::Flush,
    OperationKind::FlushDirectory,
    OperationKind::Exchange,
    OperationKind::Link,
    OperationKind::Rename,
    OperationKind::RemoveDirectory,
    OperationKind::Allocate,
];

impl Accident {
    /// Any, or none.
    pub fn draw(dice: &mut Dice) -> Self {
        let kind = dice.one_in(2).then(|| STEPS[dice.index(STEPS.len())]);
        Self {
            kill: dice.one_in(4),
            power: dice.one_in(10),
            lost_flush: dice.one_in(8),
            after: dice.one_in(3),
            flushes: dice.below(3),
            at: dice.below(if kind.is_some() { 4 } else { 60 }),
            kind,
        }
    }
}

impl ManyProcesses {
    /// Sets what is to go wrong; what is left of the machine if the power goes.
    pub(super) fn arm(
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
