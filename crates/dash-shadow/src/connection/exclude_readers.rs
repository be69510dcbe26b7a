//! Keeping readers off the shadow, and letting them on again.

use crate::connection::state::Connection;
use crate::mutation::{Mutation, broken};
use crate::names::super_journal;
use crate::shared::locks;
use crate::shared::state::ShadowCondition;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_storage::{File, LockKind, Storage};

impl<S: Storage> Connection<S> {
    /// Keeps everybody off the shadow: until the lock is released nobody reads it but through the
    /// version store (SHADOW-3). Makes or mends it first if it can't be trusted.
    pub(crate) fn exclude_readers(&mut self) -> Result<()> {
        let slot = self.shadow_slot();
        let condition = self.pair.coordination.condition();
        let anew = condition == ShadowCondition::Rebuild || self.pair.files[slot].is_none();
        let in_place = anew && self.must_keep_shadow()?;
        if anew && !in_place {
            self.check_size()?;
            self.rebuild()?;
        }
        self.exclude_from(slot)?;
        match self.pair.coordination.condition() {
            _ if in_place => self.rebuild_in_place()?,
            ShadowCondition::Repair => self.repair()?,
            _ => {}
        }
        self.take_over_half_settled()?;
        self.remove_super_journal()
    }

    /// What was cut off is undone durably by now: its super-journal may go (F10 b).
    pub(crate) fn remove_super_journal(&mut self) -> Result<()> {
        match self.debts.cut_off.take() {
            Some(name) => {
                let undone = self.pair.directory_path.join(&self.pair.names.db);
                super_journal::remove_if_unused(
                    &self.pair.storage,
                    &*self.pair.directory,
                    &name,
                    &undone,
                )
            }
            None => Ok(()),
        }
    }

    /// Takes SQLite's SHARED range of a slot exclusively, and waits for dash readers pinned there.
    pub(crate) fn exclude_from(&mut self, slot: usize) -> Result<()> {
        // Also where the SHARED range has been held since the last commit (locking_mode=EXCLUSIVE):
        // dash readers don't look at it.
        if !broken(Mutation::PinnedReadersIgnored) {
            self.make_way(slot)?;
        }
        if self.target.excluded[slot] || broken(Mutation::StockReadersIgnored) {
            return Ok(());
        }
        let (file, name) = (self.pair.file(slot)?, self.role(slot));
        let exclude =
            || file.try_lock(locks::SHARED, LockKind::Exclusive).during(Operation::Lock, &name);
        let given_back = self.pair.coordination.given_back();
        if exclude()? {
            self.target.excluded[slot] = true;
            return Ok(());
        }
        // Without PENDING a stream of stock readers would keep the writer out for ever (T11), and
        // one could come in between housekeeping and the connection that waits for it.
        if !self.target.pending[slot] {
            self.target.pending[slot] = file
                .try_lock(locks::PENDING, LockKind::Exclusive)
                .during(Operation::Lock, &name)?;
        }
        if self.past_housekeeping(&locks::KEEPS_SHADOW, given_back, exclude)? {
            self.target.excluded[slot] = true;
            return Ok(());
        }
        Err(Error::Busy)
    }

    /// Lets readers onto both copies again.
    pub(crate) fn release_exclusion(&mut self) -> Result<()> {
        for slot in [0, 1] {
            let Some(file) = self.pair.files[slot].clone() else {
                continue;
            };
            if std::mem::take(&mut self.target.excluded[slot]) {
                file.unlock(locks::SHARED).during(Operation::Lock, self.role(slot))?;
            }
            if std::mem::take(&mut self.target.pending[slot]) {
                file.unlock(locks::PENDING).during(Operation::Lock, self.role(slot))?;
            }
        }
        Ok(())
    }
}
