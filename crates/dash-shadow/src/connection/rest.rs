//! What whoever brings a database to rest must know of a connection: coming to rest is closing it
//! for a while (SHADOW-25). SQLite goes on with what it has cached, so the next connection under it
//! must have the same database, and whether it is in the same state is told here.

use crate::connection::state::Connection;
use crate::shared::locks::LockLevel;
use dash_storage::{FileId, Storage};

/// What tells one database, and one state of it, from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The two files.
    pub files: [Option<FileId>; 2],
    /// Random number of the pair. Another one, once somebody else has written the current copy.
    pub pair: u64,
    /// Random id of the newest commit, or of what somebody else wrote; 0: an empty database.
    pub commit: u64,
}

impl<S: Storage> Connection<S> {
    /// Whether nothing is lost where this connection is closed and opened again: it is in no
    /// transaction, and owes nothing that only it knows of.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let debts = &self.debts;
        self.view.level == LockLevel::None
            && self.transaction.is_none()
            && !self.holds_off
            && debts.poisoned.is_none()
            && debts.unpublished.is_none()
            && debts.cut_off.is_none()
    }

    /// Whether somebody has written since the first one opened the database, or left a name fence
    /// before: who is killed now leaves more than a plain file.
    #[must_use]
    pub fn is_written(&self) -> bool {
        let c = &self.pair.coordination;
        c.commits() > 0 || c.in_flight() != 0 || c.fence() || c.fence_found() || c.names_changed()
    }

    /// Which database this is, and in which state.
    #[must_use]
    pub fn identity(&self) -> Identity {
        let c = &self.pair.coordination;
        let commit = loop {
            let current = c.current();
            let snapshot = c.snapshot(current.slot);
            if c.current() == current {
                break snapshot.id;
            }
        };
        Identity { files: c.inodes(), pair: c.pair(), commit }
    }
}
