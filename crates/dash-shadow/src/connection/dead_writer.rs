//! What a writer that was killed leaves behind, met by the next writer of a database that others
//! kept open. Roll forward if its commit is whole, by writing it again and flushing (F2, F11);
//! else mend the shadow before it is used.

use crate::connection::state::Connection;
use crate::format::header::{Header, Marks};
use crate::format::{CommitBlock, State};
use crate::mutation::{Mutation, broken};
use crate::names::exchange::finish_renames;
use crate::names::super_journal;
use crate::recovery::examine::Found;
use crate::recovery::make_durable::make_durable;
use crate::shared::state::{Current, ShadowCondition, Snapshot};
use dash_engine::error::{Context, Operation, Result};
use dash_storage::{Directory, Storage};
use std::sync::Arc;

impl<S: Storage> Connection<S> {
    /// Under WRITER, with the in-flight mark of somebody who is gone. The caller's snapshot may be
    /// older than the current copy afterwards.
    pub(crate) fn finish_dead_writer(&mut self) -> Result<()> {
        self.view.current = self.pair.coordination.current();
        self.view.snapshot = self.pair.coordination.snapshot(self.view.current.slot);
        self.reload_if_pair_changed()?;
        let slot = self.shadow_slot();
        self.pair.coordination.next_tail_epoch(slot);
        self.pair.coordination.clear_settled();
        finish_renames::<S>(&self.pair.directory, &self.pair.names)?;
        if self.pair.files[slot].is_none() {
            self.pair.coordination.set_condition(ShadowCondition::Rebuild);
            self.pair.coordination.set_in_flight(0);
            return Ok(());
        }
        self.exclude_from(slot)?;
        let name = self.role(slot);
        let file = self.pair.file(slot)?;
        let found = Found::examine(file, &name)?;
        let block = found.tail.bound(found.id()).filter(|block| {
            found.matches
                && block.pair == self.pair.coordination.pair()
                && block.parent == self.view.snapshot.id
                && block.sequence == self.view.current.sequence + 1
                && block.id != self.pair.coordination.failed_commit()
        });
        let committed = match block {
            Some(_) if broken(Mutation::DeadWriterUndone) => false,
            Some(block) if block.state == State::Whole => true,
            Some(block) if block.state == State::Prepared => {
                let exists = super_journal::exists_durably(
                    &self.pair.storage,
                    &self.pair.directory_path,
                    &block.super_journal,
                )?;
                self.debts.cut_off = exists.then(|| block.super_journal.clone());
                !exists
            }
            _ => false,
        };
        match (block.filter(|_| committed), found.header) {
            (Some(block), Some(header)) => self.publish_for_dead(&found, block, &header)?,
            _ => self.bury_for_dead(&found)?,
        }
        self.pair.coordination.set_in_flight(0);
        Ok(())
    }

    /// Its commit is whole: it is written again and flushed, named, and shown to readers.
    fn publish_for_dead(
        &mut self,
        found: &Found<Arc<S::File>>,
        block: &CommitBlock,
        header: &Header,
    ) -> Result<()> {
        let slot = self.shadow_slot();
        make_durable(found, &self.role(slot))?;
        self.pair.coordination.set_flushed(slot, true);
        let current = self
            .pair
            .directory
            .metadata(&self.pair.names.db)
            .during(Operation::Stat, self.pair.names.shown())?
            .map(|named| named.id);
        if current == Some(found.id()) {
            drop(self.fence_off_replaced(self.view.current.slot));
        } else {
            self.exchange_names()?;
        }
        self.pair.coordination.set_names_changed();
        if self.view.snapshot.size == 0 && !broken(Mutation::FirstNameNotFlushed) {
            self.flush_directory()?; // SHADOW-20
        }
        let snapshot = Snapshot {
            size: block.size,
            version: header.version(),
            id: block.id,
            counter: block.counter,
        };
        self.pair.coordination.add_name_on_disk(slot);
        self.pair.coordination.set_snapshot(slot, &snapshot);
        self.pair.coordination.set_current(Current { sequence: block.sequence, slot });
        self.pair.coordination.set_condition(ShadowCondition::Repair);
        self.statistics.rolled_forward += 1;
        Ok(())
    }

    /// It was cut off. Decided: readers see the current copy from here on (SHADOW-12).
    fn bury_for_dead(&mut self, found: &Found<Arc<S::File>>) -> Result<()> {
        self.bury(&found.tail)?;
        let given_up = self.pair.coordination.condition() == ShadowCondition::Rebuild;
        let condition = if self.view.snapshot.size > 0
            && !given_up
            && (found.tail.bound(found.id()).is_some()
                || found.tail.bound_intent(found.id()).is_some())
        {
            ShadowCondition::Repair
        } else {
            ShadowCondition::Rebuild
        };
        self.pair.coordination.set_condition(condition);
        Ok(())
    }
}
