//! The operations under which calls fail.

use crate::sim::content::Content;

/// An operation under which calls fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Opens a database at rest (a new one after no commit).
    Open,
    /// Opens it as a reader that may not write.
    OpenForReading,
    /// Opens what a process has left that was killed after so many steps of a commit.
    OpenKilled(usize),
    /// Opens what a power loss has left of that.
    OpenCut(usize),
    /// Writes beside a process that was killed after so many steps of a commit.
    CommitBeside(usize),
    /// Reads in a transaction.
    Read,
    /// A small commit.
    Commit,
    /// A commit that makes the database larger.
    Grow,
    /// A commit that makes it smaller.
    Shrink,
    /// Rolls back what was written.
    Rollback,
    /// Rolls back after all steps of a commit that can be undone.
    RollbackFlushed,
    /// What is done in the background.
    Idle,
    /// Closes.
    Close,
    /// Comes to rest, which is closing and opening again in the same process, and commits.
    Rest,
}

impl Operation {
    /// All of them, for an engine of whose commits so many steps can be undone.
    pub fn all(undoable: usize) -> Vec<Self> {
        let stages = |of: fn(usize) -> Self| (0..=undoable).map(of);
        [Self::Open, Self::OpenForReading]
            .into_iter()
            .chain(stages(Self::OpenKilled))
            .chain(stages(Self::OpenCut))
            .chain(stages(Self::CommitBeside))
            .chain([
                Self::Read,
                Self::Commit,
                Self::Grow,
                Self::Shrink,
                Self::Rollback,
                Self::RollbackFlushed,
                Self::Idle,
                Self::Close,
                Self::Rest,
            ])
            .collect()
    }

    /// Its name in a case.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase().replace('(', "-").replace(')', "")
    }

    /// What a commit of this kind leaves.
    pub fn next(self, old: &[u32]) -> Content {
        let mut new = old.to_vec();
        match self {
            Self::Shrink if new.len() > 4 => new.truncate(new.len() / 2),
            Self::Grow | Self::Shrink => new.extend(1000..1040),
            _ => {}
        }
        if new.is_empty() {
            new.extend(500..510);
        }
        let middle = new.len() / 2;
        for at in [0, middle, new.len() - 1] {
            new[at] += 7;
        }
        new
    }
}
