//! What may befall a process inside a call: it is killed before, within or after an operation of
//! storage, or all of them are, or the power goes; and the cuts at every step.

use std::sync::{Arc, Mutex};

use dash_simulated::{Effect, Fault, Machine, Operation, OperationKind, Simulated};

use super::history::{Cause, History};
use super::image::Images;
use crate::random::Dice;
use crate::sim::explore::{changes, lock};
use crate::sim::stock::index::Saved;
use crate::sim::stock::is_ended_in_place;
use crate::sim::subject::DB;
use crate::sim::within;

/// Steps within which an action is cut off, if it is.
const STEPS: u64 = 24;

/// What an accident leaves.
pub enum End {
    /// There was none.
    Own,
    /// A process is dead; others may live. The shared memory is to be as it was then.
    Killed(Simulated, Saved),
    /// Nobody lives on this machine, which takes the place of the other one.
    Gone(Machine, Cause),
}

/// What is going to happen, and to whom.
struct Armed {
    victim: Simulated,
    /// Steps until then.
    steps: u64,
    how: How,
}

enum How {
    Before,
    After,
    /// Between two pages of the cache, drawn with this seed.
    Within(u64),
    All,
    Power(u64),
}

/// What the watcher of the program's machine knows.
#[derive(Default)]
pub struct Accidents {
    armed: Option<Armed>,
    end: Option<End>,
}

impl Accidents {
    /// Something will befall this process within its next steps, or not. Where `others` keep what
    /// it leaves in shared memory, it is rather killed when it has written, and not told of it.
    pub fn arm(&mut self, victim: &Simulated, others: bool, dice: &mut Dice) {
        let how = match dice.below(16) {
            0 => How::Before,
            1 => How::After,
            2 => How::Within(dice.draw()),
            3 => How::All,
            4 => How::Power(dice.below(1 << 40)),
            5..=8 if others => How::After,
            _ => return,
        };
        self.armed = Some(Armed { victim: victim.clone(), steps: dice.below(STEPS), how });
    }

    /// It will be killed before a step, if so many come.
    pub fn arm_kill(&mut self, victim: &Simulated, steps: u64) {
        self.armed = Some(Armed { victim: victim.clone(), steps, how: How::Before });
    }

    /// Others have gone on since a process was killed, in the same call: the shared memory is to be
    /// as it is now.
    pub fn save(&mut self, now: Saved) {
        if let Some(End::Killed(_, saved)) = &mut self.end {
            *saved = now;
        }
    }

    /// What has become of it.
    pub fn take(&mut self) -> End {
        self.armed = None;
        self.end.take().unwrap_or(End::Own)
    }

    /// Whether there was an accident, so that nothing counts any more.
    pub fn is_over(&self) -> bool {
        self.end.is_some()
    }

    /// The moment before an operation.
    fn meet(&mut self, images: &Images, machine: &Machine, operation: &Operation) {
        let Some(armed) = &mut self.armed else { return };
        let len = match armed.how {
            How::Within(seed) => within::cut(operation, &mut Dice::new(seed, 0)),
            _ => None,
        };
        let waits = match armed.how {
            How::Power(_) => false,
            How::Within(_) if len.is_none() => true,
            _ => is_ended_in_place(machine),
        };
        if armed.steps > 0 || waits {
            armed.steps = armed.steps.saturating_sub(1);
            return;
        }
        let Some(Armed { victim, how, .. }) = self.armed.take() else { return };
        let saved = Saved::take(machine, DB);
        let end = match how {
            How::All => End::Gone(machine.killed(), Cause::Kill),
            How::Power(seed) => {
                End::Gone(images.explorer.plan.kind.lose_power(machine, seed), Cause::Power)
            }
            How::Before | How::After | How::Within(_) => End::Killed(victim.clone(), saved),
        };
        self.end = Some(end);
        match (how, len) {
            (How::After, _) => machine.kill_after(&victim),
            (_, Some(len)) => machine.kill_within(&victim, len),
            _ => machine.kill(&victim),
        }
    }
}

/// Cuts at every step of a machine, and has its accidents happen.
pub fn watch(
    images: &Arc<Images>,
    machine: &Machine,
    history: &Arc<Mutex<History>>,
    accidents: &Arc<Mutex<Accidents>>,
) {
    let images = Arc::clone(images);
    let (history, accidents) = (Arc::clone(history), Arc::clone(accidents));
    let mut dice = Dice::new(images.explorer.plan.seed, 6300);
    machine.watch(move |machine, operation: &Operation| {
        let over = lock(&accidents).is_over();
        if over || !changes(operation.kind) || images.explorer.result().is_err() {
            return;
        }
        let flush = matches!(operation.kind, OperationKind::Flush | OperationKind::FlushDirectory);
        let losses = match (flush, dice.below(4)) {
            (true, 0) => images.explorer.plan.fates,
            (true, _) => 1,
            (false, 0) => 1,
            (false, _) => 0,
        };
        let kills = u64::from(dice.one_in(8) && !is_ended_in_place(machine));
        let known = lock(&history).clone();
        images.cut(machine, &known, (losses, kills), 0, &mut dice);
        lock(&accidents).meet(&images, machine, operation);
    });
}

/// One flush, or two, or all of some, are going to fail and leave their pages clean.
pub fn lose_flushes(machine: &Machine, dice: &mut Dice) {
    let kinds = [OperationKind::Flush, OperationKind::Flush, OperationKind::WriteDurable];
    let kind = kinds[dice.index(kinds.len())];
    let fault = || Fault::new(Effect::LostFlush(libc::EIO)).on(kind);
    let skip = dice.below(3);
    match dice.below(4) {
        0 | 1 => machine.fail(fault().after(skip)),
        2 => {
            machine.fail(fault().after(skip));
            machine.fail(fault().after(skip));
        }
        _ => machine.fail(fault().after(skip).forever()),
    }
}
