//! Faults: which call fails, and how.

use crate::journal::OperationKind;

/// Makes operations fail. Faults are counted independently of each other.
#[derive(Debug, Clone)]
pub struct Fault {
    operation: Option<OperationKind>,
    inode: Option<u64>,
    skip: u64,
    forever: bool,
    effect: Effect,
}

/// What a fault does to the call it meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Fails with this errno; nothing happens.
    Error(i32),
    /// A flush that fails with this errno and leaves the file clean but not durable; likewise a
    /// durable write ([`OperationKind::WriteDurable`]) and its own bytes. Other operations, those
    /// of directories among them, fail and nothing happens.
    LostFlush(i32),
    /// A write, or a store to a mapping, that fails with this errno after so many bytes. Other
    /// operations just fail.
    ShortWrite(usize, i32),
    /// A read that returns at most so many bytes, as if the file ended there. Other operations go
    /// on as always.
    ShortRead(usize),
    /// A store to a mapping, a write-back of its lines or a fence that succeeds and does nothing,
    /// as if whoever should have called it had not. Other operations go on as always.
    LeftOut,
}

impl Fault {
    /// Meets the next operation, once.
    #[must_use]
    pub fn new(effect: Effect) -> Self {
        Self { operation: None, inode: None, skip: 0, forever: false, effect }
    }

    /// Meets operations of this kind only.
    #[must_use]
    pub fn on(self, operation: OperationKind) -> Self {
        Self { operation: Some(operation), ..self }
    }

    /// Meets operations on this inode only (for directory operations: the directory's).
    #[must_use]
    pub fn of_inode(self, inode: u64) -> Self {
        Self { inode: Some(inode), ..self }
    }

    /// Lets so many matching operations pass first.
    #[must_use]
    pub fn after(self, operations: u64) -> Self {
        Self { skip: operations, ..self }
    }

    /// Meets all matching operations from there on.
    #[must_use]
    pub fn forever(self) -> Self {
        Self { forever: true, ..self }
    }
}

/// The faults of a machine.
#[derive(Default)]
pub(crate) struct Faults(Vec<Fault>);

impl Faults {
    pub(crate) fn add(&mut self, fault: Fault) {
        self.0.push(fault);
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// What happens to this operation, if anything; all faults that match count it.
    pub(crate) fn meet(&mut self, kind: OperationKind, inode: u64) -> Option<Effect> {
        let mut effect = None;
        self.0.retain_mut(|fault| {
            let matches = fault.operation.is_none_or(|operation| operation == kind)
                && fault.inode.is_none_or(|only| only == inode);
            if !matches {
                return true;
            }
            if fault.skip > 0 {
                fault.skip -= 1;
                return true;
            }
            if effect.is_some() {
                return true;
            }
            effect = Some(fault.effect);
            fault.forever
        });
        effect
    }
}
