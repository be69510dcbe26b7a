//! What goes wrong in an action of many processes, and when.

use dash_simulated::OperationKind;

use crate::random::Dice;

/// What goes wrong in an action.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Accident {
    pub kill: bool,
    pub power: bool,
    pub lost_flush: bool,
    /// It is killed when the call is done, and was not told so.
    pub after: bool,
    /// How many flushes succeed before.
    pub flushes: u64,
    /// Before which call,
    pub at: u64,
    /// of this kind.
    pub kind: Option<OperationKind>,
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
