//! Undoing: the shadow becomes the current copy's equal again, after a rollback or a failed flush
//! ([`undo`](Connection::undo)); or at least nobody takes what is there for committed.

use crate::connection::state::Connection;
use crate::file::tail::Tail;
use crate::file::void_commit::void_commit;
use crate::mutation::{Mutation, broken};
use crate::shared::coordination::Word;
use crate::shared::state::ShadowCondition;
use dash_engine::error::{Context, Operation, Result};
use dash_engine::ranges::RangeSet;
use dash_storage::{Directory, File, Storage};
use std::sync::atomic::Ordering::SeqCst;

impl<S: Storage> Connection<S> {
    /// Makes the shadow the current copy's equal after a transaction dirtied `dirtied` in it. Where
    /// that fails (a full disk, a failing device) the shadow is given up: its block is voided and
    /// the next writer makes a new one. If not even that can be written (a full copy-on-write file
    /// system), what failed is remembered, and the next writer voids it; if it can't be remembered
    /// either, the connection is poisoned.
    /// `id`: of the commit, if it was prepared.
    pub(crate) fn undo(&mut self, dirtied: &RangeSet, id: u64) -> Result<()> {
        self.statistics.undone += 1;
        self.reserve.give_up();
        let undone = self.copy_back(dirtied);
        if let Err(error) = &undone {
            let remembered = self.remember_failed(id);
            match self.abandon_shadow() {
                // Should this flush fail too, the mark of being in flight stays, and the next
                // writer buries the transaction. A power loss before may bring it back: one that
                // was reported as failed, or rolled back on a failing device.
                Ok(()) => {
                    if self.flush_file(self.shadow_slot()).is_ok() {
                        self.pair.coordination.set_in_flight(0);
                    }
                }
                Err(_) if remembered => {}
                Err(_) => self.debts.poisoned = Some(error.to_string()),
            }
        }
        undone
    }

    pub(crate) fn copy_back(&mut self, dirtied: &RangeSet) -> Result<()> {
        let slot = self.shadow_slot();
        self.pair.coordination.next_tail_epoch(slot); // what failed may have moved it
        if self.view.snapshot.size == 0 {
            // Nothing to copy from: the database is still empty.
            self.abandon_shadow()?;
            self.flush_file(slot)?;
            self.pair.coordination.set_in_flight(0);
            return Ok(());
        }
        let mut ranges = dirtied.clone();
        if !broken(Mutation::UndoneInPart) {
            ranges.union(&self.current_page_list()?);
        }
        self.restore(&ranges)?;
        self.pair.coordination.set_settled();
        self.pair.coordination.set_in_flight(0);
        Ok(())
    }

    /// Gives the shadow up: takes its block away, to be flushed, and has it made anew.
    fn abandon_shadow(&mut self) -> Result<()> {
        self.pair.coordination.set_condition(ShadowCondition::Rebuild);
        let slot = self.shadow_slot();
        let (file, name) = (self.pair.file(slot)?, self.role(slot));
        let len = file.metadata().during(Operation::Stat, &name)?.len;
        // The intent stays: should the names on disk be behind, it tells that the file is ours.
        void_commit(&*file, len, &name)
    }

    /// Keeps the id of the commit that the shadow shows, or else of the one that was being made.
    ///
    /// Only while `app.db` names the current copy: where a failed exchange got half-way and could
    /// not be taken back, whoever comes next has to finish it. Whether nobody will take it for
    /// committed.
    pub(crate) fn remember_failed(&self, made: u64) -> bool {
        let (current, slot) = (self.current_file(), self.shadow_slot());
        let named = self.pair.directory.metadata(&self.pair.names.db).ok().flatten();
        if !matches!((&current, named), (Ok(file), Some(named)) if named.id == file.id()) {
            return false;
        }
        let shown = self.pair.file(slot).and_then(|file| {
            let tail = Tail::read(&*file, &self.role(slot))?;
            Ok(tail.bound(file.id()).map_or(0, |block| block.id))
        });
        let id = shown.ok().filter(|&id| id != 0).unwrap_or(made);
        if id != 0 {
            self.pair.coordination.word(Word::Failed).store(id, SeqCst);
        }
        true
    }
}
