//! A commit in steps: what each step leaves if the process is killed after it, or the power lost,
//! and whether it can still be undone. Programs stop between any two, and judge by this.

/// Whether a transaction is there afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// It is not.
    Never,
    /// It is or it is not, as a whole: nobody was told.
    Perhaps,
    /// It is.
    Always,
}

/// The call with which SQLite, in a rollback mode, asks for a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SqliteCall {
    /// `SQLITE_FCNTL_SYNC`: all pages were written.
    ControlSync,
    /// `xSync`, which `synchronous=OFF` leaves out.
    Sync,
    /// `SQLITE_FCNTL_COMMIT_PHASETWO`.
    CommitPhaseTwo,
}

/// A step, and what holds once it has returned. Before the first step a transaction is kept
/// [never](Kept::Never), and can be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitStep {
    /// Its name, for messages.
    pub name: &'static str,
    /// When SQLite asks for it. An engine that brings a mapping of its own
    /// ([`SqliteFiles`](super::subject::SqliteFiles)) decides that there.
    pub at: SqliteCall,
    /// Whether it flushes what was committed: without it (`synchronous=OFF`) nothing is promised
    /// about a power loss.
    pub is_flush: bool,
    /// What a kill leaves for the next process that opens the database or writes it.
    pub after_kill: Kept,
    /// What a power loss leaves.
    pub after_power_loss: Kept,
    /// Whether the transaction can still be rolled back. If not, others may see it by now: with
    /// [`Kept::Always`] after a kill and [`Kept::Perhaps`] after a power loss they see what is
    /// not durable yet.
    pub can_be_undone: bool,
}

/// How many of the steps, from the first on, can be undone. In a transaction over several
/// databases they come before the super-journal is removed.
pub fn undoable(steps: &[CommitStep]) -> usize {
    steps.iter().take_while(|step| step.can_be_undone).count()
}

/// What a kill leaves after so many of the steps.
pub fn after_kill(steps: &[CommitStep], done: usize) -> Kept {
    done.checked_sub(1).and_then(|last| steps.get(last)).map_or(Kept::Never, |step| step.after_kill)
}

/// Whether others may see a commit that a power loss may still take.
pub fn is_seen_early(steps: &[CommitStep]) -> bool {
    let early = |step: &CommitStep| {
        step.after_kill == Kept::Always && step.after_power_loss != Kept::Always
    };
    steps.iter().any(early)
}
